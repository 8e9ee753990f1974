// The passes from Function to Function, one declaration each: imperative verbs, a new Function out, results of the same
// types and meaning. pipeline.cpp says in which order they run and why.
#pragma once
#include "ir/function.h"

namespace burin::passes {

/// Evaluates ops whose operands are constants: those that round exactly (arithmetic, compare, select, convert, integers,
/// movement), never a function that machine code computes in its own way, a dot or a sum of floats. A splat stays one;
/// other results are made only up to 64 KiB, and never by repeating stored elements.
ir::Function fold_constants(const ir::Function& f);

}  // namespace burin::passes
