// The loss of a small Transformer as IR text, differentiated, turned into a step of gradient descent that updates its
// parameters in place, and lowered: every kernel verified, the program interpreted against the evaluator.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"
#include "passes/pipeline.h"

namespace burin::passes {
namespace {

using namespace ir;

Function read_function(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, path);
}

/// (ids, targets, parameters...) -> (loss, parameters - 0.1 * gradients...).
Function training_step(const Function& loss) {
  std::vector<bool> active;
  for (ValueId arg : loss.args()) active.push_back(is_float(loss.type(arg).dtype));
  const Vjp reverse = vjp(loss, active);
  Builder b("step");
  std::vector<ValueId> args;
  for (ValueId arg : loss.args()) args.push_back(b.add_arg(loss.type(arg), loss.value_name(arg)));
  const std::vector<ValueId> forward = b.inline_body(reverse.forward, args);
  std::vector<ValueId> residuals(forward.begin() + 1, forward.end());
  residuals.push_back(b.constant(Literal::scalar(f32, 1)));
  const std::vector<ValueId> gradients = b.inline_body(reverse.pullback, residuals);
  std::vector<ValueId> results = {forward[0]};
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!active[i]) continue;
    const ValueId gradient = gradients[next++];
    results.push_back(b.sub(args[i], b.mul(gradient, b.full_like(gradient, 0.1))));
  }
  return b.finish(results);
}

void check(const std::string& path, std::int64_t vocabulary) {
  const Function step = training_step(read_function(path));
  std::mt19937 generator(1);
  std::normal_distribution<double> normal(0, 0.2);
  std::vector<Literal> inputs;
  Options options;
  options.verify = true;
  for (ValueId arg : step.args()) {
    Literal value(step.type(arg));
    const bool parameter = is_float(value.dtype());
    for (std::int64_t i = 0; i < value.type().size(); ++i) {
      if (parameter)
        value.set(i, normal(generator));
      else
        value.set_int(i, static_cast<std::int64_t>(generator()) % vocabulary);
    }
    inputs.push_back(value);
    options.donated.push_back(parameter);
  }
  const std::vector<Literal> want = evaluate(step, inputs);
  for (Isa isa : {Isa::avx2, Isa::avx512})
    for (bool fused : {true, false}) {
      Target target;
      target.isa = isa;
      options.disabled = fused ? std::vector<std::string>{} : std::vector<std::string>{"fuse"};
      const Program program = build_program(step, target, options);
      const std::string text = print(program);
      EXPECT_EQ(print(parse_program(text)), text);
      const std::vector<Literal> got = interpret(program, inputs);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        double difference = 0, size = 0;
        for (std::int64_t j = 0; j < want[i].type().size(); ++j) {
          difference += std::pow(got[i].at(j) - want[i].at(j), 2);
          size += std::pow(want[i].at(j), 2);
        }
        EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size)) << path << " result " << i << (fused ? " fused" : "");
      }
    }
}

TEST(TrainingStep, OfTheTutorialsShape) { check("tests/data/transformer_loss_seed.ir", 64); }
TEST(TrainingStep, OfOddShapes) { check("tests/data/transformer_loss_odd.ir", 11); }

}  // namespace
}  // namespace burin::passes
