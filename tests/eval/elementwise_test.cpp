// Elementwise and compare ops on values worked out by hand: special values, extremes, every kind of dtype.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::text;
using test::values;

std::string run(Op op, DType dtype, std::string_view operands) {
  std::vector<Literal> literals;
  for (std::size_t start = 0; start <= operands.size();) {
    const std::size_t end = std::min(operands.find(';', start), operands.size());
    literals.push_back(values(dtype, operands.substr(start, end - start)));
    start = end + 1;
  }
  return text(test::apply_op(op, literals, {})[0]);
}

struct Row {
  Op op;
  std::vector<DType> dtypes;
  const char* operands;  // separated by ';'
  const char* expected;
};
void check(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    for (DType dtype : row.dtypes) {
      std::vector<Type> types(static_cast<std::size_t>(info(row.op).arity), Type{dtype, {}});
      const DType result = infer_types(row.op, types, {})[0].dtype;
      EXPECT_EQ(run(row.op, dtype, row.operands), text(values(result, row.expected)))
          << name(row.op) << " " << dtype << " of " << row.operands;
    }
}

const std::vector<DType> floats{f64, f32, bf16, f16}, signed_ints{i8, i16, i32, i64}, unsigned_ints{u8, u16, u32, u64},
    ints{i8, i16, i32, i64, u8, u16, u32, u64}, numbers{f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64};

TEST(EvalElementwise, UnaryFloats) {
  check({
      {Op::neg, floats, "1.5 -0 0 -inf nan", "-1.5 0 -0 inf nan"},
      {Op::abs, floats, "-1.5 -0 0 -inf inf nan", "1.5 0 0 inf inf nan"},
      {Op::sign, floats, "-inf -2 -0 0 0.125 inf nan", "-1 -1 -0 0 1 1 nan"},
      {Op::floor, floats, "-1.5 -0.25 -0 0.75 2 inf nan", "-2 -1 -0 0 2 inf nan"},
      {Op::ceil, floats, "-1.5 -0.25 0.25 1.25 -inf nan", "-1 -0 1 2 -inf nan"},
      {Op::trunc, floats, "-1.5 -0.25 0.75 1.75 inf nan", "-1 -0 0 1 inf nan"},
      {Op::round_even, floats, "-2.5 -1.5 -0.5 0.5 1.5 2.5 0.75 nan", "-2 -2 -0 0 2 2 1 nan"},
      {Op::round_away, floats, "-2.5 -1.5 -0.5 0.5 1.5 2.5 0.25 nan", "-3 -2 -1 1 2 3 0 nan"},
      {Op::sqrt, floats, "4 0.25 -0 0 inf -1 nan", "2 0.5 -0 0 inf nan nan"},
      {Op::rsqrt, floats, "4 0.25 0 -0 inf -1 nan", "0.5 2 inf -inf 0 nan nan"},
      {Op::cbrt, floats, "8 -27 0.125 -0 -inf nan", "2 -3 0.5 -0 -inf nan"},
      {Op::is_finite, floats, "1 -0 inf -inf nan", "1 1 0 0 0"},
      {Op::stop_gradient, floats, "1.5 -0 inf nan", "1.5 -0 inf nan"},
  });
}

TEST(EvalElementwise, TranscendentalsAtTheirEdges) {
  check({
      {Op::exp, floats, "0 -0 -inf inf nan 1e4 -1e4", "1 1 0 inf nan inf 0"},
      {Op::exp2, floats, "3 -1 -0 -inf inf nan 2e3", "8 0.5 1 0 inf nan inf"},
      {Op::expm1, floats, "-0 0 -inf inf nan 1e4", "-0 0 -1 inf nan inf"},
      {Op::log, floats, "1 0 -0 inf -1 nan", "0 -inf -inf inf nan nan"},
      {Op::log2, floats, "8 0.5 0 inf -1 nan", "3 -1 -inf inf nan nan"},
      {Op::log1p, floats, "0 -0 -1 inf -2 nan", "0 -0 -inf inf nan nan"},
      {Op::tanh, floats, "0 -0 inf -inf nan 30", "0 -0 1 -1 nan 1"},
      {Op::logistic, floats, "0 inf -inf nan 100 -1e4", "0.5 1 0 nan 1 0"},
      {Op::erf, floats, "-0 inf -inf nan 10", "-0 1 -1 nan 1"},
      {Op::erfc, floats, "0 inf -inf nan 40", "1 0 2 nan 0"},
      {Op::erf_inv, floats, "-0 0 1 -1 1.5 -1.5 nan", "-0 0 inf -inf nan nan nan"},
      {Op::sin, floats, "0 -0 inf -inf nan", "0 -0 nan nan nan"},
      {Op::cos, floats, "0 -0 inf nan", "1 1 nan nan"},
      {Op::tan, floats, "0 -0 inf nan", "0 -0 nan nan"},
      {Op::asin, floats, "-0 1.5 nan", "-0 nan nan"},
      {Op::acos, floats, "1 -1.5 nan", "0 nan nan"},
      {Op::atan, floats, "-0 0 nan", "-0 0 nan"},
      {Op::sinh, floats, "-0 inf -inf nan 1e4", "-0 inf -inf nan inf"},
      {Op::cosh, floats, "-0 inf -inf nan 1e4", "1 inf inf nan inf"},
      {Op::asinh, floats, "-0 inf -inf nan", "-0 inf -inf nan"},
      {Op::acosh, floats, "1 inf 0.5 nan", "0 inf nan nan"},
      {Op::atanh, floats, "-0 1 -1 2 nan", "-0 inf -inf nan nan"},
      {Op::atan2, floats, "0 -0 0 nan 0; 1 1 inf 1 nan", "0 -0 0 nan nan"},
  });
}

