// A Program as machine code: what the frontend does with it, without the frontend.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::runtime {
class Executable;
}

namespace burin::test {

/// Whether this build has code generation, and the reason with which tests of machine code skip themselves if not.
inline constexpr bool has_machine = BURIN_WITH_LLVM;
inline constexpr const char* no_machine = "this build has no code generation (BURIN_WITH_LLVM=OFF)";

/// The kernels of a program, which must outlive it, compiled for `target` (which this machine must have). Without code
/// generation the interpreter runs it.
class Machine {
 public:
  Machine(const ir::Program& program, const ir::Target& target);
  ~Machine();
  /// Runs the steps once, each shared out among the threads however small it is.
  std::vector<ir::Literal> run(std::span<const ir::Literal> inputs, int num_threads = 1) const;

 private:
  const ir::Program& program_;
  std::unique_ptr<runtime::Executable> executable_;
};
/// For a single run.
std::vector<ir::Literal> run_machine(const ir::Program& program, std::span<const ir::Literal> inputs, const ir::Target& target,
                                     int num_threads = 1);
/// Targets that this machine can run, from AVX2 up, the last one perhaps with emulated tiles; none without code generation.
std::vector<ir::Target> runnable_targets();

}  // namespace burin::test
