#include "tests/support/machine.h"

#include "frontend/compile.h"
#include "runtime/executable.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/guarded.h"

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
  if (tiles_missing().empty()) targets.push_back(tile_target());  // emulated, or this machine's own
  return targets;
}

#if BURIN_WITH_LLVM
Machine::Machine(const Program& program, const Target& target)
    : program_(program), executable_(detail::make_executable(program, target, 1)) {}

std::vector<Literal> Machine::run(std::span<const Literal> inputs, int num_threads) const {
  std::vector<Guarded> memory;
  memory.reserve(inputs.size() + program_.outputs.size());
  std::vector<const void*> in;
  std::vector<void*> out;
  for (Literal literal : inputs) {
    literal.expand();
    in.push_back(memory.emplace_back(literal.raw()).data());
  }
  std::vector<Literal> results;
  std::vector<std::size_t> lies;  // by result: its place in `memory`
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const std::int32_t donor = program_.aliases[i];  // a donated argument lives where its output does
    lies.push_back(donor >= 0 ? static_cast<std::size_t>(donor) : memory.size());
    if (donor < 0) memory.emplace_back(Literal(program_.outputs[i]).raw());
    out.push_back(memory[lies.back()].data());
  }
  runtime::RunOptions options;
  options.num_threads = num_threads;
  options.threading_threshold_ns = 0;
  executable_->run(in, out, options);
  for (std::size_t i = 0; i < out.size(); ++i) memory[lies[i]].copy_to(results.emplace_back(program_.outputs[i]).mutable_raw());
  return results;
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
