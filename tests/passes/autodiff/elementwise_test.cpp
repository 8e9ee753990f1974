// Elementwise derivatives where finite differences do not reach: at kinks, at the ends of domains, in half types. That the
// formulas are right elsewhere is the op-case table's business.
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"
#include "tests/passes/autodiff/differentiate.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using test::gradients;
using test::values;

std::string unary(std::string_view op, std::string_view points) {
  const ir::Literal x = values(f64, points);
  const std::string n = std::to_string(x.shape().size());
  return gradients("func @f(%x: f64[" + n + "]) { %y = " + std::string(op) + " %x return %y }",
                   {x, ir::Literal::splat(x.shape(), ir::Literal::scalar(f64, 1))});
}

std::string binary(std::string_view op, std::string_view x, std::string_view y) {
  const ir::Literal a = values(f64, x);
  const std::string n = std::to_string(a.shape().size());
  return gradients("func @f(%x: f64[" + n + "], %y: f64[" + n + "]) { %z = " + std::string(op) + " %x, %y return %z }",
                   {a, values(f64, y), ir::Literal::splat(a.shape(), ir::Literal::scalar(f64, 1))});
}

TEST(AutodiffElementwise, LimitsAreTheMathematicalOnes) {
  EXPECT_EQ(unary("abs", "0 -2 3"), "0 -1 1");
  EXPECT_EQ(unary("sqrt", "0 4"), "inf 0.25");
  EXPECT_EQ(unary("cbrt", "0 -8"), "inf 0.08333333333333333");
  EXPECT_EQ(unary("rsqrt", "0 4"), "-inf -0.0625");
  EXPECT_EQ(unary("tanh", "inf 1000 -1000"), "0 0 0");
  EXPECT_EQ(unary("logistic", "inf 1000 -1000"), "0 0 0");
  EXPECT_EQ(unary("erf", "0 1e20 -inf"), "1.1283791670955126 0 0");
  EXPECT_EQ(unary("log", "0 inf"), "inf 0");
  EXPECT_EQ(unary("exp", "-inf 0"), "0 1");
  EXPECT_EQ(unary("asin", "1 -1 0"), "inf inf 1");
  EXPECT_EQ(unary("acosh", "1"), "inf");
  EXPECT_EQ(unary("atan", "inf 0"), "0 1");
}

TEST(AutodiffElementwise, StepsHaveSlopeZero) {
  for (std::string_view op : {"sign", "floor", "ceil", "trunc", "round_even", "round_away", "stop_gradient"})
    EXPECT_EQ(unary(op, "-1 0 0.5 2.5"), "0 0 0 0") << op;
}

TEST(AutodiffElementwise, TiesAreShared) {
  EXPECT_EQ(binary("max", "1 2 3 nan", "1 5 0 1"), "0.5 0 1 0\n0.5 1 0 0");
  EXPECT_EQ(binary("min", "1 2 3 -inf", "1 5 0 -inf"), "0.5 1 0 0.5\n0.5 0 1 0.5");
}

TEST(AutodiffElementwise, PowersAtZero) {
  EXPECT_EQ(binary("pow", "0 0 0 3 -2", "0 2 1 0 3"), "0 0 1 0 12\n0 0 0 1.0986122886681098 nan");
}

TEST(AutodiffElementwise, ClampIsFlatOutsideAndTheBoundsMoveTheRest) {
  const char* program = "func @f(%l: f64[5], %x: f64[5], %h: f64[5]) { %y = clamp %l, %x, %h return %y }";
  EXPECT_EQ(gradients(program, {values(f64, "0 0 0 0 3"), values(f64, "-1 0 0.5 2 1"), values(f64, "1 1 1 1 2"),
                                values(f64, "1 1 1 1 1")}),
            "1 0 0 0 0\n0 1 1 0 0\n0 0 0 1 1");
}

TEST(AutodiffElementwise, IntegersCarryNoTangent) {
  const char* program = R"(func @f(%x: f64[3]) {
    %i = convert %x {dtype = i32}
    %b = gt %x, %x
    %f = is_finite %x
    %back = convert %i {dtype = f64}
    return %i, %b, %f, %back, %x
  })";
  const ir::Function f = ir::parse(program);
  const Jvp jvp = passes::jvp(f, {true});
  EXPECT_EQ(jvp.result_active, (std::vector<bool>{false, false, false, false, true}));
  EXPECT_EQ(jvp.function.results().size(), 6u);
  const Vjp vjp = passes::vjp(f, {true});
  EXPECT_EQ(vjp.pullback.args().size(), vjp.num_residuals + 2);  // cotangents of %back and %x alone
}

TEST(AutodiffElementwise, ArgsThatAreNotActiveGetNothing) {
  const ir::Function f = ir::parse("func @f(%x: f32[3], %y: f32[3]) { %z = mul %x, %y return %z }");
  EXPECT_EQ(test::gradient(f, {false, true}).results().size(), 2u);
  EXPECT_EQ(jvp(f, {false, false}).function.results().size(), 1u);
}

TEST(AutodiffElementwise, ConvertsBringTheCotangentBackToTheDtypeOfTheArg) {
  const char* program = R"(func @f(%x: bf16[2]) {
    %w = convert %x {dtype = f32}
    %y = mul %w, %w
    return %y
  })";
  EXPECT_EQ(gradients(program, {values(bf16, "1.5 -3"), values(f32, "1 0.5")}), "3 -3");
  const ir::Function f = ir::parse(program);
  const ir::Function g = test::gradient(f, {true});
  EXPECT_EQ(g.type(g.results()[1]).dtype, bf16);
}

}  // namespace
}  // namespace burin::passes
