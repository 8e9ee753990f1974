// NumPy's .npy files.
#pragma once
#include <string>

#include <burin/tensor.h>

namespace burin::io {

/// Little-endian, row-major. bf16 has no place in the format: convert it first.
void save_npy(const std::string& path, const Tensor& tensor);
/// Either element order and byte order little-endian; other files are errors that say what they hold.
Tensor load_npy(const std::string& path);

}  // namespace burin::io
