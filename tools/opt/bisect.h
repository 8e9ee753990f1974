// Finds the pass, and within it the rewrite or the kernel, after which a function's results are wrong or an invariant
// is broken.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/literal.h"
#include "ir/target.h"
#include "passes/passes.h"
#include "tools/execute/backends.h"

namespace opt {

/// A pass from Function to Function. Passes without named rewrites ignore the question.
struct Step {
  std::string name;
  std::function<burin::ir::Function(const burin::ir::Function&, const burin::passes::MayRewrite&)> run;
  bool rounds_anew = false;  // results may change as agreement_of(f, true) says, not only where the evaluator does
};

/// All that makes machine code of a function, stage by stage.
struct Pipeline {
  std::vector<Step> steps;  // before lowering
  std::function<burin::ir::Program(const burin::ir::Function&, const burin::ir::Target&)> lower;
  std::function<void(burin::ir::Program&)> schedule, plan_memory;
  /// Code generation; what it gives runs the code.
  std::function<tools::Run(const burin::ir::Program&, const burin::ir::Target&, int num_threads)> codegen;
};
/// The one that functions really go through.
Pipeline pipeline(bool excess_precision);

struct Culprit {
  std::string pass;     // a pass by name, "lower", "schedule", "plan_memory", "codegen", or "runtime"
  std::string rewrite;  // of simplify: the first whose result is wrong; of lower and codegen: the fusion; or ""
  std::string what;     // the verifier's complaint, the exception, or the first element that differs
};

/// Runs stage after stage; what each leaves is verified, computed, and compared with what stood before it:
///   a step       by the evaluator
///   lower        by the kernel interpreter, every value in bytes of its own
///   schedule     as lower
///   plan_memory  by the kernel interpreter, values where the plan puts them
///   codegen      machine code on one thread, where this machine has the target
///   runtime      the same code on two
/// Nothing when all agree. A stage that aborts says so itself, with a file and the command that repeats it. Throws burin::Error
/// when f itself fails on the inputs.
std::optional<Culprit> bisect(const burin::ir::Function& f, const std::vector<burin::ir::Literal>& inputs,
                              const burin::ir::Target& target, const Pipeline& pipeline);
std::string to_string(const Culprit& culprit);

}  // namespace opt
