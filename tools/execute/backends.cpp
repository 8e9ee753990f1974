#include "tools/execute/backends.h"

#include "frontend/compile.h"
#include "frontend/timeline.h"
#include "ir/eval/eval.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/program.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"

namespace tools {

using namespace burin;
using namespace burin::ir;

bool can_run(const Target& target) {
#if BURIN_WITH_LLVM
  const Target host = host_target();
  return target.isa <= host.isa && (!target.avx512_fp16 || host.avx512_fp16);
#else
  (void)target;
  return false;
#endif
}

Program program_of(const Function& f, const Target& target, bool excess_precision) {
  burin::passes::Options options;
  options.excess_precision = excess_precision;
  options.observer = burin::detail::record_passes(f.name());
  return burin::passes::is_fused(f) ? burin::passes::run_lowering(f, target, options)
                     : burin::passes::build_program(f, target, options);
}

Program planned(Program program) {
  if (!program.planned) burin::passes::plan_memory(program);
  return program;
}

Run evaluator(Function f) {
  burin::passes::check_opened_size(f);  // each call is evaluated anew
  return [f = std::move(f)](std::span<const Literal> inputs) { return evaluate(f, inputs); };
}

Run interpreter(Program program) {
  return [program = std::move(program)](std::span<const Literal> inputs) { return interpret(program, inputs); };
}

Run machine(Program program, const Target& target, int num_threads, bool thread_all) {
  std::shared_ptr<const burin::runtime::Executable> executable =
      burin::detail::make_executable(program, target, num_threads);
  return [program = std::move(program), executable, num_threads, thread_all](std::span<const Literal> inputs) {
    burin::runtime::RunOptions options;
    options.num_threads = num_threads;
    if (thread_all) options.threading_threshold_ns = 0;
    return burin::detail::run_literals(program, *executable, inputs, options);
  };
}

}  // namespace tools
