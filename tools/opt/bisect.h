// Finds the pass, and within it the rewrite or the kernel, after which a function's results are wrong or an invariant
// is broken.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"
#include "ir/target.h"
#include "passes/passes.h"

namespace opt {

/// A pass from Function to Function. Passes without named rewrites ignore the question.
struct Step {
  std::string name;
  std::function<burin::ir::Function(const burin::ir::Function&, const burin::passes::MayRewrite&)> run;
  bool rounds_anew = false;  // results may change as agreement_of(f, true) says, not only where the evaluator does
};
/// The passes of the pipeline before lowering.
std::vector<Step> function_steps(bool excess_precision);

struct Culprit {
  std::string pass;     // a pass by name, "lower", "schedule", "plan_memory", or "codegen"
  std::string rewrite;  // of simplify: the first whose result is wrong; of lower and codegen: the fusion; or ""
  std::string what;     // the verifier's complaint, or the first element that differs
};

/// Runs the steps one after another, then lowering, the interpreter and, where this machine has the target, machine
/// code; each is compared with what stood before it under the evaluator. Nothing when all agree. Throws burin::Error
/// when f itself fails on the inputs.
std::optional<Culprit> bisect(const burin::ir::Function& f, const std::vector<burin::ir::Literal>& inputs,
                              const burin::ir::Target& target, const std::vector<Step>& steps);
std::string to_string(const Culprit& culprit);

}  // namespace opt
