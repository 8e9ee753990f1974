// Which bodies each kind of fusion can lower. fuse forms no others; text can say anything.
#pragma once
#include "ir/function.h"

namespace burin::passes::lower {

using namespace ir;

/// True when everything made of the body's dot_general or scatter follows it element by element, all values moved the same
/// way, and every result is made of it.
bool epilogue_is_aligned(const Function& body);

/// Throws Error, with the place of the op, unless `fused` consists of fusions, constants and barriers, and each fusion is of
/// a known kind with a body that this kind lowers.
void check_fusions(const Function& fused);

}  // namespace burin::passes::lower
