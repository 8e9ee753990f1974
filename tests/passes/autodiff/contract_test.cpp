#include <gtest/gtest.h>

#include "ir/parser.h"
#include "tests/passes/autodiff/differentiate.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using ir::Op;
using test::count_in_gradient;
using test::gradients;
using test::values;

constexpr std::string_view plain =
    "func @f(%x: f64[3,5], %w: f64[5,4]) { %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f64} "
    "return %y }";

TEST(AutodiffContract, AMatmulHasTwoMatmulsBehindIt) {
  EXPECT_EQ(count_in_gradient(plain, Op::dot_general), 3);
}

// Both cotangents come out in the layout of their argument or one transpose away; the activations' needs none.
TEST(AutodiffContract, TransposesStayFew) { EXPECT_LE(count_in_gradient(plain, Op::transpose), 1); }

TEST(AutodiffContract, AWiderResultIsNotRoundedFirst) {
  const char* program =
      "func @f(%x: bf16[1,2], %w: bf16[2,1]) { %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32} "
      "return %y }";
  // 1.01 is no bf16: rounded first it would give 1.0078125 * 3 = 3.02 -> 3.015625; 1.01 * 3 = 3.03 -> 3.03125.
  EXPECT_EQ(gradients(program, {values(bf16, {1, 2}, "1 2"), values(bf16, {2, 1}, "3 5"), values(f32, {1, 1}, "1.01")}),
            "3.03125 5.0625\n1.0078125 2.015625");
  const ir::Function f = ir::parse(program), g = test::gradient(f, {true, true});
  EXPECT_EQ(g.type(g.results()[1]), f.type(f.args()[0]));
}

TEST(AutodiffContract, AProductWithItself) {
  const char* program =
      "func @f(%x: f64[2,2]) { %y = dot_general %x, %x {lhs_contract = [1], rhs_contract = [0], dtype = f64} return %y }";
  const ir::Literal x = values(f64, {2, 2}, "1 2 3 4");
  EXPECT_EQ(test::check_second_order(ir::parse(program), std::vector<ir::Literal>{x}, {true}), "");
}

}  // namespace
}  // namespace burin::passes
