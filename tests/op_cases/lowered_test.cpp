// Every op, its gradient and its batched form, lowered to kernels that verify, and interpreted.
#include <gtest/gtest.h>

#include "ir/kernel/program.h"
#include "passes/pipeline.h"
#include "tests/op_cases/execute.h"

namespace burin::op_cases {
namespace {

class Lowered : public testing::TestWithParam<Op> {
 protected:
  void check(bool fused) {
    std::vector<std::string> broken;
    const auto interpreted = [&](const Function& f, std::span<const Literal> args) {
      passes::Options options;
      options.excess_precision = false;  // the evaluator rounds after each op
      if (!fused) options.disabled = {"fuse"};
      Target target;
      target.isa = Isa::avx512;
      const Program program = passes::build_program(f, target, options);
      if (const std::string message = verify(program); !message.empty()) broken.push_back(message);
      return interpret(program, args);
    };
    EXPECT_EQ(check_executions(GetParam(), interpreted), std::vector<std::string>{});
    EXPECT_EQ(broken, std::vector<std::string>{});
  }
};

TEST_P(Lowered, Fused) { check(true); }
TEST_P(Lowered, Alone) { check(false); }

INSTANTIATE_TEST_SUITE_P(Op, Lowered, testing::ValuesIn(all_ops()),
                         [](const auto& op) { return std::string(ir::name(op.param)); });

}  // namespace
}  // namespace burin::op_cases
