#include "tools/opt/bisect.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/eval/walk.h"
#include "ir/verifier.h"
#include "passes/crash_note.h"
#include "passes/lower/program.h"
#include "passes/pipeline.h"
#include "tools/execute/compare.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;
namespace passes = burin::passes;
using passes::CrashNote;

using Literals = std::vector<Literal>;

// "" or what `work` throws.
template <class Work>
std::string exception_of(Work&& work) {
  try {
    work();
    return "";
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return std::string("it throws: ") + error.what();
  }
}

// "" or how the outcome of `run` differs from `expected`.
std::string difference(const tools::Run& run, const Literals& inputs, const Literals& expected, double tolerance) {
  try {
    return tools::first_difference(run(inputs), expected, tolerance);
  } catch (const Error& error) {
    return error.what();
  }
}

// ---- passes from Function to Function ----

// A step on the function before it, with its first rewrites only.
class Attempt {
 public:
  Attempt(const Step& step, const Function& before, std::size_t limit) {
    const CrashContext context(&describe, this);
    const CrashNote note(step.name, before, "--passes=" + step.name);
    exception_ = exception_of([&] {
      after_ = step.run(before, [&](std::string_view what) {
        if (asked_ >= limit) return false;
        ++asked_;
        last_ = what;
        return true;
      });
    });
  }
  // What is wrong: an exception, an invariant, or results that are not `expected`.
  std::string complaint(const Literals& inputs, const Literals& expected, double tolerance) const {
    if (!after_) return exception_;
    if (const std::string broken = verify(*after_); !broken.empty()) return broken;
    return difference(tools::evaluator(*after_), inputs, expected, tolerance);
  }
  const Function& after() const { return *after_; }
  std::size_t rewrites() const { return asked_; }
  // "rewrite 2, movement: reshape becomes sub", "" before the first.
  std::string last() const { return asked_ == 0 ? "" : fmt::format("rewrite {}, {}", asked_, last_); }

 private:
  static std::string describe(const void* data) {
    const auto& self = *static_cast<const Attempt*>(data);
    return self.asked_ == 0 ? "  before any rewrite" : "  behind " + self.last();
  }
  std::optional<Function> after_;
  std::string exception_, last_;
  std::size_t asked_ = 0;
};

// The rewrite that the first complaint follows, or "" when the pass has none.
std::string first_wrong_rewrite(const Step& step, const Function& before, const Attempt& whole, const Literals& inputs,
                                const Literals& expected, double tolerance) {
  if (whole.rewrites() == 0) return "";
  std::size_t good = 0, bad = whole.rewrites();
  while (good + 1 < bad) {
    const std::size_t middle = (good + bad) / 2;
    const bool fine = Attempt(step, before, middle).complaint(inputs, expected, tolerance).empty();
    (fine ? good : bad) = middle;
  }
  return Attempt(step, before, bad).last();
}

// ---- from fusions to machine code ----

// A program that is not planned, with bytes of its own for every value: no plan can go wrong like this.
Program spread_out(Program program) {
  std::vector<std::int64_t> offset(program.plan.size());
  for (std::size_t v = 0; v < offset.size(); ++v) {
    if (program.plan[v].place.storage != Storage::arena) continue;
    offset[v] = program.arena_bytes;
    program.plan[v].place = {Storage::arena, 0, offset[v]};
    program.arena_bytes += (program.plan[v].type.bytes() + 63) / 64 * 64;
  }
  for (auto& step : program.steps)
    for (BufferRef& ref : step.args)
      if (ref.storage == Storage::arena) ref = {Storage::arena, 0, offset[ref.index]};
  program.planned = true;
  return program;
}

class BackHalf {
 public:
  BackHalf(const Function& fused, const Literals& inputs, const Literals& expected, const Target& target,
           const Pipeline& pipeline)
      : fused_(fused), inputs_(inputs), expected_(expected), target_(target), pipeline_(pipeline),
        tolerance_(tools::agreement_of(fused, false).tolerance) {}

  std::optional<Culprit> run() const {
    Program program;
    const Check lowered = [&](const Function& f, const Literals& inputs, const Literals& expected, double tolerance) {
      return lower(f, inputs, expected, tolerance, &program);
    };
    if (std::string what = lowered(fused_, inputs_, expected_, tolerance_); !what.empty())
      return named("lower", lowered, std::move(what));
    if (std::string what = change("schedule", "--passes=lower,schedule", pipeline_.schedule, &program); !what.empty())
      return Culprit{"schedule", "", what};
    if (std::string what = change("plan_memory", "--passes=lower,schedule,plan_memory", pipeline_.plan_memory, &program);
        !what.empty())
      return Culprit{"plan_memory", "", what};
    if (!tools::can_run(target_)) return {};
    return machine(program);
  }

 private:
  // "" or what is wrong with what a stage makes of a function.
  using Check = std::function<std::string(const Function&, const Literals& inputs, const Literals& expected, double tolerance)>;

  std::string repeat(const std::string& options) const { return options + target_option(target_); }

  std::string lower(const Function& f, const Literals& inputs, const Literals& expected, double tolerance,
                    Program* program) const {
    const CrashNote note("lower", f, repeat("--passes=lower"));
    if (std::string thrown = exception_of([&] { *program = pipeline_.lower(f, target_); }); !thrown.empty()) return thrown;
    return complaint(*program, inputs, expected, tolerance);
  }

  std::string change(const char* pass, const std::string& options, const std::function<void(Program&)>& run,
                     Program* program) const {
    const CrashNote note(pass, fused_, repeat(options));
    if (std::string thrown = exception_of([&] { run(*program); }); !thrown.empty()) return thrown;
    return complaint(*program, inputs_, expected_, tolerance_);
  }

