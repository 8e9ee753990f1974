// A Program as machine code: what the frontend does with it, without the frontend.
#pragma once
#include <span>
#include <vector>

#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::test {

/// Compiles all kernels for `target` (which this machine must have) and runs the steps once.
std::vector<ir::Literal> run_machine(const ir::Program& program, std::span<const ir::Literal> inputs, const ir::Target& target,
                                     int num_threads = 1);
/// Targets that this machine can run, from AVX2 up.
std::vector<ir::Target> runnable_targets();

}  // namespace burin::test
