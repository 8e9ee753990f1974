#include <gtest/gtest.h>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::text;
using test::values;

const std::vector<DType> numbers{f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64};

std::string reduce(Op op, const Literal& x, const Ints& axes) {
  return text(test::apply_op(op, std::vector<Literal>{x}, {axes})[0]);
}

TEST(EvalReduce, EveryAxisOfA3x5) {
  for (DType dtype : numbers) {
    const Literal x = values(dtype, {3, 5}, "1 2 3 4 5  5 4 3 2 1  0 1 0 2 1");
    EXPECT_EQ(reduce(Op::reduce_sum, x, {0}), "6 7 6 8 7") << dtype;
    EXPECT_EQ(reduce(Op::reduce_sum, x, {1}), "15 15 4") << dtype;
    EXPECT_EQ(reduce(Op::reduce_sum, x, {0, 1}), "34") << dtype;
    EXPECT_EQ(reduce(Op::reduce_sum, x, {}), text(x)) << dtype;
    EXPECT_EQ(reduce(Op::reduce_max, x, {0}), "5 4 3 4 5") << dtype;
    EXPECT_EQ(reduce(Op::reduce_min, x, {1}), "1 1 0") << dtype;
    EXPECT_EQ(reduce(Op::reduce_prod, x, {1}), "120 120 0") << dtype;
    EXPECT_EQ(text(apply<Op::argmax>({x}, {.axis = 0, .dtype = i32})), "1 1 0 0 0") << dtype;
    EXPECT_EQ(text(apply<Op::argmin>({x}, {.axis = 1, .dtype = u8})), "0 4 0") << dtype;
  }
}

