// Functions and Programs computed by the evaluator, the kernel interpreter and machine code.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace tools {

using Results = std::vector<burin::ir::Literal>;
/// Computes the results; throws burin::Error for an index out of range.
using Run = std::function<Results(std::span<const burin::ir::Literal> inputs)>;

/// True when this machine has what the target asks for and the build has LLVM.
bool can_run(const burin::ir::Target& target);
/// The Program of a function, traced or fused already.
burin::ir::Program program_of(const burin::ir::Function& f, const burin::ir::Target& target, bool excess_precision);

/// The Program with its memory planned.
burin::ir::Program planned(burin::ir::Program program);

/// Throws burin::Error when the calls of f, opened, come to more ops than can be lowered.
Run evaluator(burin::ir::Function f);
Run interpreter(burin::ir::Program program);
/// Compiles now. `num_threads` 0: one per core. `thread_all`: also steps so cheap that waking threads does not pay.
Run machine(burin::ir::Program program, const burin::ir::Target& target, int num_threads, bool thread_all = false);

}  // namespace tools