TEST(EvalElementwise, BinaryFloats) {
  check({
      {Op::add, floats, "1 inf inf -0 -0 nan; 2 1 -inf -0 0 1", "3 inf nan -0 0 nan"},
      {Op::sub, floats, "1 inf 0 -0; 2 inf 0 0", "-1 nan 0 -0"},
      {Op::mul, floats, "3 0 -0 inf; 0.5 inf 2 -1", "1.5 nan -0 -inf"},
      {Op::div, floats, "1 1 -1 0 inf; 4 0 0 0 inf", "0.25 inf -inf nan nan"},
      {Op::rem, floats, "5 -5 5 -5 -0 1 1 inf; 3 3 -3 -3 1 inf 0 2", "2 -2 2 -2 -0 1 nan nan"},
      {Op::max, floats, "1 -0 0 nan 1 -inf inf; 2 0 -0 1 nan nan 5", "2 0 0 nan nan nan inf"},
      {Op::min, floats, "1 -0 0 nan 1 -inf inf; 2 0 -0 1 nan 5 nan", "1 -0 -0 nan nan -inf nan"},
      {Op::clamp, floats, "0 0 0 -0 0 nan 0; -1 5 0.5 0 nan 1 1; 1 1 1 0 1 2 nan", "0 1 0.5 0 nan nan nan"},
      {Op::clamp, floats, "3; 2; 1", "1"},  // low above high: high
      {Op::pow, floats, "2 2 4 0 -0 -0 -8 nan 1 inf; 3 -1 0.5 0 -1 -2 3 0 nan -1", "8 0.5 2 1 -inf inf -512 1 1 0"},
      {Op::pow, floats, "-2 0 -1 0.5 2 -inf; 0.5 -2 inf inf -inf 3", "nan inf 1 0 0 -inf"},
      {Op::eq, floats, "1 1 -0 nan inf; 1 2 0 nan inf", "1 0 1 0 1"},
      {Op::ne, floats, "1 1 -0 nan inf; 1 2 0 nan inf", "0 1 0 1 0"},
      {Op::lt, floats, "1 2 -0 nan 1 -inf; 2 1 0 1 nan inf", "1 0 0 0 0 1"},
      {Op::le, floats, "1 2 -0 nan 1; 2 1 0 1 nan", "1 0 1 0 0"},
      {Op::gt, floats, "1 2 -0 nan 1; 2 1 0 1 nan", "0 1 0 0 0"},
      {Op::ge, floats, "1 2 -0 nan 1; 2 1 0 1 nan", "0 1 1 0 0"},
  });
}

TEST(EvalElementwise, EachDtypeRoundsOnce) {
  check({
      {Op::add, {f32}, "16777216 1e8; 1 1", "16777216 1e8"},
      {Op::add, {bf16}, "256 256 1; 1 3 0.00390625", "256 260 1"},
      {Op::add, {f16}, "2048 2048 65504; 1 3 16", "2048 2052 inf"},
      {Op::mul, {f32}, "0x1p-126 0x1p-149 3.4e38; 0.5 0.5 2", "0x1p-127 0 inf"},  // denormals are kept
      {Op::mul, {bf16}, "0x1p-126 0x1.02p0; 0.5 0x1.02p0", "0x1p-127 0x1.04p0"},
      {Op::div, {f32}, "1 2; 3 3", "0.3333333432674407958984375 0.666666686534881591796875"},
      {Op::div, {f64}, "1; 3", "0x1.5555555555555p-2"},
      {Op::sqrt, {f32}, "2", "1.41421353816986083984375"},
      {Op::sub, {f16}, "0x1p-24; 0x1p-25", "0x1p-24"},  // 2^-25 is not a f16 and reads as 0
  });
}

