// Values where rounding, overflow, NaN or the width of an integer decide.
#include <cmath>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_near;
using test::expect_values;

constexpr double not_a_number = burin::nan;

// tensorflow/tensorflow#23054: a rational tanh leaves [-1, 1] and falls near saturation.
TEST(Numerics, TanhNearSaturation) {
  std::vector<float> at;
  for (int i = 0; i <= 20; ++i) at.push_back(static_cast<float>(8.80 + 0.01 * i));
  const auto f = jit([](Tensor x) { return tanh(x); });
  const std::vector<float> found = f(tensor(at)).to_vector<float>();
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_LE(std::abs(found[i] - 0.99999994f), 2 * 0x1p-24f) << at[i];
    EXPECT_LE(found[i], 1) << at[i];
    EXPECT_GE(found[i], found[i > 0 ? i - 1 : 0]) << at[i];
  }
  const Tensor edges = f(tensor({inf, -inf, 0.0, -0.0, not_a_number}));
  const std::vector<float> e = edges.to_vector<float>();
  EXPECT_EQ(e[0], 1);
  EXPECT_EQ(e[1], -1);
  EXPECT_FALSE(std::signbit(e[2]));
  EXPECT_TRUE(e[3] == 0 && std::signbit(e[3]));
  EXPECT_TRUE(std::isnan(e[4]));
  // Everywhere: inside [-1, 1], the slope never negative.
  const Tensor wide = linspace(-20, 20, 100003);
  EXPECT_LE(float(jit([](Tensor x) { return max(abs(tanh(x))); })(wide)), 1);
  EXPECT_GE(float(jit([](Tensor x) { return min(1 - square(tanh(x))); })(wide)), 0);
}

// tensorflow/tensorflow#119990: a compiled maximum drops NaN.
TEST(Numerics, ExtremaKeepNanAtEveryPlace) {
  const auto extrema = jit([](Tensor x) { return std::pair{max(x), min(x)}; });
  for (std::size_t n : {5, 64, 67})
    for (std::size_t place = 0; place < n; ++place) {
      std::vector<float> values(n);
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 7) - 3;
      values[place] = static_cast<float>(not_a_number);
      const auto [high, low] = extrema(tensor(values));
      EXPECT_TRUE(std::isnan(float(high)) && std::isnan(float(low))) << n << ' ' << place;
    }
  for (const Shape& shape : {Shape{64, 64}, Shape{33, 128}}) {
    const Tensor x = ones(shape).at({20, 30}).set(not_a_number);
    const auto [rows, columns, both] = jit([](Tensor t) { return std::tuple{max(t, 1), min(t, 0), max(t)}; })(x);
    EXPECT_EQ(int(sum(isnan(rows))), 1);
    EXPECT_TRUE(bool(isnan(rows[20])));
    EXPECT_EQ(int(sum(isnan(columns))), 1);
    EXPECT_TRUE(bool(isnan(columns[30])));
    EXPECT_TRUE(bool(isnan(both)));
  }
}

// ml-explore/mlx#4346: floor division truncates, or is right and overflows in eight bits.
TEST(Numerics, FloorDivisionAndModOfEverySign) {
  const auto both = jit([](Tensor a, Tensor b) { return std::pair{floor_divide(a, b), a % b}; });
  for (DType dtype : {i8, i16, i32, i64}) {
    const auto [quotient, rest] =
        both(tensor({-7, 7, -7, 7, -1, 1, -5, 5}, dtype), tensor({2, 2, -2, -2, 3, -3, 3, -3}, dtype));
    expect_values(quotient, {-4, 3, 3, -4, -1, -1, -2, -2});
    expect_values(rest, {1, 1, -1, -1, 2, -2, 1, -1});
    EXPECT_EQ(quotient.dtype(), dtype);
  }
  const auto [quotient, rest] = both(tensor({120}, i8), tensor({-27}, i8));
  expect_values(quotient, {-5});
  expect_values(rest, {-15});
}

// llvm/llvm-project#89382: a division rounded up by way of a negation, which wraps in narrow types; the meaning of what
// is written stays whichever way it is compiled.
TEST(Numerics, DivisionRoundedUpByNegation) {
  const auto up = jit([](Tensor a, Tensor b) { return -floor_divide(-a, b); });
  expect_values(up(tensor({24, -128, 0, 1}), tensor({10, 7, 7, 7})), {3, -18, 0, 1});
  expect_values(up(tensor({-128}, i8), tensor({7}, i8)), {19});  // -(-128) is -128
}

