// The kernel parser's entry for a text that holds more than one kernel. parse_kernel is declared in kernel.h.
#pragma once
#include "ir/kernel/cursor.h"
#include "ir/kernel/kernel.h"

namespace burin::ir {

/// Takes one kernel, from the word `kernel` to its closing brace.
Kernel parse_kernel(Cursor& cursor);

}  // namespace burin::ir