TEST(EvalElementwise, IntegersWrap) {
  check({
      {Op::neg, {i8}, "-128 127 0", "-128 -127 0"},
      {Op::neg, {u8}, "1 255 0", "255 1 0"},
      {Op::abs, {i8}, "-128 -1 127", "-128 1 127"},
      {Op::abs, unsigned_ints, "0 200", "0 200"},
      {Op::sign, signed_ints, "-7 0 7", "-1 0 1"},
      {Op::sign, unsigned_ints, "0 7", "0 1"},
      {Op::add, {i8}, "127 -128; 1 -1", "-128 127"},
      {Op::add, {u16}, "65535; 2", "1"},
      {Op::add, {i32}, "2147483647; 1", "-2147483648"},
      {Op::add, {i64}, "9223372036854775807; 1", "-9223372036854775808"},
      {Op::sub, {u32}, "0; 1", "4294967295"},
      {Op::mul, {u16}, "65535; 65535", "1"},
      {Op::mul, {i16}, "-32768; -1", "-32768"},
      {Op::mul, {i64}, "0x7fffffffffffffff; 2", "-2"},
      {Op::max, {i8}, "-128 5; 127 5", "127 5"},
      {Op::max, {u8}, "200; 100", "200"},
      {Op::min, {u64}, "0xffffffffffffffff; 1", "1"},
      {Op::clamp, signed_ints, "-1 -1 -1; -5 0 5; 1 1 1", "-1 0 1"},
      {Op::stop_gradient, ints, "1 100", "1 100"},
  });
}

TEST(EvalElementwise, IntegerDivisionTruncatesAndNeverTraps) {
  check({
      {Op::div, signed_ints, "-7 7 -7 7 -1 1 -5 5; 2 2 -2 -2 3 -3 3 -3", "-3 3 3 -3 0 0 -1 -1"},
      {Op::rem, signed_ints, "-7 7 -7 7 -1 1 -5 5; 2 2 -2 -2 3 -3 3 -3", "-1 1 -1 1 -1 1 -2 2"},
      {Op::div, signed_ints, "5 -5 0; 0 0 0", "-1 -1 -1"},
      {Op::rem, signed_ints, "5 -5 0; 0 0 0", "5 -5 0"},
      {Op::div, {i8}, "-128; -1", "-128"},
      {Op::div, {i32}, "-2147483648; -1", "-2147483648"},
      {Op::div, {i64}, "-9223372036854775808; -1", "-9223372036854775808"},
      {Op::rem, {i32}, "-2147483648; -1", "0"},
      {Op::rem, {i64}, "-9223372036854775808; -1", "0"},
      {Op::div, {u8}, "200 5; 3 0", "66 255"},
      {Op::div, {u64}, "0xffffffffffffffff 5; 2 0", "0x7fffffffffffffff 0xffffffffffffffff"},
      {Op::rem, {u8}, "200 5; 3 0", "2 5"},
  });
}

TEST(EvalElementwise, IntegerPower) {
  check({
      {Op::pow, signed_ints, "2 -2 -2 3 0 7 -1; 6 3 2 4 0 0 5", "64 -8 4 81 1 1 -1"},
      {Op::pow, signed_ints, "1 -1 -1 0 2 -2; -3 -3 -4 -1 -1 -3", "1 -1 1 0 0 0"},
      {Op::pow, unsigned_ints, "2 3 1; 7 5 200", "128 243 1"},
      {Op::pow, {i8}, "3; 5", "-13"},
      {Op::pow, {u32}, "3; 40", "689956897"},  // 3^40 mod 2^32
      {Op::pow, {i64}, "10; 19", "-8446744073709551616"},
  });
}

