#include "tests/support/machine.h"

#if BURIN_WITH_LLVM
#include "codegen/codegen.h"
#endif
#include "runtime/executable.h"

namespace burin::test {

using namespace ir;

std::vector<Target> runnable_targets() {
  const Target host = host_target();
  std::vector<Target> targets;
  for (const char* name : {"avx2", "avx512"}) {
    Isa isa;
    if (isa_from_name(name, &isa) && isa <= host.isa) targets.push_back(host_target(name));
  }
  return targets;
}

#if BURIN_WITH_LLVM
std::vector<Literal> run_machine(const Program& program, std::span<const Literal> inputs, const Target& target, int num_threads) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  const auto module = codegen::compile(kernels, target);
  runtime::StepTable table;
  for (const Step& step : program.steps) {
    const Kernel& kernel = program.kernels[step.kernel];
    runtime::Step row;
    row.entry = module->entries()[step.kernel];
    row.first_arg = static_cast<std::uint32_t>(table.args.size());
    row.num_args = static_cast<std::uint32_t>(step.args.size());
    row.tasks = step.tasks;
    row.phase = step.phase;
    row.cost_ns = kernel.cost;
    row.scratch_bytes = kernel.scratch_bytes();
    for (const Site& site : step.sites) row.sites.push_back(site.message);
    for (const BufferRef& ref : step.args)
      table.args.push_back({static_cast<runtime::Storage>(ref.storage), ref.index, ref.offset});
    table.steps.push_back(std::move(row));
  }
  std::vector<Literal> in(inputs.begin(), inputs.end()), out;
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  for (Literal& literal : in) {
    literal.expand();
    table.input_bytes.push_back(literal.type().bytes());
    in_data.push_back(literal.raw().data());
  }
  for (const Type& type : program.outputs) {
    table.output_bytes.push_back(type.bytes());
    out.emplace_back(type);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    // A donated argument lives where its output does.
    const std::int32_t donor = program.aliases[i];
    if (donor >= 0) out[i] = in[static_cast<std::size_t>(donor)];
    out_data.push_back(out[i].mutable_raw().data());
    if (donor >= 0) in_data[static_cast<std::size_t>(donor)] = out_data.back();
  }
  for (Literal constant : program.constants) {
    constant.expand();
    table.constants.emplace_back(constant.raw().begin(), constant.raw().end());
  }
  table.arena_bytes = program.arena_bytes;
  table.code = module;
  runtime::RunOptions options;
  options.num_threads = num_threads;
  options.threading_threshold_ns = 0;
  runtime::Executable(std::move(table)).run(in_data, out_data, options);
  return out;
}
#else
std::vector<Literal> run_machine(const Program& program, std::span<const Literal> inputs, const Target&, int) {
  return interpret(program, inputs);
}
#endif

}  // namespace burin::test
