#include "ir/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/printer.h"
#include "tests/support/values.h"

namespace burin::ir {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Hash128 hash_of(const Literal& literal) {
  Hasher hasher;
  literal.hash(hasher);
  return hasher.finish();
}

TEST(Literal, StartsAtZeroInEveryDtype) {
  for (int i = 0; i < num_dtypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    Literal literal(Type{dtype, {3, 5}});
    EXPECT_EQ(literal.raw().size(), 15 * size_of(dtype));
    for (std::int64_t k = 0; k < 15; ++k) EXPECT_EQ(literal.at(k), 0) << dtype;
    literal.set(14, 1);
    EXPECT_EQ(literal.at(14), 1) << dtype;
    EXPECT_EQ(literal.at(13), 0) << dtype;
    EXPECT_TRUE(Literal(Type{dtype, {2, 0}}).raw().empty());
  }
}

TEST(Literal, FloatsRoundOnce) {
  EXPECT_EQ(Literal::scalar(f32, 0.1).at(0), static_cast<double>(0.1f));
  EXPECT_EQ(Literal::scalar(bf16, 1 + 0x1p-8 + 0x1p-40).at(0), 1 + 0x1p-7) << "just above the tie";
  EXPECT_EQ(Literal::scalar(f16, 1 + 0x1p-11).at(0), 1) << "the tie goes to even";
  EXPECT_EQ(Literal::scalar(f16, 70000).at(0), infinity);
}

TEST(Literal, IntegersTruncateAndWrap) {
  EXPECT_EQ(Literal::scalar(i8, -1.9).int_at(0), -1);
  EXPECT_EQ(Literal::scalar(i8, 300).int_at(0), 44);
  EXPECT_EQ(Literal::scalar(u8, -1).int_at(0), 255);
  EXPECT_EQ(Literal::scalar(u64, 0x1p63).int_at(0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Literal::scalar(u64, -1).at(0), 0x1p64);
  EXPECT_EQ(Literal::scalar(i32, 0x1p70).int_at(0), 0);
  EXPECT_EQ(Literal::scalar(i32, std::nan("")).int_at(0), 0);
  EXPECT_EQ(Literal::scalar(i32, infinity).int_at(0), 0);
  EXPECT_EQ(Literal::scalar(bool_, 0.25).int_at(0), 1);
  EXPECT_EQ(Literal::scalar_int(bool_, 2).int_at(0), 1);
  EXPECT_EQ(Literal::scalar_int(i16, 65535).int_at(0), -1);
  EXPECT_EQ(Literal::scalar_int(f32, -3).at(0), -3);
}

TEST(Literal, ASplatEqualsItsExpansion) {
  const Literal splat = Literal::splat({3, 5}, Literal::scalar(f32, 0.5));
  Literal expanded = splat;
  expanded.expand();
  EXPECT_TRUE(splat.is_splat());
  EXPECT_FALSE(expanded.is_splat());
  EXPECT_EQ(splat.raw().size(), 4u);
  EXPECT_EQ(expanded.raw().size(), 60u);
  EXPECT_EQ(splat, expanded);
  EXPECT_EQ(hash_of(splat), hash_of(expanded));
  EXPECT_EQ(splat.at(14), 0.5);
  expanded.set(7, 1);
  EXPECT_FALSE(splat == expanded);
  EXPECT_NE(hash_of(splat), hash_of(expanded));
  EXPECT_EQ(Literal::splat({1, 1}, Literal::scalar(f32, 2)), Literal::scalar(f32, 2).reshaped({1, 1}));
  EXPECT_TRUE(Literal::splat({0, 5}, Literal::scalar(f32, 2)).raw().empty());
}

TEST(Literal, WritingSplitsSharedBytes) {
  Literal a(Type{i32, {2}});
  const Literal b = a;
  a.set_int(1, 7);
  EXPECT_EQ(a.int_at(1), 7);
  EXPECT_EQ(b.int_at(1), 0);
  Literal splat = Literal::splat({3}, Literal::scalar_int(i32, 4));
  splat.set_int(0, 5);
  EXPECT_EQ(splat.int_at(0), 5);
  EXPECT_EQ(splat.int_at(2), 4);
}

TEST(Literal, EqualityIsOfTypesAndBits) {
  EXPECT_FALSE(Literal::scalar(f32, 0.0) == Literal::scalar(f32, -0.0));
  EXPECT_EQ(Literal::scalar(f32, std::nan("")), Literal::scalar(f32, std::nan("")));
  EXPECT_FALSE(Literal::scalar(i32, 1) == Literal::scalar(u32, 1));
  EXPECT_FALSE(Literal(Type{f32, {0, 2}}) == Literal(Type{f32, {2, 0}}));
}

TEST(Literal, SaysWhatDoesNotFitIntoMemory) {
  const std::int64_t n = std::int64_t{1} << 47;
  const auto message = [](const Type& type) {
    return test::error_of([&] { Literal literal(type); });
  };
  EXPECT_EQ(message({f32, {n}}), "out of memory: f32[140737488355328] takes 562949953421312 bytes (536870912.0 MiB)");
  EXPECT_EQ(message({u8, {n, 32768}}),
            "out of memory: u8[140737488355328,32768] takes 4611686018427387904 bytes (4398046511104.0 MiB)");
  Literal splat = Literal::splat({n, 2}, Literal::scalar(bf16, 3));
  EXPECT_EQ(splat.at(n), 3);
  EXPECT_EQ(test::error_of([&] { splat.expand(); }),
            "out of memory: bf16[140737488355328,2] takes 562949953421312 bytes (536870912.0 MiB)");
  EXPECT_TRUE(splat.is_splat()) << "unchanged";
}

TEST(Literal, PrintsAsNestedLists) {
  Literal literal(Type{f32, {2, 1, 2}});
  const double elements[] = {0.1, -0.0, infinity, std::nan("")};
  for (int i = 0; i < 4; ++i) literal.set(i, elements[i]);
  EXPECT_EQ(print(literal), "[[[0.1, -0]], [[inf, nan]]]");
  EXPECT_EQ(print(literal, 3), "dense<0.1, -0, inf, ...>");
  EXPECT_EQ(print(Literal::splat({1000, 1000}, Literal::scalar(bf16, 1.5)), 3), "1.5");
  EXPECT_EQ(print(Literal::scalar(u64, 0x1p63)), "9223372036854775808");
  EXPECT_EQ(print(Literal(Type{bool_, {2}})), "[false, false]");
  EXPECT_EQ(print(Literal(Type{i8, {1000000000, 0}})), "[]");
}

}  // namespace
}  // namespace burin::ir