TEST(EvalElementwise, BitsAndShifts) {
  check({
      {Op::bit_not, signed_ints, "0 -1 5", "-1 0 -6"},
      {Op::bit_not, {u8}, "0 1", "255 254"},
      {Op::bit_and, ints, "12; 10", "8"},
      {Op::bit_or, ints, "12; 10", "14"},
      {Op::bit_xor, ints, "12; 10", "6"},
      {Op::popcount, ints, "0 7 127", "0 3 7"},
      {Op::popcount, signed_ints, "0", "0"},
      {Op::popcount, {i64}, "-1", "64"},
      {Op::popcount, {i8}, "-1", "8"},
      {Op::count_leading_zeros, {i8}, "0 1 -1", "8 7 0"},
      {Op::count_leading_zeros, {u32}, "0 1 65536", "32 31 15"},
      {Op::count_leading_zeros, {i64}, "0 1", "64 63"},
      {Op::shift_left, ints, "1 3; 2 0", "4 3"},
      {Op::shift_left, {i8}, "1 1 1 1; 7 8 100 -1", "-128 0 0 0"},
      {Op::shift_left, {u64}, "1 1; 63 64", "9223372036854775808 0"},
      {Op::shift_right_logical, {i8}, "-128 -1 -1 -1; 7 1 8 -1", "1 127 0 0"},
      {Op::shift_right_logical, {u32}, "4294967295 4294967295; 31 32", "1 0"},
      {Op::shift_right_logical, {i64}, "-1; 60", "15"},
      {Op::shift_right_arithmetic, {i8}, "-128 -128 64 64 -1; 7 8 8 1 -1", "-1 -1 0 32 -1"},
      {Op::shift_right_arithmetic, {i32}, "-16 16 -16; 2 2 32", "-4 4 -1"},
      {Op::shift_right_arithmetic, {i64}, "-9223372036854775808; 200", "-1"},
      {Op::shift_right_arithmetic, {u8}, "128 64; 7 7", "255 0"},
  });
}

TEST(EvalElementwise, BoolsAddAsOrAndMultiplyAsAnd) {
  const std::vector<DType> bools{bool_};
  check({
      {Op::add, bools, "0 0 1 1; 0 1 0 1", "0 1 1 1"},
      {Op::mul, bools, "0 0 1 1; 0 1 0 1", "0 0 0 1"},
      {Op::max, bools, "0 0 1 1; 0 1 0 1", "0 1 1 1"},
      {Op::min, bools, "0 0 1 1; 0 1 0 1", "0 0 0 1"},
      {Op::bit_and, bools, "0 0 1 1; 0 1 0 1", "0 0 0 1"},
      {Op::bit_or, bools, "0 0 1 1; 0 1 0 1", "0 1 1 1"},
      {Op::bit_xor, bools, "0 0 1 1; 0 1 0 1", "0 1 1 0"},
      {Op::bit_not, bools, "0 1", "1 0"},
      {Op::clamp, bools, "0 1 0 0; 0 0 1 1; 1 1 0 1", "0 1 0 1"},
      {Op::eq, bools, "0 0 1 1; 0 1 0 1", "1 0 0 1"},
      {Op::lt, bools, "0 0 1 1; 0 1 0 1", "0 1 0 0"},
      {Op::ge, bools, "0 0 1 1; 0 1 0 1", "1 0 1 1"},
      {Op::stop_gradient, bools, "0 1", "0 1"},
  });
}

TEST(EvalElementwise, ComparesIntegersBySign) {
  check({
      {Op::lt, {i8}, "-1 5; 1 5", "1 0"},
      {Op::lt, {u8}, "255 5; 1 6", "0 1"},
      {Op::gt, {u64}, "0xffffffffffffffff; 1", "1"},
      {Op::gt, {i64}, "-1; 1", "0"},
      {Op::le, ints, "1 2 2; 2 2 1", "1 1 0"},
      {Op::ge, ints, "1 2 2; 2 2 1", "0 1 1"},
      {Op::eq, ints, "1 2; 2 2", "0 1"},
      {Op::ne, ints, "1 2; 2 2", "1 0"},
      {Op::gt, ints, "1 2 2; 2 2 1", "0 0 1"},
  });
}

TEST(EvalElementwise, SelectKeepsTheBitsOfEveryDtype) {
  const Literal condition = values(bool_, "1 0 1");
  for (DType dtype : numbers)
    EXPECT_EQ(text(apply<Op::select>({condition, values(dtype, "1 2 3"), values(dtype, "4 5 6")})), "1 5 3") << dtype;
  EXPECT_EQ(text(apply<Op::select>({condition, values(bool_, "1 1 0"), values(bool_, "0 0 1")})), "1 0 0");
  // A signaling NaN passes unchanged.
  Literal signaling(Type{f16, {1}});
  signaling.mutable_data<float16>()[0].bits = 0x7c01;
  EXPECT_EQ(apply<Op::select>({values(bool_, "1"), signaling, values(f16, "0")}), signaling);
  EXPECT_EQ(apply<Op::stop_gradient>({signaling}), signaling);
}

