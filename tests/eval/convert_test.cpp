// convert and bitcast: every 8- and 16-bit value to every dtype, the edges of the wider ones.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::text;
using test::values;

const std::vector<DType> all{f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64, bool_};
const std::vector<DType> floats{f64, f32, bf16, f16}, ints{i8, i16, i32, i64, u8, u16, u32, u64};

std::string convert(DType from, DType to, std::string_view x) {
  return text(apply<Op::convert>({values(from, x)}, {.dtype = to}));
}

// All bit patterns of an 8- or 16-bit dtype.
Literal every(DType dtype) {
  const std::int64_t n = dtype == bool_ ? 2 : std::int64_t{1} << (8 * size_of(dtype));
  Literal result(Type{dtype, {n}});
  for (std::int64_t i = 0; i < n; ++i) {
    std::byte* at = result.mutable_raw().data() + static_cast<std::size_t>(i) * size_of(dtype);
    std::memcpy(at, &i, size_of(dtype));  // little-endian: the low bytes
  }
  return result;
}

std::int64_t lowest(DType to) {
  return is_signed_int(to) ? static_cast<std::int64_t>(~std::uint64_t{0} << (8 * size_of(to) - 1)) : 0;
}
double beyond(DType to) { return std::ldexp(1.0, static_cast<int>(8 * size_of(to)) - is_signed_int(to)); }

TEST(EvalConvert, EveryNarrowValueToEveryDtype) {
  for (DType from : {bf16, f16, i8, u8, i16, u16, bool_}) {
    const Literal x = every(from);
    for (DType to : all) {
      const Literal result = apply<Op::convert>({x}, {.dtype = to});
      ASSERT_EQ(result.type(), (Type{to, x.shape()}));
      for (std::int64_t i = 0; i < x.type().size(); ++i) {
        const double value = x.at(i);  // exact
        if (is_float(to)) {
          const double rounded = to == bf16  ? bfloat16_value(bfloat16_bits(value))
                                 : to == f16 ? float16_value(float16_bits(value))
                                             : value;
          const double found = result.at(i);
          ASSERT_TRUE(std::isnan(value) ? std::isnan(found)
                                        : std::bit_cast<std::uint64_t>(found) == std::bit_cast<std::uint64_t>(rounded))
              << from << " " << value << " to " << to << ": " << found;
          ASSERT_TRUE(!std::isnan(value) || std::signbit(found) == std::signbit(value));
        } else if (to == bool_) {
          ASSERT_EQ(result.int_at(i), value != 0) << from << " " << value;
        } else if (is_float(from)) {
          const bool above = value >= beyond(to), below = value <= static_cast<double>(lowest(to));
          const std::uint64_t highest = ~std::uint64_t{0} >> (64 - 8 * size_of(to) + is_signed_int(to));
          const std::int64_t expected = std::isnan(value) ? 0
                                        : above           ? static_cast<std::int64_t>(highest)
                                        : below           ? lowest(to)
                                        : value < 0       ? static_cast<std::int64_t>(value)
                                                    : static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
          ASSERT_EQ(result.int_at(i), expected) << from << " " << value << " to " << to;
        } else {
          const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * size_of(to));
          ASSERT_EQ(static_cast<std::uint64_t>(result.int_at(i)) & mask, static_cast<std::uint64_t>(x.int_at(i)) & mask)
              << from << " " << value << " to " << to;
        }
      }
    }
  }
}

TEST(EvalConvert, FloatsSaturateToIntegersAndNanIsZero) {
  for (DType from : floats)
    for (DType to : ints) EXPECT_EQ(convert(from, to, "nan -0 0.75 1.75"), "0 0 0 1") << from << to;
  for (DType from : {f64, f32, bf16}) {
    EXPECT_EQ(convert(from, i8, "-1e30 -129 -128 127 128 inf -inf"), "-128 -128 -128 127 127 127 -128") << from;
    EXPECT_EQ(convert(from, u8, "-1 -0.5 255 256 1e30 -inf"), "0 0 255 255 255 0") << from;
    EXPECT_EQ(convert(from, i32, "-3e9 3e9 -1.5"), "-2147483648 2147483647 -1") << from;
    EXPECT_EQ(convert(from, u32, "5e9 -5e9"), "4294967295 0") << from;
    EXPECT_EQ(convert(from, i64, "0x1p63 -0x1p63 0x1p62"),
              "9223372036854775807 -9223372036854775808 4611686018427387904");
    EXPECT_EQ(convert(from, u64, "0x1p64 0x1p63 -1"), "18446744073709551615 9223372036854775808 0") << from;
  }
  EXPECT_EQ(convert(f64, i32, "2147483647.5 -2147483648.5"), "2147483647 -2147483648");
  EXPECT_EQ(convert(f32, i64, "-1.5 16777216"), "-1 16777216");
}

