// The loss of a small Transformer as IR text, differentiated, turned into a step of gradient descent that updates its
// parameters in place, and lowered: every kernel verified, the program interpreted against the evaluator.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "passes/pipeline.h"
#include "tests/passes/training_step.h"

namespace burin::passes {
namespace {

using namespace ir;

void check(const std::string& path, std::int64_t vocabulary) {
  const Function step = training_step(read_function(path));
  const std::vector<Literal> inputs = step_inputs(step, vocabulary);
  Options options;
  options.verify = true;
  for (ValueId arg : step.args()) options.donated.push_back(is_float(step.type(arg).dtype));
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