TEST(EvalElementwise, BitcastKeepsBits) {
  EXPECT_EQ(text(apply<Op::bitcast>({values(f32, "1 -0 inf")}, {.dtype = u32})), "1065353216 2147483648 2139095040");
  EXPECT_EQ(text(apply<Op::bitcast>({values(u16, "0x3f80 0x8000")}, {.dtype = bf16})), "1 -0");
  EXPECT_EQ(text(apply<Op::bitcast>({values(i64, "-1")}, {.dtype = u64})), "18446744073709551615");
  EXPECT_EQ(text(apply<Op::bitcast>({values(u8, "255")}, {.dtype = i8})), "-1");
  EXPECT_EQ(text(apply<Op::bitcast>({apply<Op::bitcast>({values(u32, "0x7f800001")}, {.dtype = f32})}, {.dtype = u32})),
            "2139095041");
}

TEST(EvalElementwise, SplatsStaySplats) {
  const Literal x = Literal::splat({3, 5}, Literal::scalar(f32, 2)),
                y = Literal::splat({3, 5}, Literal::scalar(f32, 3));
  const Literal sum = apply<Op::add>({x, y});
  EXPECT_TRUE(sum.is_splat());
  EXPECT_EQ(sum, Literal::splat({3, 5}, Literal::scalar(f32, 5)));
  const Literal mixed = apply<Op::add>({values(f32, "1 2"), Literal::splat({2}, Literal::scalar(f32, 3))});
  EXPECT_EQ(text(mixed), "4 5");
}

TEST(EvalElementwise, SizesZeroAndOne) {
  EXPECT_EQ(apply<Op::add>({Literal(Type{f32, {3, 0}}), Literal(Type{f32, {3, 0}})}).shape(), (Shape{3, 0}));
  EXPECT_EQ(text(apply<Op::exp>({Literal(Type{f32, {}})})), "1");
  EXPECT_EQ(apply<Op::lt>({Literal(Type{i8, {0}}), Literal(Type{i8, {0}})}).type(), (Type{bool_, {0}}));
}

TEST(EvalElementwise, HalfArithmeticIsF32RoundedForEveryPairOfASample) {
  // Every 61st bit pattern against every 67th: the double result rounded once is the definition.
  for (DType dtype : {bf16, f16})
    for (Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::max})
      for (unsigned x = 0; x < 65536; x += 61 * 16)
        for (unsigned y = 0; y < 65536; y += 67) {
          const auto value = [&](unsigned bits) {
            const auto half = static_cast<std::uint16_t>(bits);
            return static_cast<double>(dtype == bf16 ? bfloat16_value(half) : float16_value(half));
          };
          const double a = value(x), b = value(y);
          if (op == Op::max && (a == b || std::isnan(a) || std::isnan(b))) continue;
          const double exact = op == Op::add   ? a + b
                               : op == Op::sub ? a - b
                               : op == Op::mul ? a * b
                               : op == Op::div ? a / b
                                               : std::max(a, b);
          const double rounded =
              dtype == bf16 ? bfloat16_value(bfloat16_bits(exact)) : float16_value(float16_bits(exact));
          const Scalar operands[] = {{dtype, a}, {dtype, b}};
          const double result = evaluate_scalar(op, operands, dtype).f;
          ASSERT_TRUE(std::isnan(rounded)
                          ? std::isnan(result)
                          : std::bit_cast<std::uint64_t>(result) == std::bit_cast<std::uint64_t>(rounded))
              << name(op) << " " << dtype << " " << a << " " << b << ": " << result << ", not " << rounded;
        }
}

TEST(EvalScalar, TravelsThroughEveryDtype) {
  for (DType dtype : numbers) {
    Literal x = values(dtype, "1 2 100");
    const Scalar two = load_scalar(x, 1);
    const Scalar operands[] = {two, load_scalar(x, 2)};
    store_scalar(x, 0, evaluate_scalar(Op::add, operands, dtype));
    EXPECT_EQ(text(x), "102 2 100") << dtype;
  }
  EXPECT_EQ(load_scalar(values(i8, "-1"), 0).i, 0xffffffffffffffffu);
  EXPECT_EQ(load_scalar(values(u8, "255"), 0).i, 255u);
  EXPECT_EQ(load_scalar(Literal::splat({7}, Literal::scalar(f64, 2.5)), 6).f, 2.5);
  const Scalar operands[] = {{.dtype = f32, .f = 1}, {.dtype = f32, .f = 2}};
  EXPECT_EQ(evaluate_scalar(Op::lt, operands, bool_).i, 1u);
}

}  // namespace
}  // namespace burin::ir