TEST(EvalConvert, RoundsOnce) {
  // Each lies just above a tie that a first rounding to f32 or f64 would reach exactly.
  EXPECT_EQ(convert(f64, bf16, "0x1.0100000001p0 0x1.01p0 0x1.03p0"), text(values(bf16, "0x1.02p0 1 0x1.04p0")));
  EXPECT_EQ(convert(f64, f16, "0x1.0020000001p0 0x1.002p0"), text(values(f16, "0x1.004p0 1")));
  EXPECT_EQ(convert(f64, f32, "0x1.0000010000001p0 0x1.000001p0 1e300"), text(values(f32, "0x1.000002p0 1 inf")));
  EXPECT_EQ(convert(i64, f64, "0x4000000000000201 9007199254740993"), text(values(f64, "0x1.0000000000001p62 0x1p53")));
  EXPECT_EQ(convert(i64, f32, "0x4000004000000001 0x4000004000000000 16777217"),
            text(values(f32, "0x1.000002p62 0x1p62 0x1p24")));
  EXPECT_EQ(convert(i64, bf16, "0x4040000000000001 0x4040000000000000 257"),
            text(values(bf16, "0x1.02p62 0x1p62 256")));
  EXPECT_EQ(convert(i64, bf16, "-4629700416936869889 -9223372036854775808"), text(values(bf16, "-0x1.02p62 -0x1p63")));
  EXPECT_EQ(convert(u64, f64, "0x8000000000000401 0xffffffffffffffff"),
            text(values(f64, "0x1.0000000000001p63 0x1p64")));
  EXPECT_EQ(convert(u64, f32, "0x8000008000000001 0x8000008000000000"), text(values(f32, "0x1.000002p63 0x1p63")));
  EXPECT_EQ(convert(u64, bf16, "0x8080000000000001 0x8080000000000000"), text(values(bf16, "0x1.02p63 0x1p63")));
  EXPECT_EQ(convert(u32, f32, "4294967295 16777217"), text(values(f32, "0x1p32 0x1p24")));
  EXPECT_EQ(convert(i32, f16, "2049 2051 65519 65520 -2049"), "2048 2052 65504 inf -2048");
  EXPECT_EQ(convert(u64, f16, "0xffffffffffffffff"), "inf");
}

TEST(EvalConvert, HalvesAtTheirEdges) {
  EXPECT_EQ(convert(f32, f16, "65504 65519 65520 0x1p-24 0x1p-25 0x1.8p-25 -0x1p-26"),
            text(values(f16, "65504 65504 inf 0x1p-24 0 0x1p-24 -0")));
  EXPECT_EQ(convert(f32, bf16, "3.4e38 0x1p-133 0x1p-134 0x1.1p-134 1.01"),
            text(values(bf16, "inf 0x1p-133 0 0x1p-133 1.0078125")));
  EXPECT_EQ(convert(bf16, f16, "1e30 0x1p-30"), "inf 0");
}

TEST(EvalConvert, IntegersWrapAndBoolsAreZeroOrOne) {
  EXPECT_EQ(convert(i32, i8, "128 255 -129 300"), "-128 -1 127 44");
  EXPECT_EQ(convert(i8, u64, "-1"), "18446744073709551615");
  EXPECT_EQ(convert(u64, i32, "0xffffffff80000000"), "-2147483648");
  EXPECT_EQ(convert(u8, i64, "255"), "255");
  for (DType to : all) EXPECT_EQ(convert(bool_, to, "0 1"), "0 1") << to;
  for (DType from : floats) EXPECT_EQ(convert(from, bool_, "0 -0 0.125 nan -inf"), "0 0 1 1 1") << from;
  for (DType from : ints) EXPECT_EQ(convert(from, bool_, "0 1 100"), "0 1 1") << from;
}

TEST(EvalConvert, NanKeepsItsSignAndBecomesQuiet) {
  const Literal x =
      apply<Op::bitcast>({values(u32, "0x7f800001 0xff800001 0x7fff8c22 0x7fffffff 0x7f800000")}, {.dtype = f32});
  const Literal y = apply<Op::bitcast>({apply<Op::convert>({x}, {.dtype = bf16})}, {.dtype = u16});
  EXPECT_EQ(y.int_at(0), 0x7fc0);
  EXPECT_EQ(y.int_at(1), 0xffc0);
  for (std::int64_t i : {2, 3}) EXPECT_EQ(y.int_at(i), 0x7fc0);
  EXPECT_EQ(y.int_at(4), 0x7f80);
}

}  // namespace
}  // namespace burin::ir
