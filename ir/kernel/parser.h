// The kernel parser's entry for a text that holds more than one kernel. parse_kernel is declared in kernel.h.
#pragma once
#include "ir/kernel/kernel.h"
#include "ir/lexer.h"

namespace burin::ir {

/// Takes one kernel, from the word `kernel` to its closing brace.
Kernel parse_kernel(Lexer& in);

}  // namespace burin::ir
