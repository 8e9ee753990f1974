// Decides what each kernel computes: the ops of a traced function become `fusion` ops. Each is lowered to one kernel, and to a second
// one where its tasks leave partial results to combine.
//
// Anchors are the ops that cannot be computed element by element at their users: reductions, dots, scatters. Everything else is
// an expression, computed again where it is used, unless it is materialised: a result, an operand that must lie in memory, a
// value that reads several large arrays for several users, or one that a product saves for later in place of itself. Materialised
// values join the kernel of an anchor that they follow from (a dot's epilogue, a row of reductions) or become loops.
#pragma once
#include <string>
#include <vector>

#include "ir/function.h"

namespace burin::passes {

struct FuseOptions {
  bool enabled = true;           // false: one kernel per op
  bool small_attention = false;  // scores that would stay in the caches live in tiles too
};

/// Takes a canonical function without calls. Only fusion, optimization_barrier and large constants remain at the top; a function
/// that is so already comes back as it is.
ir::Function fuse(const ir::Function& f, const FuseOptions& options = {});

/// Whether nothing but fusions, barriers and constants is left at the top, and some fusion is.
bool is_fused(const ir::Function& f);

/// One line per op of a fused function: which kernel it is in and with what, or why it is alone.
std::string explain_fusion(const ir::Function& fused);

}  // namespace burin::passes
