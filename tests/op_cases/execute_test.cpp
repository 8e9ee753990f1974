#include "tests/op_cases/execute.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/eval/eval.h"
#include "tests/support/values.h"

namespace burin::op_cases {
namespace {

using test::values;

TEST(Executions, TheEvaluatorAgreesWithItself) {
  for (int i = 0; i < num_ops; ++i)
    EXPECT_EQ(check_executions(static_cast<Op>(i), ir::evaluate), std::vector<std::string>{}) << info(static_cast<Op>(i)).name;
}

// An executor that is wrong by a little, or in the sign of zero alone, is found out.
TEST(Executions, WrongExecutorsAreNoticed) {
  const auto off = [](double relative) {
    return [=](const Function& f, std::span<const Literal> args) {
      std::vector<Literal> results = ir::evaluate(f, args);
      for (Literal& result : results)
        if (is_float(result.dtype()))
          for (std::int64_t i = 0; i < result.shape().size(); ++i) result.set(i, result.at(i) * (1 + relative));
      return results;
    };
  };
  for (Op op : {Op::add, Op::exp, Op::reduce_sum, Op::dot_general, Op::gather, Op::checkpoint})
    EXPECT_NE(check_executions(op, off(1e-4)), std::vector<std::string>{}) << ir::name(op);
  EXPECT_NE(check_executions(Op::add, off(1e-7)), std::vector<std::string>{});
  const auto unsigned_zeros = [](const Function& f, std::span<const Literal> args) {
    std::vector<Literal> results = ir::evaluate(f, args);
    for (Literal& result : results)
      if (is_float(result.dtype()))
        for (std::int64_t i = 0; i < result.shape().size(); ++i)
          if (result.at(i) == 0) result.set(i, 0.0);
    return results;
  };
  EXPECT_NE(check_executions(Op::neg, unsigned_zeros), std::vector<std::string>{});
}

TEST(Executions, AccuracyCountsUlps) {
  const Literal one = values(f32, "1 -2"), next = values(f32, "0x1.000002p0 -2"), far = values(f32, "0x1.000008p0 -2");
  EXPECT_EQ(inaccuracy(next, one, {.ulps = 2}), "");
  EXPECT_NE(inaccuracy(next, one, {}), "");
  EXPECT_NE(inaccuracy(far, one, {.ulps = 2}), "");
  EXPECT_EQ(inaccuracy(far, one, {.any_order = true}), "");
  EXPECT_NE(inaccuracy(values(f32, "inf 1"), values(f32, "1 1"), {.ulps = 2, .any_order = true}), "");
  EXPECT_NE(inaccuracy(values(i32, "1"), values(i32, "2"), {.ulps = 2, .any_order = true}), "");
  EXPECT_EQ(inaccuracy(values(f64, "nan"), values(f64, "-nan"), {}), "");
}

}  // namespace
}  // namespace burin::op_cases
