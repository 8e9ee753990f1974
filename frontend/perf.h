// BURIN_PERF=1: perf and gdb know kernels by name, and their code by the lines of Kernel text. Inside the frontend
// only.
#pragma once
#include <functional>
#include <string>

#include "ir/kernel/kernel.h"

namespace burin::detail {

/// Empty unless BURIN_PERF is set; else writes a kernel's text to a file in the process's folder for perf, and gives its
/// path. Throws Error when it cannot.
std::function<std::string(const ir::Kernel&)> kernel_texts();

}  // namespace burin::detail
