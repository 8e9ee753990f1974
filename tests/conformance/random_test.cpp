// Random numbers: bits known from elsewhere, ranges at the edge of a dtype, draws in compiled functions.
#include <algorithm>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

std::vector<std::uint32_t> words(const Tensor& t) { return t.to_vector<std::uint32_t>(); }

// jax-ml/jax#13341, jax-ml/jax#2181: counters laid out by the length, so that a longer draw begins differently.
TEST(RandomBits, ArePrefixesOfLongerDraws) {
  const std::vector<std::uint32_t> bits = {0xf29a4fa7, 0xfa843692, 0x55110e28, 0x77faa835, 0x91e43bb7};
  const std::vector<std::uint32_t> keys = {0x6b200159, 0x99ba4efe, 0x375f238f, 0xcddb151d, 0xf71f4ea9, 0xa20e4081};
  for (std::size_t n : {1, 2, 3, 5}) {
    const auto length = static_cast<std::int64_t>(n);
    const auto draw = [=](Key k) { return random::bits(k, {length}); };
    EXPECT_EQ(words(jit(draw)(random::key(0))), std::vector<std::uint32_t>(bits.begin(), bits.begin() + length));
    EXPECT_EQ(words(draw(random::key(0))), std::vector<std::uint32_t>(bits.begin(), bits.begin() + length));
  }
  for (std::int64_t n : {1, 2, 3})
    EXPECT_EQ(words(jit([=](Key k) { return random::split(k, n); })(random::key(0)).data()),
              std::vector<std::uint32_t>(keys.begin(), keys.begin() + 2 * n));
  const std::vector<std::uint32_t> many = words(jit([](Key k) { return random::bits(k, {1001}); })(random::key(0)));
  EXPECT_EQ(std::vector<std::uint32_t>(many.begin(), many.begin() + 5), bits);
}

// tinygrad/tinygrad#9108: the draw of the first call is kept as a constant of the compiled function.
TEST(RandomBits, OfACompiledFunctionFollowTheKey) {
  const auto draw = [](Key k) { return random::uniform(k, {4}); };
  const auto compiled = jit(draw);
  std::vector<std::vector<float>> seen;
  for (int seed = 0; seed < 4; ++seed) {
    const Tensor x = compiled(random::key(seed));
    EXPECT_TRUE(array_equal(x, draw(random::key(seed))));
    for (const auto& earlier : seen) EXPECT_NE(x.to_vector<float>(), earlier);
    seen.push_back(x.to_vector<float>());
  }
  const auto fixed = jit([](Tensor shift) { return random::uniform(random::key(2), {4}) + shift; });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(fixed(0.0f).to_vector<float>(), seen[2]);
}

// jax-ml/jax#5785: the upper bound, one past the largest value, wraps to the smallest.
TEST(RandomIntegers, UpToTheEdgeOfTheirDtype) {
  const auto check = [](const Tensor& x, double mean_expected, double tolerance) {
    EXPECT_NEAR(double(x.astype(f64).mean()), mean_expected, tolerance);
  };
  const auto distinct = [](const Tensor& x) {
    std::vector<int> values = x.to_vector<int>();
    std::sort(values.begin(), values.end());
    return std::unique(values.begin(), values.end()) - values.begin();
  };
  const Tensor bytes = jit([](Key k) { return random::randint(k, {10000}, 0, 256, u8); })(random::key(0));
  EXPECT_EQ(bytes.dtype(), u8);
  EXPECT_EQ(distinct(bytes), 256);
  check(bytes, 127.5, 3);
  const Tensor signed_bytes = jit([](Key k) { return random::randint(k, {10000}, -128, 128, i8); })(random::key(0));
  EXPECT_EQ(distinct(signed_bytes), 256);
  check(signed_bytes, -0.5, 3);
  const Tensor wide = jit([](Key k) { return random::randint(k, {10000}, 0, 2147483647); })(random::key(0));
  EXPECT_GE(int(wide.min()), 0);
  EXPECT_LT(int(wide.max()), 2147483647);
  check(wide, 1.0737e9, 3e7);
  // The same numbers as JAX 0.10.2, also where the width is no power of two.
  const auto jax = [](const Tensor& x, const std::vector<double>& expected) { test::expect_values(x, expected); };
  const Key seven = random::key(7);
  jax(random::randint(seven, {9}, 0, 256, u8), {31, 102, 124, 237, 222, 102, 108, 146, 13});
  jax(random::randint(seven, {9}, -128, 128, i8), {-97, -26, -4, 109, 94, -26, -20, 18, -115});
  jax(random::randint(seven, {9}, -300, 70000, i16), {21995, 27934, 17948, 24929, 24474, 17934, 24572, 3414, 30677});
  jax(random::randint(seven, {9}, 0, 65536, u16), {36639, 19814, 20860, 16365, 53470, 62310, 16748, 18834, 60685});
  jax(random::randint(seven, {4}, 5, std::int64_t{4294967296}, u32), {2899676964, 3548401003, 1692160385, 1822441458});
  jax(random::randint(seven, {3}, std::int64_t{-4000000000}, std::int64_t{9000000000}, i64),
      {6873535173, 4619275709, -1019902590});
  // The whole range of a wider dtype, bounds that are tensors, bounds that are far outside.
  const Tensor all = random::randint(random::key(1), {10000}, std::int64_t{-2147483648}, std::int64_t{2147483648});
  EXPECT_LT(int(all.min()), -2000000000);
  EXPECT_GT(int(all.max()), 2000000000);
  const auto between = jit([](Key k, Tensor low, Tensor high) { return random::randint(k, {10000}, low, high, i8); });
  EXPECT_TRUE(array_equal(between(random::key(0), -128, 128), signed_bytes));
  EXPECT_TRUE(array_equal(between(random::key(0), tensor({-1000})[0], tensor({1000})[0]), signed_bytes));
  EXPECT_EQ(distinct(between(random::key(0), tensor({-3}, i8)[0], tensor({4}, u64)[0])), 7);
  EXPECT_EQ(distinct(between(random::key(0), 5, 5)), 1);
}

}  // namespace
}  // namespace burin
