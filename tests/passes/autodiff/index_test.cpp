#include <gtest/gtest.h>

#include "tests/passes/autodiff/differentiate.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using test::error_of;
using test::gradients;
using test::values;

std::string take(std::string_view mode) {
  return "func @f(%x: f64[3,2], %i: i32[4]) { %y = gather %x, %i {offset_dims = [1], collapsed_slice_dims = [0], "
         "start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 2]" +
         std::string(mode) + "} return %y }";
}

std::string put(std::string_view attributes) {
  return "func @f(%x: f64[3], %i: i32[4], %u: f64[4]) { %y = scatter %x, %i, %u {inserted_window_dims = [0], "
         "scatter_dims_to_operand_dims = [0], index_vector_dim = 1" +
         std::string(attributes) + "} return %y }";
}

const ir::Literal rows = values(f64, {3, 2}, "1 2 3 4 5 6"), ones = values(f64, {4, 2}, "1 1 1 1 1 1 1 10");
const ir::Literal three = values(f64, "1 2 3"), four = values(f64, "10 20 30 40"), up = values(f64, "1 2 4");

TEST(AutodiffIndex, RepeatedRowsAddUp) {
  EXPECT_EQ(gradients(take(""), {rows, values(i32, "2 0 2 2"), ones}), "1 1 0 0 3 12");
}

TEST(AutodiffIndex, ClippedRowsGoWhereTheyWereRead) {
  EXPECT_EQ(gradients(take(", mode = clip"), {rows, values(i32, "-7 0 99 1"), ones}), "2 2 1 10 1 1");
  const std::string program =
      "func @f(%x: f64[200], %i: i8[3]) { %y = gather %x, %i {collapsed_slice_dims = [0], start_index_map = [0], "
      "index_vector_dim = 1, slice_sizes = [1], mode = clip} %s = slice %y {start = [0], limit = [3], stride = [1]} return %s }";
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += (i > 0 ? " " : "") + std::string(i == 0 ? "1" : i == 127 ? "2" : "0");
  ir::Literal x(ir::Type{f64, {200}});
  EXPECT_EQ(gradients(program, {x, values(i8, "127 -128 127"), values(f64, "1 1 1")}), expected);
}

TEST(AutodiffIndex, ErrorModeReportsOnTheWayForward) {
  EXPECT_EQ(error_of([] { gradients(take(""), {rows, values(i32, "3 0 0 0"), ones}); }),
            "gather: index 3 is out of range for axis 0 of f64[3,2]: expected 0 to 2 (<text>:1)");
}

TEST(AutodiffIndex, ScatterAddGivesItsUpdatesWhatTheyAddedTo) {
  EXPECT_EQ(gradients(put(""), {three, values(i32, "2 0 2 1"), four, up}), "1 2 4\n4 1 4 2");
}

TEST(AutodiffIndex, DroppedUpdatesGetNothing) {
  EXPECT_EQ(gradients(put(", mode = clip"), {three, values(i32, "3 0 -1 1"), four, up}), "1 2 4\n0 1 0 2");
  EXPECT_EQ(gradients(put(", mode = clip, combine = set"), {three, values(i32, "3 0 -1 1"), four, up}), "0 0 4\n0 1 0 2");
}

TEST(AutodiffIndex, UpdatesOfAnEmptyArrayGetNothing) {
  for (const char* combine : {"add", "set"}) {
    const std::string program = "func @f(%x: f64[0], %i: i32[4], %u: f64[4]) { %y = scatter %x, %i, %u {inserted_window_dims = [0], "
                                "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, mode = clip, combine = " + std::string(combine) + "} return %y }";
    EXPECT_EQ(gradients(program, {values(f64, {0}, ""), values(i32, "0 1 -1 2"), four, values(f64, {0}, "")}), "\n0 0 0 0") << combine;
  }
}

TEST(AutodiffIndex, TheLastOfSeveralWritesWins) {
  EXPECT_EQ(gradients(put(", combine = set"), {three, values(i32, "2 0 2 2"), four, up}), "0 2 0\n0 1 0 4");
}

TEST(AutodiffIndex, OtherCombinationsSayThatTheyHaveNoDerivative) {
  for (std::string_view combine : {"mul", "min", "max"})
    EXPECT_EQ(error_of([&] {
                gradients(put(", combine = " + std::string(combine)), {three, values(i32, "2 0 2 2"), four, up});
              }),
              "scatter: not differentiable: it combines by " + std::string(combine) + "; use add or set (<text>:1)");
}

TEST(AutodiffIndex, SlicesAtClampedStarts) {
  const char* program = "func @f(%x: f64[4], %i: i32[]) { %y = dynamic_slice %x, %i {sizes = [2]} return %y }";
  EXPECT_EQ(gradients(program, {values(f64, "1 2 3 4"), values(i32, {}, "9"), values(f64, "5 7")}), "0 0 5 7");
  const char* update = R"(func @f(%x: f64[4], %u: f64[2], %i: i32[]) {
    %y = dynamic_update_slice %x, %u, %i
    return %y
  })";
  EXPECT_EQ(gradients(update, {values(f64, "1 2 3 4"), values(f64, "8 9"), values(i32, {}, "-3"), values(f64, "1 2 3 4")}),
            "0 0 3 4\n1 2");
}

TEST(AutodiffIndex, PaddingValuesGetTheSumOfTheirPlaces) {
  const char* program = R"(func @f(%x: f64[3], %v: f64[]) {
    %y = pad %x, %v {low = [1], high = [-1], interior = [1]}
    return %y
  })";
  // v x0 v x1 v; x2 is cut off.
  EXPECT_EQ(gradients(program, {values(f64, "1 2 3"), values(f64, {}, "9"), values(f64, "1 inf 2 10 4")}), "inf 10 0\n7");
}

}  // namespace
}  // namespace burin::passes
