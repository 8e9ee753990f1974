// NumPy's .npy format, versions 1 to 3: one array in a file.
#pragma once
#include <string>

#include "frontend/io/host_tensor.h"

namespace burin::io {

/// Reads an array of numbers or bools; either byte order, row- or column-major (the result is row-major,
/// little-endian). Throws burin::Error that names the path and what was expected and found, for: a missing or short
/// file, a wrong magic or version, a header that is no dict of descr, fortran_order and shape, an element type that
/// Burin has not (strings, objects, records, complex numbers, void), more or fewer bytes than the shape has.
HostTensor read_npy(const std::string& path);

/// Writes version 1, row-major, as a whole or not at all. The format has no bf16: that is an error, as is a tensor that
/// is not what its type says; convert to f32, or write .safetensors.
void write_npy(const std::string& path, const HostTensor& tensor);

}  // namespace burin::io
