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

TEST(AutodiffReduce, TiesShareEqually) {
  const char* program = "func @f(%x: f64[3,5]) { %y = reduce_max %x {axes = [1]} return %y }";
  EXPECT_EQ(gradients(program, {values(f64, {3, 5}, "1 7 2 7 0  -1 -1 -1 -1 -1  nan 0 0 0 1"), values(f64, "1 5 1")}),
            "0 0.5 0 0.5 0 1 1 1 1 1 nan nan nan nan nan");
  const char* least = "func @f(%x: f64[4]) { %y = reduce_min %x {axes = [0]} return %y }";
  EXPECT_EQ(gradients(least, {values(f64, "3 -2 -2 0"), values(f64, {}, "1")}), "0 0.5 0.5 0");
}

TEST(AutodiffReduce, ANanSpoilsItsRowInBothModes) {
  const char* program = "func @f(%x: f64[2,2]) { %y = reduce_max %x {axes = [1]} return %y }";
  const ir::Literal x = values(f64, {2, 2}, "nan 1 3 2");
  EXPECT_EQ(gradients(program, {x, values(f64, "1 1")}), "nan nan 1 0");
  EXPECT_EQ(test::tangents(program, {x, values(f64, {2, 2}, "1 2 3 4")}), "nan 3");
}

TEST(AutodiffReduce, InfinitiesAreExtremaLikeOthers) {
  const char* program = "func @f(%x: f64[2,2]) { %y = reduce_min %x {axes = [1]} return %y }";
  EXPECT_EQ(gradients(program, {values(f64, {2, 2}, "-inf 1 inf inf"), values(f64, "1 1")}), "1 0 0.5 0.5");
}

TEST(AutodiffReduce, TheExtremumOfNothingIsConstant) {
  const char* program = "func @f(%x: f64[3,0]) { %y = reduce_max %x {axes = [1]} return %y }";
  EXPECT_EQ(gradients(program, {values(f64, {3, 0}, ""), values(f64, "1 1 1")}), "");
  EXPECT_EQ(passes::jvp(ir::parse(program), {true}).result_active, std::vector<bool>{false});
}

TEST(AutodiffReduce, ProductsWithZeros) {
  const char* program = "func @f(%x: f64[4]) { %y = reduce_prod %x {axes = [0]} return %y }";
  const ir::Literal one = values(f64, {}, "1");
  EXPECT_EQ(gradients(program, {values(f64, "2 3 5 7"), one}), "105 70 42 30");
  EXPECT_EQ(gradients(program, {values(f64, "2 0 5 7"), one}), "0 70 0 0");
  EXPECT_EQ(gradients(program, {values(f64, "2 0 0 7"), one}), "0 0 0 0");
}

TEST(AutodiffReduce, ProductsWithZerosToSecondOrder) {
  for (int zeros = 0; zeros < 4; ++zeros) {
    std::string points = "2 3 -5 7 1.5";
    for (int i = 0; i < zeros; ++i) points[static_cast<std::size_t>(2 * i + (i > 2))] = '0';
    const ir::Function f = ir::parse("func @f(%x: f64[5]) { %y = reduce_prod %x {axes = [0]} return %y }");
    EXPECT_EQ(test::check_second_order(f, std::vector<ir::Literal>{values(f64, zeros == 3 ? "0 0 0 7 1.5" : points)}, {true}), "")
        << zeros;
  }
}

// 240 * 240 * 0.001 * ... overflows f16 on the way, not in f32.
TEST(AutodiffReduce, ProductsOfHalfTypesMultiplyInF32) {
  const char* program = "func @f(%x: f16[4]) { %y = reduce_prod %x {axes = [0]} return %y }";
  EXPECT_EQ(gradients(program, {values(f16, "512 512 0.0009765625 2"), values(f16, {}, "0.5")}), "0.5 0.5 inf 128");
}

TEST(AutodiffReduce, ArgmaxHasNoTangent) {
  const ir::Function f = ir::parse(R"(func @f(%x: f32[3,5]) {
    %i = argmax %x {axis = 1, dtype = i32}
    %m = reduce_max %x {axes = [1]}
    return %i, %m
  })");
  EXPECT_EQ(jvp(f, {true}).result_active, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace burin::passes
