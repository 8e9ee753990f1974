// The passes from Function to Function, one declaration each: imperative verbs, a new Function out, results of the same
// types and meaning. pipeline.cpp says in which order they run and why.
#pragma once
#include <functional>
#include <string_view>

#include "ir/function.h"

namespace burin::passes {

/// Throws Error naming the first function whose calls, all bodies opened, come to more than 2^20 ops: doubled often enough,
/// few lines of text would never end. Whatever opens bodies asks this first.
void check_opened_size(const ir::Function& f);
/// Replaces call, composite, custom_jvp, custom_vjp, checkpoint and fusion ops by their bodies, down to the last.
ir::Function inline_calls(const ir::Function& f);
/// Asked before each rewrite: the rules' file, what is rewritten and what it becomes, "movement: reduce_sum (x.ir:5) becomes add". An
/// op that may not be rewritten stays as it is.
using MayRewrite = std::function<bool(std::string_view what)>;
/// Applies the rewrites of passes/simplify until nothing changes; drops stop_gradient.
ir::Function simplify(const ir::Function& f, const MayRewrite& may_rewrite = {});
/// Evaluates ops whose operands are constants: those that round exactly (arithmetic, compare, select, convert, integers,
/// movement), never a function that machine code computes in its own way, a dot or a sum of floats. A splat stays one;
/// other results are made only up to 64 KiB, and never by repeating stored elements.
ir::Function fold_constants(const ir::Function& f);
/// One op for each (op, operands, attributes); ordered ops stay apart.
ir::Function eliminate_common(const ir::Function& f);
/// argmax and argmin in terms of reductions of values and of indices.
ir::Function decompose(const ir::Function& f);
/// Reductions of at least so many elements to few results in two steps, the first of which has work for many threads.
ir::Function split_reductions(const ir::Function& f, std::int64_t least_elements);
/// 16-bit arithmetic in f32 (excess precision): values are rounded where memory, a convert, a comparison or a result asks for 16 bits.
ir::Function widen_half(const ir::Function& f);
/// Gathers and scatters (mode error) over indices that an earlier gather has checked clip them instead. A call that fails
/// reports the same index as before; less is left to fail late, so that more results can take over donated arguments.
ir::Function drop_repeated_checks(const ir::Function& f);
/// Without the ops that no result and no ordered op needs.
ir::Function remove_dead(const ir::Function& f);

}  // namespace burin::passes
