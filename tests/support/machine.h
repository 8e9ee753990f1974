// A Program as machine code: what the frontend does with it, without the frontend.
#pragma once
#include <span>
#include <vector>

#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::test {

/// Whether this build has code generation, and the reason with which tests of machine code skip themselves if not.
inline constexpr bool has_machine = BURIN_WITH_LLVM;
inline constexpr const char* no_machine = "this build has no code generation (BURIN_WITH_LLVM=OFF)";

/// Compiles all kernels for `target` (which this machine must have) and runs the steps once. Without code generation the
/// interpreter does it.
std::vector<ir::Literal> run_machine(const ir::Program& program, std::span<const ir::Literal> inputs, const ir::Target& target,
                                     int num_threads = 1);
/// Targets that this machine can run, from AVX2 up; none without code generation.
std::vector<ir::Target> runnable_targets();

}  // namespace burin::test
