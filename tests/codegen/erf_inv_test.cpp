// erf_inv follows JAX's definition, so that normal samples are JAX's. Expected values: JAX 0.10.2 on an x86 CPU with
// FMA.
#include "codegen/vector_math/erf_inv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "tests/codegen/host_machine.h"
#include "tests/codegen/math_reference.h"

namespace burin::codegen {
namespace {

/// 32 random bits of index `count` under `key`: threefry2x32 in JAX's partitionable form.
std::uint32_t random_bits(std::array<std::uint32_t, 2> key, std::uint64_t count) {
  constexpr std::array<std::array<int, 4>, 2> rotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  std::array<std::uint32_t, 3> schedule = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
  std::uint32_t a = static_cast<std::uint32_t>(count >> 32) + schedule[0];
  std::uint32_t b = static_cast<std::uint32_t>(count) + schedule[1];
  for (std::uint32_t round = 0; round < 5; ++round) {
    for (int rotation : rotations[round % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += schedule[(round + 1) % 3];
    b += schedule[(round + 2) % 3] + round + 1;
  }
  return a ^ b;
}

float normal(std::array<std::uint32_t, 2> key, std::uint64_t count) {
  float low = std::nextafter(-1.0f, 0.0f), high = 1.0f;
  float unit = std::bit_cast<float>((random_bits(key, count) >> 9) | 0x3f800000u) - 1.0f;
  float uniform = std::fmax(low, unit * (high - low) + low);
  math::HostMachine<float> m;
  return 1.41421356f * math::erf_inv(m, uniform);
}

TEST(ErfInv, NormalSamplesAreThoseOfJax) {
  EXPECT_EQ(random_bits({0, 0}, 0), 4070199207u);
  EXPECT_EQ(random_bits({0, 0}, 1), 4202968722u);
  constexpr std::array<std::uint32_t, 16> expected = {
      0x3ee7084b, 0x3ffa0aae, 0xbf042845, 0xbe1052a7, 0x3f1d9131, 0x3eab2b88, 0xbe046db0, 0xbe651b2e,
      0xbfbd2061, 0xbfabd3f7, 0xbea84a7b, 0x3f7fe6a7, 0x3f073456, 0xbfdf8819, 0x3fbcabc4, 0xbd1a7aa7};
  for (std::uint64_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(normal({0, 7}, k)), expected[k]) << "sample " << k;
  }
}

// The formula takes 1 - x^2, so its error grows near +-1. In f64 XLA's log1p, a single-precision approximation, costs up to
// 21 units between 0.55 and 0.65, where x^2 comes near sqrt(2) - 1.
TEST(ErfInv, IsAccurateAwayFromOne) {
  math::HostMachine<float> f32;
  math::HostMachine<double> f64;
  for (int k = -9900; k <= 9900; ++k) {
    float x = static_cast<float>(k) / 10000;
    EXPECT_LE(ulps(math::erf_inv(f32, x), reference<double>(MathFn::erf_inv, x, 0)), 8) << x;
    double z = k / 10000.0;
    EXPECT_LE(ulps(math::erf_inv(f64, z), reference<long double>(MathFn::erf_inv, z, 0)), 24) << z;
  }
}

// Towards +-1, 1 - x^2 keeps few digits: f32 loses up to 65 units, f64, whose x^2 is rounded before it is taken from 1, ten
// of its sixteen digits at worst.
TEST(ErfInv, LosesDigitsTowardsOne) {
  math::HostMachine<float> f32;
  math::HostMachine<double> f64;
  double worst_f32 = 0, worst_f64 = 0;
  for (std::uint32_t bits = 0x3f7d70a4; bits < 0x3f800000; ++bits) {  // all from 0.99 on
    const float x = std::bit_cast<float>(bits);
    worst_f32 = std::max(worst_f32, static_cast<double>(ulps(math::erf_inv(f32, x), reference<double>(MathFn::erf_inv, x, 0))));
  }
  for (int k = 700; k <= 5300; ++k) {
    const double x = 1 - std::exp2(-k / 100.0), exact = static_cast<double>(reference<long double>(MathFn::erf_inv, x, 0));
    worst_f64 = std::max(worst_f64, std::abs(math::erf_inv(f64, x) - exact) / exact);
  }
  EXPECT_LE(worst_f32, 65);
  EXPECT_GT(worst_f32, 32);
  EXPECT_LE(worst_f64, 2e-10);
  EXPECT_GT(worst_f64, 1e-11);
}

// JAX in 64-bit mode, within its own freedom to round.
TEST(ErfInv, F64IsThatOfJax) {
  struct Case {
    double x, erf_inv;
  };
  constexpr Case cases[] = {
      {0x1.0624dd2f1a9fcp-10, 0x1.d0a36543e1fd4p-11}, {-0x1.3333333333333p-2, -0x1.1700774485ed3p-2},
      {0x1.0000000000000p-1, 0x1.e861fbb24c008p-2},   {0x1.6666666666666p-1, 0x1.773a9da42b44ep-1},
      {-0x1.ccccccccccccdp-1, -0x1.29c0146770650p0},  {0x1.fae147ae147aep-1, 0x1.d2466082bb20ep0},
      {0x1.ffffde7210be9p-1, 0x1.babd96482ffd0p1},    {0x1.fffffffffe000p-1, 0x1.4347bf36fbab8p2},
      {-0x1.fffffffffffffp-1, -0x1.7744f8f74e949p2}};
  math::HostMachine<double> m;
  for (Case c : cases) {
    auto distance = std::bit_cast<std::int64_t>(math::erf_inv(m, c.x)) - std::bit_cast<std::int64_t>(c.erf_inv);
    EXPECT_LE(std::abs(distance), 2) << c.x;
  }
}

}  // namespace
}  // namespace burin::codegen
