// The .safetensors format: 8 bytes of header length, a JSON header {name: {dtype, shape, data_offsets}}, the tensors'
// bytes.
#pragma once
#include <map>
#include <string>

#include "frontend/io/host_tensor.h"

namespace burin::io {

struct Safetensors {
  std::map<std::string, HostTensor> tensors;
  std::map<std::string, std::string> metadata;  // the header's "__metadata__"
  friend bool operator==(const Safetensors&, const Safetensors&) = default;
};

/// Reads a whole file. Throws burin::Error that names the path, the tensor, what was expected and found, for: a missing
/// or short file; a header that is longer than the file or 100 MB, is no JSON object, or has a name twice; a dtype that
/// Burin has not; offsets that do not fit dtype and shape, overlap, or leave bytes of the file to no tensor. The data
/// may begin at any byte. Nothing is allocated before the header is found right.
Safetensors read_safetensors(const std::string& path);

/// Writes the file as a whole or not at all. Tensors are ordered by falling size of their elements, then by name, and
/// the data begins at a multiple of 8, so that every tensor is aligned to its dtype. Throws burin::Error that names
/// path and reason, or the tensor that is not what its type says.
void write_safetensors(const std::string& path, const Safetensors& file);

}  // namespace burin::io
