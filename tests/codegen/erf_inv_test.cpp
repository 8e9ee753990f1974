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

// f32 takes 1 - x^2, so its error grows near +-1.
TEST(ErfInv, IsAccurateAwayFromOne) {
  math::HostMachine<float> m;
  for (int k = -9900; k <= 9900; ++k) {
    float x = static_cast<float>(k) / 10000;
    EXPECT_LE(ulps(math::erf_inv(m, x), reference<double>(MathFn::erf_inv, x, 0)), 8) << x;
  }
}

// Towards +-1, 1 - x^2 keeps few digits: f32 loses up to 65 units.
TEST(ErfInv, LosesDigitsTowardsOne) {
  math::HostMachine<float> m;
  double worst = 0;
  for (std::uint32_t bits = 0x3f7d70a4; bits < 0x3f800000; ++bits) {  // all from 0.99 on
    const float x = std::bit_cast<float>(bits);
    worst = std::max(worst, static_cast<double>(ulps(math::erf_inv(m, x), reference<double>(MathFn::erf_inv, x, 0))));
  }
  EXPECT_LE(worst, 65);
  EXPECT_GT(worst, 32);
}

// f64 takes (1 - x)(1 + x) instead, which keeps all digits, and is accurate up to the last number before 1.
TEST(ErfInv, F64IsAccurateEverywhere) {
  math::HostMachine<double> m;
  double worst = 0, at = 0;
  const auto look_at = [&](double x) {
    const double error = static_cast<double>(ulps(math::erf_inv(m, x), reference<long double>(MathFn::erf_inv, x, 0)));
    EXPECT_EQ(math::erf_inv(m, -x), -math::erf_inv(m, x)) << x;
    if (error > worst) worst = error, at = x;
  };
  for (int k = 1; k < 20000; ++k) look_at(k / 20000.0);
  for (int k = 20; k <= 5300; ++k) look_at(1 - std::exp2(-k / 100.0));  // towards 1
  for (int k = 0; k < 2000; ++k) look_at(std::exp2(-k / 2.0));          // towards 0
  for (int k = 1; k <= 200; ++k) look_at(1 - k * 0x1p-53);              // the last before 1
  EXPECT_LE(worst, 3) << at;
}

}  // namespace
}  // namespace burin::codegen