// jax-ml/jax#11510: overflow taken to be impossible turns a comparison round.
TEST(Numerics, ComparisonsOfWrappedIntegers) {
  const auto f = jit([](Tensor x) {
    const Tensor m = 4 - argmax(x, 1) - 1;
    return std::pair{m, m > 2147483647};
  });
  const auto [m, above] = f(ones({2, 4}));
  expect_values(m, {3, 3});
  expect_values(above, {0, 0});
  EXPECT_EQ(m.dtype(), i32);
  expect_values(jit([](Tensor x) { return x + 1 > x; })(tensor({2147483647, 5})), {0, 1});
}

// openxla/xla#42732: inverse pairs are folded although what is between them overflows.
TEST(Numerics, InversePairsKeepTheirOverflow) {
  const auto root = [](Tensor x) { return sqrt(x * x); };
  const auto log_exp = [](Tensor x) { return log(exp(x)); };
  const auto product = [](Tensor x) { return exp(x) * exp(-2 * x); };
  const auto check = [](auto f, double x, double expected) {
    const std::vector<Tensor> found = {
        jit(f)(tensor({x})),
        f(tensor({x})),
        jit([=](Tensor zero) { return f(full({1}, x)) + 0 * zero; })(zeros({1})),
    };
    for (const Tensor& t : found) EXPECT_EQ(to_string(t), to_string(tensor({expected})));
  };
  check(log_exp, 89, inf);
  check(root, 1e20, inf);
  check(product, 100, not_a_number);
}

// jax-ml/jax#35896: 64-bit counting and indexing done in 32 bits.
TEST(Numerics, SixtyFourBitCountsAndIndices) {
  const std::int64_t base = std::int64_t{1} << 31, far = (std::int64_t{1} << 40) + 1,
                     near = (std::int64_t{1} << 32) + 1;
  const auto count = jit([=](Tensor zero) { return arange(base - 2, base + 2, 1, i64) + zero; });
  EXPECT_EQ(count(tensor({0}, i64)).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{2147483646, 2147483647, 2147483648, 2147483649}));
  EXPECT_EQ(arange(base - 2, base + 2, 1, i64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{2147483646, 2147483647, 2147483648, 2147483649}));
  const Tensor big = tensor(std::vector<std::int64_t>{far - 1, 1});
  EXPECT_EQ(jit([](Tensor x) { return x[0] + 1; })(big).item<std::int64_t>(), 1099511627777);
  EXPECT_EQ(jit([](Tensor x) { return sum(x); })(big).item<std::int64_t>(), 1099511627777);
  EXPECT_EQ((jit([=](Tensor x) { return x + far; })(tensor({0}, i64))).item<std::int64_t>(), far);
  const Tensor x = tensor({5, 7, 9});
  for (std::int64_t i : {far, near}) {
    const Tensor ids = tensor(std::vector<std::int64_t>{i});
    expect_values(jit([](Tensor t, Tensor j) { return take(t, j, 0, Mode::clip); })(x, ids), {9});
    expect_values(jit([](Tensor t, Tensor j) { return take(t, j, 0, Mode::fill); })(x, ids), {-2147483648.0});
    const std::string text = error_text([&] { (void)jit([](Tensor t, Tensor j) { return t[j]; })(x, ids); });
    EXPECT_NE(text.find("index " + std::to_string(i) + " is out of range for axis 0 of i32[3]"), std::string::npos)
        << text;
    EXPECT_EQ(int(jit([](Tensor t, Tensor j) { return dynamic_slice(t, {j}, {1}); })(x, ids[0])), 9);
  }
}