TEST(EvalReduce, TheMiddleOfThreeAxes) {
  const Literal x = values(i32, {2, 3, 2}, "0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(reduce(Op::reduce_sum, x, {1}), "6 9 24 27");
  EXPECT_EQ(reduce(Op::reduce_sum, x, {0, 2}), "14 22 30");
  EXPECT_EQ(text(apply<Op::argmax>({x}, {.axis = 1, .dtype = i64})), "2 2 2 2");
  EXPECT_EQ(text(apply<Op::argmin>({x}, {.axis = 2, .dtype = i64})), "0 0 0 0 0 0");
}

TEST(EvalReduce, NothingGivesTheIdentity) {
  const Shape empty{0, 2};
  for (DType dtype : numbers) {
    EXPECT_EQ(reduce(Op::reduce_sum, Literal(Type{dtype, empty}), {0}), "0 0");
    EXPECT_EQ(reduce(Op::reduce_prod, Literal(Type{dtype, empty}), {0}), "1 1");
    EXPECT_EQ(reduce(Op::reduce_sum, Literal(Type{dtype, empty}), {1}), "");
  }
  for (DType dtype : {f64, f32, bf16, f16}) {
    EXPECT_EQ(reduce(Op::reduce_max, Literal(Type{dtype, empty}), {0}), "-inf -inf");
    EXPECT_EQ(reduce(Op::reduce_min, Literal(Type{dtype, empty}), {0}), "inf inf");
  }
  EXPECT_EQ(reduce(Op::reduce_max, Literal(Type{i8, empty}), {0}), "-128 -128");
  EXPECT_EQ(reduce(Op::reduce_min, Literal(Type{i8, empty}), {0}), "127 127");
  EXPECT_EQ(reduce(Op::reduce_max, Literal(Type{u16, empty}), {0}), "0 0");
  EXPECT_EQ(reduce(Op::reduce_min, Literal(Type{u64, empty}), {0}), "18446744073709551615 18446744073709551615");
  EXPECT_EQ(reduce(Op::reduce_and, Literal(Type{i32, empty}), {0}), "-1 -1");
  EXPECT_EQ(reduce(Op::reduce_or, Literal(Type{i32, empty}), {0}), "0 0");
  EXPECT_EQ(reduce(Op::reduce_and, Literal(Type{bool_, empty}), {0}), "1 1");
  EXPECT_EQ(reduce(Op::reduce_or, Literal(Type{bool_, empty}), {0}), "0 0");
  EXPECT_EQ(reduce(Op::reduce_sum, Literal(Type{bool_, empty}), {0}), "0 0");
  EXPECT_EQ(reduce(Op::reduce_prod, Literal(Type{bool_, empty}), {0}), "1 1");
  EXPECT_EQ(reduce(Op::reduce_max, Literal(Type{bool_, empty}), {0}), "0 0");
  EXPECT_EQ(reduce(Op::reduce_min, Literal(Type{bool_, empty}), {0}), "1 1");
}

TEST(EvalReduce, SumsRoundOnce) {
  const Literal ones = Literal::splat({1000}, Literal::scalar(bf16, 1));
  EXPECT_EQ(reduce(Op::reduce_sum, ones, {0}), "1000");
  EXPECT_EQ(reduce(Op::reduce_sum, values(f16, "2048 1 1 1 1"), {0}), "2052");
  EXPECT_EQ(reduce(Op::reduce_sum, values(f32, "1e8 1 -1e8"), {0}), "1");
  EXPECT_EQ(reduce(Op::reduce_sum, values(f64, "1e16 1 -1e16"), {0}), "1");
  EXPECT_EQ(reduce(Op::reduce_prod, values(f32, "1e30 1e30 1e-30"), {0}), "1e+30");
}

TEST(EvalReduce, IntegersWrapAndBoolsAreOrAndAnd) {
  EXPECT_EQ(reduce(Op::reduce_sum, values(i8, "100 100 100"), {0}), "44");
  EXPECT_EQ(reduce(Op::reduce_prod, values(u8, "16 16 3"), {0}), "0");
  EXPECT_EQ(reduce(Op::reduce_sum, values(u32, "4294967295 2"), {0}), "1");
  EXPECT_EQ(reduce(Op::reduce_sum, values(bool_, {2, 2}, "0 1 0 0"), {1}), "1 0");
  EXPECT_EQ(reduce(Op::reduce_prod, values(bool_, {2, 2}, "0 1 1 1"), {1}), "0 1");
  EXPECT_EQ(reduce(Op::reduce_max, values(bool_, {2, 2}, "0 1 0 0"), {1}), "1 0");
  EXPECT_EQ(reduce(Op::reduce_and, values(u8, "14 7 6"), {0}), "6");
  EXPECT_EQ(reduce(Op::reduce_or, values(i64, "8 1 2"), {0}), "11");
}

TEST(EvalReduce, NanWins) {
  for (DType dtype : {f64, f32, bf16, f16}) {
    EXPECT_EQ(reduce(Op::reduce_max, values(dtype, "7 nan -2.5 11 inf"), {0}), "nan");
    EXPECT_EQ(reduce(Op::reduce_min, values(dtype, "7 nan -2.5 11 -inf"), {0}), "nan");
    EXPECT_EQ(reduce(Op::reduce_max, values(dtype, "-0 0"), {0}), "0");
    EXPECT_EQ(reduce(Op::reduce_min, values(dtype, "0 -0"), {0}), "-0");
    EXPECT_EQ(text(apply<Op::argmax>({values(dtype, "1 nan 7 nan")}, {.axis = 0, .dtype = i32})), "1");
    EXPECT_EQ(text(apply<Op::argmin>({values(dtype, "1 2 nan -7")}, {.axis = 0, .dtype = i32})), "2");
    EXPECT_EQ(text(apply<Op::argmax>({values(dtype, "-inf -inf")}, {.axis = 0, .dtype = i32})), "0");
  }
}

TEST(EvalReduce, ArgmaxOfTiesIsTheFirst) {
  EXPECT_EQ(text(apply<Op::argmax>({values(i32, "1 7 7 2")}, {.axis = 0, .dtype = i32})), "1");
  EXPECT_EQ(text(apply<Op::argmin>({values(f32, "0 -0 -0")}, {.axis = 0, .dtype = i32})), "0");
  EXPECT_EQ(text(apply<Op::argmax>({values(bool_, "0 1 1")}, {.axis = 0, .dtype = u8})), "1");
  EXPECT_EQ(text(apply<Op::argmax>({values(u64, "1 0xffffffffffffffff 2")}, {.axis = 0, .dtype = i32})), "1");
  EXPECT_EQ(apply<Op::argmax>({Literal(Type{f32, {0, 3}})}, {.axis = 1, .dtype = i32}).type(), (Type{i32, {0}}));
}

}  // namespace
}  // namespace burin::ir
