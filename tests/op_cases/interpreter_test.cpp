// The op-case table through the whole middle of the compiler: lowered, fused and not, for both instruction sets, and run by
// the kernel interpreter.
#include <gtest/gtest.h>

#include "ir/kernel/program.h"
#include "passes/pipeline.h"
#include "tests/op_cases/execute.h"

namespace burin::op_cases {
namespace {

class KernelInterpreter : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ops, KernelInterpreter, testing::Range(0, num_ops),
                         [](const auto& info) { return std::string(ir::name(static_cast<Op>(info.param))); });

TEST_P(KernelInterpreter, AgreesWithTheEvaluator) {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    for (bool fused : {true, false}) {
      Target target;
      target.isa = isa;
      passes::Options options;
      options.verify = true;
      if (!fused) options.disabled = {"fuse"};
      const auto broken = check_executions(static_cast<Op>(GetParam()), [&](const Function& f, std::span<const Literal> args) {
        return interpret(passes::build_program(f, target, options), args);
      });
      EXPECT_EQ(broken, std::vector<std::string>{}) << (isa == Isa::avx512 ? "avx512" : "avx2") << (fused ? "" : ", unfused");
    }
}

}  // namespace
}  // namespace burin::op_cases