// openxla/xla#48717: an unsigned index of 128 or more is read as a negative one.
TEST(Numerics, UnsignedIndicesAreNotNegative) {
  const auto taken = [](Tensor x, Tensor i) { return x[i]; };
  const auto sliced = [](Tensor x, Tensor i) { return dynamic_slice(x, {i}, {1})[0]; };
  for (const auto& [n, i] : {std::pair{300, 200}, {200, 128}}) {
    const Tensor x = arange(n), id = tensor({i}, u8)[0];
    EXPECT_EQ(int(jit(taken)(x, id)), i);
    EXPECT_EQ(int(jit(sliced)(x, id)), i);
    EXPECT_EQ(int(jit([=](Tensor t) { return taken(t, full({}, i, u8)); })(x)), i);
    EXPECT_EQ(int(jit([=](Tensor t) { return sliced(t, full({}, i, u8)); })(x)), i);
    EXPECT_EQ(int(taken(x, id)), i);
    EXPECT_EQ(int(sliced(x, id)), i);
  }
}

// jax-ml/jax#40849: two dynamic slices become one without clamping each start; the same behind a roll.
TEST(Numerics, NestedDynamicSlicesClampEach) {
  const auto nested =
      jit([](Tensor x, Tensor i, Tensor j) { return dynamic_slice(dynamic_slice(x, {i}, {4}), {j}, {1}); });
  for (const auto& [i, j] : {std::pair{9, 0}, {3, 5}, {6, 0}}) expect_values(nested(arange(10), i, j), {6});
  const auto rolled = jit([](Tensor x, Tensor i) { return dynamic_slice(roll(x, 4, 0), {i}, {4}); });
  expect_values(rolled(arange(0, 90, 10), 12), {10, 20, 30, 40});
}

// dotnet/runtime#130583: the bias of the rounding turns a NaN into an infinity or a zero.
TEST(Numerics, NanStaysNanInSixteenBits) {
  const std::vector<std::uint32_t> wide = {0x7f800001, 0xff800001, 0x7fff8c22, 0x7fffffff, 0x7f800000};
  const std::vector<std::uint16_t> narrow = {0x7fc0, 0xffc0, 0x7fc0, 0x7fc0, 0x7f80};
  const auto round = [](Tensor bits) { return bitcast(bitcast(bits, f32).astype(bf16), u16); };
  // One by one (the scalar tail), and enough of them to fill vectors.
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(jit(round)(tensor(std::vector{wide[i]})).to_vector<std::uint16_t>(), std::vector{narrow[i]}) << i;
    const std::vector<std::uint32_t> many(101, wide[i]);
    EXPECT_EQ(jit(round)(tensor(many)).to_vector<std::uint16_t>(), std::vector<std::uint16_t>(101, narrow[i])) << i;
    EXPECT_EQ(round(tensor(std::vector{wide[i]})).to_vector<std::uint16_t>(), std::vector{narrow[i]}) << i;
    const auto folded = jit([=](Tensor zero) { return round(full({1}, wide[i], u32)) | zero; });
    EXPECT_EQ(folded(tensor({0}, u16)).to_vector<std::uint16_t>(), std::vector{narrow[i]}) << i;
  }
}

// openxla/xla#41605: a conversion to 16 bits and back is dropped as if it were nothing.
TEST(Numerics, ARoundTripThroughBf16Rounds) {
  const auto f = [](Tensor x) { return x.astype(bf16).astype(f32); };
  for (bool excess : {false, true}) {
    expect_values(jit(f, {.excess_precision = excess})(tensor({1.01})), {1.0078125});
    expect_values(jit([&](Tensor x) { return f(x + x) * 2; }, {.excess_precision = excess})(tensor({0.505})),
                  {2.015625});
    expect_values(jit([&](Tensor zero) { return f(full({1}, 1.01)) + zero; }, {.excess_precision = excess})(zeros({1})),
                  {1.0078125});
  }
  expect_values(f(tensor({1.01})), {1.0078125});
}

// pytorch/pytorch#83863: sums of products of 16-bit numbers kept in 16 bits.
TEST(Numerics, ProductsOfHalvesSumInF32) {
  for (DType dtype : {bf16, f16})
    for (std::int64_t n : {1024, 1000}) {
      const Tensor dotted =
          jit([](Tensor a, Tensor b) { return matmul(a, b); })(ones({1, n}, dtype), ones({n, 1}, dtype));
      EXPECT_EQ(dotted.dtype(), dtype);
      EXPECT_EQ(float(dotted), static_cast<float>(n));
      EXPECT_EQ(float(jit([](Tensor a) { return sum(a); })(ones({n}, dtype))), static_cast<float>(n));
    }
}

}  // namespace
}  // namespace burin