  static std::string complaint(const Program& program, const Literals& inputs, const Literals& expected, double tolerance) {
    if (std::string broken = verify(program); !broken.empty()) return broken;
    return difference(tools::interpreter(program.planned ? program : spread_out(program)), inputs, expected, tolerance);
  }

  std::string machine_code(const Function& f, const Program& program, const Literals& inputs, const Literals& expected,
                           double tolerance, int num_threads) const {
    tools::Run run;
    {
      const CrashNote note("codegen", f, repeat("--emit=asm"));
      if (std::string thrown = exception_of([&] { run = pipeline_.codegen(program, target_, num_threads); }); !thrown.empty())
        return thrown;
    }
    const CrashNote note("machine code", f, repeat("--passes=lower,schedule,plan_memory --check"));
    return difference(run, inputs, expected, tolerance);
  }

  std::optional<Culprit> machine(const Program& program) const {
    const Check alone = [&](const Function& f, const Literals& inputs, const Literals& expected, double tolerance) {
      return machine_code(f, spread_out(pipeline_.lower(f, target_)), inputs, expected, tolerance, 1);
    };
    // Code that crashes takes this process with it: first the fusions one by one, so that the note names the right one.
    first_fusion([&](const Function& f, const Literals& inputs, const Literals& expected, double tolerance) {
      (void)alone(f, inputs, expected, tolerance);
      return std::string();
    });
    if (std::string what = machine_code(fused_, program, inputs_, expected_, tolerance_, 1); !what.empty())
      return named("codegen", alone, std::move(what));
    if (std::string what = machine_code(fused_, program, inputs_, expected_, tolerance_, 2); !what.empty())
      return Culprit{"runtime", "with two threads", what};
    return {};
  }

  // Each fusion alone, on what the evaluator gives it: the first that `check` complains of.
  std::optional<Culprit> first_fusion(const Check& check) const {
    std::optional<Culprit> found;
    walk(fused_, std::span(inputs_), [&](OpId op, std::span<const Literal> given, std::span<const Type> types) {
      if (found) return Literals(types.size());
      const Literals operands(given.begin(), given.end());
      const Literals results = evaluate_op(fused_.kind(op), operands, fused_.attributes(op), types);
      if (fused_.kind(op) != Op::fusion) return results;
      Builder b(fused_.name());
      std::vector<ValueId> args, outs;
      for (const Literal& operand : operands) args.push_back(b.add_arg(operand.type()));
      const ValueId first = b.append_copy(fused_, op, args);
      for (std::size_t r = 0; r < results.size(); ++r) outs.push_back(ValueId{first.index + r});
      const Function alone = b.finish(std::move(outs));
      if (std::string what = check(alone, operands, results, tools::agreement_of(alone, false).tolerance); !what.empty()) {
        const std::string where = to_string(fused_.location(op));
        const std::string& body = fused_.attrs<Op::fusion>(op).body->name();
        found = Culprit{"", fmt::format("@{}{}", body, where.empty() ? "" : " (" + where + ")"), std::move(what)};
      }
      return results;
    });
    return found;
  }

  // The fusion that a pass makes wrong also when it is alone; where each alone is right, the pass.
  std::optional<Culprit> named(const char* pass, const Check& check, std::string what) const {
    Culprit culprit = first_fusion(check).value_or(Culprit{"", "", std::move(what)});
    culprit.pass = pass;
    return culprit;
  }

  const Function& fused_;
  const Literals &inputs_, &expected_;
  const Target& target_;
  const Pipeline& pipeline_;
  double tolerance_;
};

}  // namespace

Pipeline pipeline(bool excess_precision) {
  passes::Options options;
  options.excess_precision = excess_precision;
  Pipeline all;
  for (const passes::PassInfo& pass : passes::pass_table()) {
    if (pass.stage == "lower") break;
    const std::string name(pass.name);
    if (name == "simplify")
      all.steps.push_back(
          {name, [](const Function& f, const passes::MayRewrite& may) { return passes::simplify(f, may); }});
    else
      all.steps.push_back({name, [=](const Function& f, const auto&) { return passes::run_pass(name, f, options); },
                           !pass.keeps_bits});
  }
  all.lower = [](const Function& f, const Target& target) { return passes::lower_program(f, target, {}); };
  all.schedule = passes::schedule;
  all.plan_memory = passes::plan_memory;
  all.codegen = [](const Program& program, const Target& target, int num_threads) {
    return tools::machine(program, target, num_threads, true);
  };
  return all;
}

std::optional<Culprit> bisect(const Function& f, const Literals& inputs, const Target& target, const Pipeline& pipeline) {
  if (const std::string broken = verify(f); !broken.empty()) throw Error("the function is not valid: " + broken);
  Literals expected = evaluate(f, inputs);
  Function now = f;
  for (const Step& step : pipeline.steps) {
    const Attempt attempt(step, now, ~std::size_t{0});
    const double tolerance = step.rounds_anew ? tools::agreement_of(now, true).tolerance : 0;
    if (const std::string what = attempt.complaint(inputs, expected, tolerance); !what.empty())
      return Culprit{step.name, first_wrong_rewrite(step, now, attempt, inputs, expected, tolerance), what};
    now = attempt.after();
    if (step.rounds_anew) expected = evaluate(now, inputs);
  }
  return BackHalf(now, inputs, expected, target, pipeline).run();
}

std::string to_string(const Culprit& culprit) {
  return fmt::format("wrong after {}{}: {}", culprit.pass, culprit.rewrite.empty() ? "" : ", " + culprit.rewrite,
                     culprit.what);
}

}  // namespace opt
