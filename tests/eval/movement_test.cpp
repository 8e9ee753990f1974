#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::text;
using test::values;

const std::vector<DType> one_of_each_width{f64, f32, bf16, f16, i8, u32, u64};

Literal count(DType dtype, const Shape& shape) {
  Literal result(Type{dtype, shape});
  for (std::int64_t i = 0; i < shape.size(); ++i) result.set(i, static_cast<double>(i));
  return result;
}

TEST(EvalMovement, OfA2x3InEveryWidth) {
  for (DType dtype : one_of_each_width) {
    const Literal x = count(dtype, {2, 3});
    EXPECT_EQ(text(apply<Op::transpose>({x}, {.permutation = {1, 0}})), "0 3 1 4 2 5") << dtype;
    EXPECT_EQ(text(apply<Op::reverse>({x}, {.axes = {0}})), "3 4 5 0 1 2") << dtype;
    EXPECT_EQ(text(apply<Op::reverse>({x}, {.axes = {0, 1}})), "5 4 3 2 1 0") << dtype;
    EXPECT_EQ(text(apply<Op::slice>({x}, {.start = {0, 1}, .limit = {2, 3}, .stride = {1, 1}})), "1 2 4 5") << dtype;
    EXPECT_EQ(text(apply<Op::slice>({x}, {.start = {1, 0}, .limit = {2, 3}, .stride = {1, 2}})), "3 5") << dtype;
    EXPECT_EQ(text(apply<Op::reshape>({x}, {.shape = {3, 1, 2}})), "0 1 2 3 4 5") << dtype;
    EXPECT_EQ(text(apply<Op::concatenate>({x, count(dtype, {1, 3})}, {.axis = 0})), "0 1 2 3 4 5 0 1 2") << dtype;
    EXPECT_EQ(text(apply<Op::concatenate>({x, count(dtype, {2, 1}), x}, {.axis = 1})), "0 1 2 0 0 1 2 3 4 5 1 3 4 5");
    EXPECT_EQ(text(apply<Op::broadcast>({x}, {.shape = {2, 2, 3}, .dims = {1, 2}})), "0 1 2 3 4 5 0 1 2 3 4 5")
        << dtype;
    EXPECT_EQ(text(apply<Op::broadcast>({x}, {.shape = {2, 2, 3}, .dims = {0, 2}})), "0 1 2 0 1 2 3 4 5 3 4 5")
        << dtype;
  }
  const Literal bools = values(bool_, {2, 3}, "0 1 1 0 0 1");
  EXPECT_EQ(text(apply<Op::transpose>({bools}, {.permutation = {1, 0}})), "0 0 1 0 1 1");
}

TEST(EvalMovement, BroadcastStretchesOnes) {
  const Literal column = values(f32, {2, 1}, "1 2");
  EXPECT_EQ(text(apply<Op::broadcast>({column}, {.shape = {2, 3}, .dims = {0, 1}})), "1 1 1 2 2 2");
  EXPECT_EQ(text(apply<Op::broadcast>({column}, {.shape = {2, 2, 2}, .dims = {0, 2}})), "1 1 1 1 2 2 2 2");
  const Literal scalar = apply<Op::broadcast>({Literal::scalar(f32, 7)}, {.shape = {3, 5}, .dims = {}});
  EXPECT_TRUE(scalar.is_splat());
  EXPECT_EQ(scalar, Literal::splat({3, 5}, Literal::scalar(f32, 7)));
}

TEST(EvalMovement, TransposeOfThreeAxesByEveryPermutation) {
  const Literal x = count(i32, {2, 3, 5});
  const std::int64_t strides[] = {15, 5, 1}, extents[] = {2, 3, 5};
  Ints p{0, 1, 2};
  do {
    const Literal y = apply<Op::transpose>({x}, {.permutation = p});
    std::int64_t next = 0;
    const auto at = [&](std::size_t axis) { return static_cast<std::size_t>(p[axis]); };
    for (std::int64_t a = 0; a < extents[at(0)]; ++a)
      for (std::int64_t b = 0; b < extents[at(1)]; ++b)
        for (std::int64_t c = 0; c < extents[at(2)]; ++c)
          ASSERT_EQ(y.int_at(next++), a * strides[at(0)] + b * strides[at(1)] + c * strides[at(2)]);
  } while (std::next_permutation(p.begin(), p.end()));
}

