// NumPy's .npy files.
#pragma once
#include <string>

#include <burin/tensor.h>

namespace burin::io {

/// Version 1.0, little-endian, row-major, of any shape. bf16 has no place in the format: an error; convert it first.
/// Throws, naming path and reason, when the file cannot be written; what stood there before then stays.
void save_npy(const std::string& path, const Tensor& tensor,
              std::source_location where = std::source_location::current());
/// Numbers and bools in either byte order, row- or column-major, of format versions 1 to 3, with the file's dtype and
/// shape of at most 8 axes. Throws, naming path, expected and found, for a file that is missing, cut off, too long or
/// malformed, and for elements that Burin has not (strings, objects, records, complex numbers).
Tensor load_npy(const std::string& path, std::source_location where = std::source_location::current());

}  // namespace burin::io
