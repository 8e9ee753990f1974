#include "tests/support/machine.h"

#include "frontend/compile.h"
#include "runtime/executable.h"

namespace burin::test {

using namespace ir;

std::vector<Target> runnable_targets() {
  std::vector<Target> targets;
  if (!has_machine) return targets;
  const Target host = host_target();
  for (const char* name : {"avx2", "avx512", "avx512_bf16"}) {
    Isa isa;
    if (isa_from_name(name, &isa) && isa <= host.isa) targets.push_back(host_target(name));
  }
  return targets;
}

#if BURIN_WITH_LLVM
Machine::Machine(const Program& program, const Target& target)
    : program_(program), executable_(detail::make_executable(program, target, 1)) {}

std::vector<Literal> Machine::run(std::span<const Literal> inputs, int num_threads) const {
  runtime::RunOptions options;
  options.num_threads = num_threads;
  options.threading_threshold_ns = 0;
  return detail::run_literals(program_, *executable_, inputs, options);
}
#else
Machine::Machine(const Program& program, const Target&) : program_(program) {}

std::vector<Literal> Machine::run(std::span<const Literal> inputs, int) const { return interpret(program_, inputs); }
#endif

Machine::~Machine() = default;

std::vector<Literal> run_machine(const Program& program, std::span<const Literal> inputs, const Target& target, int num_threads) {
  return Machine(program, target).run(inputs, num_threads);
}

}  // namespace burin::test
