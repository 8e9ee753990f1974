#include "tools/opt/bisect.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/eval/walk.h"
#include "ir/verifier.h"
#include "passes/lower/program.h"
#include "passes/pipeline.h"
#include "tools/execute/backends.h"
#include "tools/execute/compare.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;
namespace passes = burin::passes;

using Literals = std::vector<Literal>;

// "" or how the outcome of `run` differs from `expected`.
std::string difference(const tools::Run& run, const Literals& inputs, const Literals& expected, double tolerance) {
  try {
    return tools::first_difference(run(inputs), expected, tolerance);
  } catch (const Error& error) {
    return error.what();
  }
}

// What is wrong with `after`: an invariant, or results that are not `expected`.
std::string complaint(const Function& after, const Literals& inputs, const Literals& expected, double tolerance) {
  if (const std::string broken = verify(after); !broken.empty()) return broken;
  return difference(tools::evaluator(after), inputs, expected, tolerance);
}

// The pass with only its first `limit` rewrites; the last one allowed in `*last`.
Function run_limited(const Step& step, const Function& before, std::size_t limit, std::size_t* asked,
                     std::string* last) {
  *asked = 0;
  return step.run(before, [&](std::string_view what) {
    if (++*asked > limit) return false;
    *last = what;
    return true;
  });
}

// The rewrite that the first wrong result follows, or "" when the pass has none.
std::string first_wrong_rewrite(const Step& step, const Function& before, const Literals& inputs,
                                const Literals& expected, double tolerance) {
  std::size_t all = 0, asked = 0;
  std::string last;
  run_limited(step, before, ~std::size_t{0}, &all, &last);
  if (all == 0) return "";
  std::size_t good = 0, bad = all;
  while (good + 1 < bad) {
    const std::size_t middle = (good + bad) / 2;
    const Function after = run_limited(step, before, middle, &asked, &last);
    (complaint(after, inputs, expected, tolerance).empty() ? good : bad) = middle;
  }
  run_limited(step, before, bad, &asked, &last);
  return fmt::format("rewrite {}, {}", bad, last);
}

// The machine-code and interpreter runs of a program, in the order in which a failure of one explains the next.
std::optional<Culprit> check_program(const Program& program, const Literals& inputs, const Literals& expected,
                                     double tolerance, const Target& target) {
  if (const std::string broken = verify(program); !broken.empty()) return Culprit{"lower", "", broken};
  if (std::string d = difference(tools::interpreter(program), inputs, expected, tolerance); !d.empty())
    return Culprit{"lower", "", d};
  if (!tools::can_run(target)) return {};
  if (std::string d = difference(tools::machine(program, target, 2, true), inputs, expected, tolerance); !d.empty())
    return Culprit{"codegen", "", d};
  return {};
}

// Each fusion alone, on what the evaluator gives it.
std::optional<Culprit> wrong_fusion(const Function& fused, const Literals& inputs, const Target& target) {
  std::optional<Culprit> found;
  walk(fused, std::span(inputs), [&](OpId op, std::span<const Literal> given, std::span<const Type> types) {
    if (found) return Literals(types.size());
    const Literals operands(given.begin(), given.end());
    const Literals results = evaluate_op(fused.kind(op), operands, fused.attributes(op), types);
    if (fused.kind(op) != Op::fusion) return results;
    Builder b(fused.name());
    std::vector<ValueId> args, outs;
    for (const Literal& operand : operands) args.push_back(b.add_arg(operand.type()));
    const ValueId first = b.append_copy(fused, op, args);
    for (std::size_t r = 0; r < results.size(); ++r) outs.push_back(ValueId{first.index + r});
    const Function alone = b.finish(std::move(outs));
    const double tolerance = tools::agreement_of(alone, false).tolerance;
    const Program program = passes::run_lowering(alone, target, {});
    if (auto culprit = check_program(program, operands, results, tolerance, target)) {
      const std::string where = to_string(fused.location(op));
      culprit->rewrite =
          fmt::format("@{}{}", fused.attrs<Op::fusion>(op).body->name(), where.empty() ? "" : " (" + where + ")");
      found = culprit;
    }
    return results;
  });
  return found;
}

std::optional<Culprit> bisect_lowering(const Function& fused, const Literals& inputs, const Literals& expected,
                                       double tolerance, const Target& target) {
  auto whole = check_program(passes::run_lowering(fused, target, {}), inputs, expected, tolerance, target);
  if (!whole) return {};
  if (auto one = wrong_fusion(fused, inputs, target)) return one;
  // Each kernel is right alone: they get into each other's way.
  passes::Options in_order;
  in_order.disabled = {"schedule"};
  whole->pass = check_program(passes::run_lowering(fused, target, in_order), inputs, expected, tolerance, target)
                    ? "plan_memory"
                    : "schedule";
  return whole;
}

}  // namespace

std::vector<Step> function_steps(bool excess_precision) {
  passes::Options options;
  options.excess_precision = excess_precision;
  std::vector<Step> steps;
  for (const passes::PassInfo& pass : passes::pass_table()) {
    if (pass.stage == "lower") break;
    const std::string name(pass.name);
    if (name == "simplify")
      steps.push_back(
          {name, [](const Function& f, const passes::MayRewrite& may) { return passes::simplify(f, may); }});
    else
      steps.push_back({name, [=](const Function& f, const auto&) { return passes::run_pass(name, f, options); },
                       name == "widen_half"});
  }
  return steps;
}

std::optional<Culprit> bisect(const Function& f, const Literals& inputs, const Target& target,
                              const std::vector<Step>& steps) {
  if (const std::string broken = verify(f); !broken.empty()) throw Error("the function is not valid: " + broken);
  Literals expected = evaluate(f, inputs);
  Function now = f;
  for (const Step& step : steps) {
    Function next = step.run(now, {});
    const double tolerance = step.rounds_anew ? tools::agreement_of(now, true).tolerance : 0;
    if (const std::string what = complaint(next, inputs, expected, tolerance); !what.empty())
      return Culprit{step.name, first_wrong_rewrite(step, now, inputs, expected, tolerance), what};
    now = std::move(next);
    if (step.rounds_anew) expected = evaluate(now, inputs);
  }
  return bisect_lowering(now, inputs, expected, tools::agreement_of(now, false).tolerance, target);
}

std::string to_string(const Culprit& culprit) {
  return fmt::format("wrong after {}{}: {}", culprit.pass, culprit.rewrite.empty() ? "" : ", " + culprit.rewrite,
                     culprit.what);
}

}  // namespace opt
