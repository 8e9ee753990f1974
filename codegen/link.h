// Objects become callable. Private to codegen/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/abi.h"

namespace burin::codegen {

/// One object in memory, as long as somebody holds it.
struct LinkedObject {
  std::shared_ptr<const void> memory;
  std::vector<BurinKernel> entries;  // in the order of the symbols
};

/// With `perf_folder`, gdb and perf are told, so that they know the code by name and line; what perf reads is put there. Throws Error when
/// that cannot be written, or when the process has no mapping left for the code.
LinkedObject link(const std::string& object, const std::vector<std::string>& symbols, const std::string& perf_folder);

}  // namespace burin::codegen
