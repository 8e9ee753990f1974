#include "passes/lower/work.h"

#include <gtest/gtest.h>

#include "ir/parser.h"

namespace burin::passes::lower {
namespace {

Work work(std::string_view text) { return work_of(ir::parse(text)); }

TEST(Work, CountsArithmeticAndEachArgumentOnce) {
  const Work w = work(R"(func @main(%x: f32[3,5], %s: f32[5], %n: i32[3,5]) -> (f32[3], i32[3,5]) {
    %b = broadcast %s {shape = [3, 5], dims = [1]}
    %0 = mul %x, %b
    %1 = exp %0
    %2 = add %1, %x
    %3 = reduce_sum %2 {axes = [1]}
    %4 = add %n, %n
    return %3, %4
  })");
  EXPECT_EQ(w.flops, 3 * 15 + 15);
  EXPECT_EQ(w.bytes, 4 * (15 + 5 + 15) + 4 * (3 + 15));
}

TEST(Work, OfADotIsTwoForEachPair) {
  const Work w = work(R"(func @main(%x: bf16[2,3,5], %y: bf16[2,5,7]) -> (f32[2,3,7]) {
    %0 = dot_general %x, %y {lhs_contract = [2], rhs_contract = [1], lhs_batch = [0], rhs_batch = [0], dtype = f32}
    return %0
  })");
  EXPECT_EQ(w.flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(w.bytes, 2 * (30 + 70) + 4 * 42);
}

TEST(Work, OfAGatherIsWhatItTakes) {
  const std::string gather = " {offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 3]}";
  const Work few = work("func @main(%t: f32[100,3], %i: i32[4]) -> (f32[4,3]) { %0 = gather %t, %i" + gather + " return %0 }");
  EXPECT_EQ(few.flops, 0);
  EXPECT_EQ(few.bytes, 4 * (12 + 4 + 12));
  const Work many = work("func @main(%t: f32[2,3], %i: i32[400]) -> (f32[400,3]) { %0 = gather %t, %i" + gather + " return %0 }");
  EXPECT_EQ(many.bytes, 4 * (6 + 400 + 1200)) << "a table is read at most once";
}

TEST(Work, IsThatOfTheElementsThatAreAskedFor) {
  const Work w = work(R"(func @main(%x: f32[8,100], %m: f32[8], %i: i32[8,1,1]) -> (f32[8,1]) {
    %0 = broadcast %m {shape = [8, 100], dims = [0]}
    %1 = sub %x, %0
    %2 = gather %1, %i {collapsed_slice_dims = [1], operand_batching_dims = [0], indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2, slice_sizes = [1, 1]}
    return %2
  })");
  EXPECT_EQ(w.flops, 8);
  EXPECT_EQ(w.bytes, 4 * (8 + 8 + 8 + 8));
}

TEST(Work, OfNothingIsNothing) {
  const Work w = work("func @main(%x: f32[0,5]) -> (f32[0,5]) { %0 = exp %x return %0 }");
  EXPECT_EQ(w.flops, 0);
  EXPECT_EQ(w.bytes, 0);
}

}  // namespace
}  // namespace burin::passes::lower