TEST(EvalMovement, PadAroundBetweenAndNegative) {
  const auto pad = [](const Literal& x, Ints low, Ints high, Ints interior) {
    return apply<Op::pad>({x, Literal::scalar(x.dtype(), 9)}, {.low = low, .high = high, .interior = interior});
  };
  for (DType dtype : one_of_each_width) {
    const Literal x = count(dtype, {3});
    EXPECT_EQ(text(pad(x, {1}, {2}, {0})), "9 0 1 2 9 9") << dtype;
    EXPECT_EQ(text(pad(x, {0}, {0}, {2})), "0 9 9 1 9 9 2") << dtype;
    EXPECT_EQ(text(pad(x, {-1}, {0}, {0})), "1 2") << dtype;
    EXPECT_EQ(text(pad(x, {-1}, {1}, {1})), "9 1 9 2 9") << dtype;
    EXPECT_EQ(text(pad(x, {0}, {-2}, {0})), "0") << dtype;
    EXPECT_EQ(text(pad(x, {2}, {-4}, {0})), "9") << dtype;
  }
  EXPECT_EQ(text(pad(count(f32, {2, 2}), {1, -1}, {0, 1}, {0, 1})), "9 9 9 9 1 9 9 3 9");
  EXPECT_EQ(text(pad(Literal(Type{f32, {0}}), {2}, {1}, {3})), "9 9 9");
  EXPECT_EQ(pad(Literal(Type{f32, {0, 3}}), {0, 0}, {0, 0}, {0, 0}).type(), (Type{f32, {0, 3}}));
}

TEST(EvalMovement, SizesZeroAndOne) {
  const Literal empty(Type{f32, {3, 0}}), one = values(f32, {1, 1}, "7");
  EXPECT_EQ(apply<Op::transpose>({empty}, {.permutation = {1, 0}}).type(), (Type{f32, {0, 3}}));
  EXPECT_EQ(apply<Op::reverse>({empty}, {.axes = {0, 1}}).type(), empty.type());
  EXPECT_EQ(apply<Op::reshape>({empty}, {.shape = {0}}).type(), (Type{f32, {0}}));
  EXPECT_EQ(apply<Op::broadcast>({empty}, {.shape = {2, 3, 0}, .dims = {1, 2}}).type(), (Type{f32, {2, 3, 0}}));
  EXPECT_EQ(apply<Op::broadcast>({Literal(Type{f32, {1}})}, {.shape = {0}, .dims = {0}}).type(), (Type{f32, {0}}));
  EXPECT_EQ(apply<Op::slice>({empty}, {.start = {1, 0}, .limit = {2, 0}, .stride = {1, 1}}).type(),
            (Type{f32, {1, 0}}));
  EXPECT_EQ(text(apply<Op::concatenate>({Literal(Type{f32, {1, 0}}), one}, {.axis = 1})), "7");
  EXPECT_EQ(text(apply<Op::transpose>({one}, {.permutation = {1, 0}})), "7");
  EXPECT_EQ(text(apply<Op::reverse>({one}, {.axes = {0}})), "7");
  EXPECT_EQ(text(apply<Op::reshape>({one}, {.shape = {}})), "7");
  EXPECT_EQ(text(apply<Op::transpose>({Literal::scalar(f32, 7)}, {.permutation = {}})), "7");
  EXPECT_EQ(text(apply<Op::slice>({Literal::scalar(f32, 7)}, {})), "7");
}

TEST(EvalMovement, SplatsStaySplats) {
  const Literal x = Literal::splat({4, 6}, Literal::scalar(i32, 3));
  EXPECT_TRUE(apply<Op::transpose>({x}, {.permutation = {1, 0}}).is_splat());
  EXPECT_TRUE(apply<Op::reverse>({x}, {.axes = {1}}).is_splat());
  EXPECT_TRUE(apply<Op::reshape>({x}, {.shape = {24}}).is_splat());
  const Literal part = apply<Op::slice>({x}, {.start = {0, 0}, .limit = {1, 1}, .stride = {1, 1}});
  EXPECT_EQ(text(part), "3");
  EXPECT_EQ(part.raw().size(), 4u);
}

}  // namespace
}  // namespace burin::ir
