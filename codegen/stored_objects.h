// Objects as they lie in the files of the cache. Private to codegen/.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace burin::codegen {

/// What LLVM made of some kernels in one module.
struct CompiledObject {
  std::vector<std::size_t> kernels;  // which ones, by position in the list that was compiled
  std::vector<std::string> symbols;  // their names in the object, in that order
  std::string bytes;
};

/// Of kernels with these keys (which tell kernel and target), compiled by this build of codegen/ and this LLVM.
Hash128 objects_key(std::span<const Hash128> kernels);

std::string pack(std::span<const CompiledObject> objects);
/// Nothing unless `bytes` are packed objects that have each of `num_kernels` kernels once.
std::optional<std::vector<CompiledObject>> unpack(std::string_view bytes, std::size_t num_kernels);

}  // namespace burin::codegen
