// The same bits for any number of threads, with every step shared out among the workers.
#include <gtest/gtest.h>

#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/passes/training_step.h"
#include "tests/support/machine.h"
#include "tests/support/threads.h"

namespace burin::passes {
namespace {

using namespace ir;

class determinism : public testing::Test {
  void SetUp() override {
    if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  }
};

void check(const Function& f, const std::vector<Literal>& inputs, const std::vector<bool>& donated = {}) {
  for (const Target& target : test::runnable_targets()) {
    Options options;
    options.donated = donated;
    test::expect_same_for_any_threads(build_program(f, target, options), inputs, target);
  }
}

void check(const std::string& text) {
  const Function f = parse(text);
  check(f, step_inputs(f, 4));
}

TEST_F(determinism, matmul) {
  check("func @main(%x: f32[300,170], %w: f32[170,515]) -> (f32[300,515]) {\n"
        "  %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n  return %y\n}\n");
}

TEST_F(determinism, rows) {
  check("func @main(%x: f32[2000,65]) -> (f32[2000,65]) {\n"
        "  %m = reduce_max %x {axes = [1]}\n"
        "  %b = broadcast %m {shape = [2000, 65], dims = [0]}\n"
        "  %e = sub %x, %b\n  %p = exp %e\n"
        "  %s = reduce_sum %p {axes = [1]}\n"
        "  %c = broadcast %s {shape = [2000, 65], dims = [0]}\n"
        "  %y = div %p, %c\n  return %y\n}\n");
}

TEST_F(determinism, reductions_over_rows_and_columns) {
  check("func @main(%x: f32[3000,65], %g: f32[3000,65]) -> (f32[3000], f32[65]) {\n"
        "  %p = mul %x, %g\n"
        "  %r = reduce_sum %p {axes = [1]}\n"
        "  %b = broadcast %r {shape = [3000, 65], dims = [0]}\n"
        "  %q = mul %p, %b\n"
        "  %c = reduce_sum %q {axes = [0]}\n"
        "  return %r, %c\n}\n");
}

TEST_F(determinism, training_step_with_and_without_donation) {
  const Function step = training_step(read_function("tests/data/transformer_loss_medium.ir"));
  const std::vector<Literal> inputs = step_inputs(step, 300);
  std::vector<bool> donated;
  for (ValueId arg : step.args()) donated.push_back(is_float(step.type(arg).dtype));
  check(step, inputs);
  check(step, inputs, donated);
  const Target target = test::runnable_targets().back();
  Options options;
  const std::vector<Literal> kept = test::run_machine(build_program(step, target, options), inputs, target);
  options.donated = donated;
  const std::vector<Literal> taken = test::run_machine(build_program(step, target, options), inputs, target);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i] == taken[i]) << "result " << i;
}

}  // namespace
}  // namespace burin::passes
