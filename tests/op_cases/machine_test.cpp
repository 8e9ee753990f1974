// The op-case table as machine code, for every instruction set that this machine has.
#include <gtest/gtest.h>

#include "passes/pipeline.h"
#include "tests/op_cases/execute.h"
#include "tests/support/machine.h"

#if BURIN_WITH_LLVM

namespace burin::op_cases {
namespace {

class MachineCode : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ops, MachineCode, testing::Range(0, num_ops),
                         [](const auto& info) { return std::string(ir::name(static_cast<Op>(info.param))); });

TEST_P(MachineCode, AgreesWithTheEvaluator) {
  for (const Target& target : test::runnable_targets()) {
    const auto broken = check_executions(
        static_cast<Op>(GetParam()),
        [&](const Function& f, std::span<const Literal> args) {
          return test::run_machine(passes::build_program(f, target, {}), args, target);
        },
        Extent::cases);
    EXPECT_EQ(broken, std::vector<std::string>{}) << to_string(target);
  }
}

}  // namespace
}  // namespace burin::op_cases

#endif
