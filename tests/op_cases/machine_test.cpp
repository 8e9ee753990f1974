// Every op, its gradient and its batched form, as machine code on the widest target of this machine.
#include "tests/support/machine.h"

#include <gtest/gtest.h>

#include "passes/pipeline.h"
#include "tests/op_cases/execute.h"

namespace burin::op_cases {
namespace {

class Machine : public testing::TestWithParam<Op> {};

TEST_P(Machine, AgreesWithTheEvaluator) {
  if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  const Target target = test::runnable_targets().back();
  const auto run = [&](const Function& f, std::span<const Literal> args) {
    passes::Options options;
    options.excess_precision = false;  // the evaluator rounds after each op
    return test::run_machine(passes::build_program(f, target, options), args, target);
  };
  EXPECT_EQ(check_executions(GetParam(), run), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Op, Machine, testing::ValuesIn(all_ops()),
                         [](const auto& op) { return std::string(ir::name(op.param)); });

}  // namespace
}  // namespace burin::op_cases
