// Both training steps that are measured give the same bits for any number of threads, with every step shared out among them.
#include <gtest/gtest.h>

#include <cmath>

#include "passes/pipeline.h"
#include "tests/frontend/traced_step.h"
#include "tests/support/machine.h"
#include "tests/support/threads.h"

namespace burin::test {
namespace {

class determinism : public testing::Test {
  void SetUp() override {
    if (!has_machine) GTEST_SKIP() << no_machine;
  }
};

void check(const StepShape& shape, const ir::Target& target) {
  const TracedStep step = traced_step(shape);
  passes::Options options;
  options.donated = step.donated;
  const ir::Program program = passes::build_program(step.function, target, options);
  const std::vector<ir::Literal> results = expect_same_for_any_threads(program, step.inputs(), target);
  // Near that of a guess: the step did its work.
  EXPECT_NEAR(results.back().at(0), std::log(shape.vocabulary), 1);
}

TEST_F(determinism, seed_step) {
  for (const ir::Target& target : runnable_targets()) check(seed_shape, target);
}

TEST_F(determinism, small_step) { check(small_shape, runnable_targets().back()); }

}  // namespace
}  // namespace burin::test
