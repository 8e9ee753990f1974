// The invariants of a Function, numbered as in docs/ir.md.
#pragma once
#include <string>

#include "ir/function.h"

namespace burin::ir {

/// "" when every invariant holds, else "V3: ..." naming the first broken invariant and the op.
std::string verify(const Function& f);
/// Aborts through BURIN_CHECK when an invariant is broken.
void check_valid(const Function& f, const char* after);

}  // namespace burin::ir
