#include "base/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace burin {
namespace {

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  std::uint16_t (*bits)(double);
  float (*value)(std::uint16_t);
};

constexpr Format formats[] = {{"bf16", 8, 7, bfloat16_bits, bfloat16_value}, {"f16", 5, 10, float16_bits, float16_value}};

class Half : public testing::TestWithParam<Format> {
 protected:
  /// The value of a finite or infinite pattern, written from the definition of the format.
  double meaning(std::uint16_t pattern) const {
    int exponent_mask = (1 << GetParam().exponent_bits) - 1, bias = exponent_mask / 2, m = GetParam().mantissa_bits;
    int exponent = (pattern >> m) & exponent_mask, mantissa = pattern & ((1 << m) - 1);
    double magnitude = exponent == 0               ? std::ldexp(mantissa, 1 - bias - m)
                       : exponent == exponent_mask ? std::numeric_limits<double>::infinity()
                                                   : std::ldexp((1 << m) + mantissa, exponent - bias - m);
    return (pattern & 0x8000) ? -magnitude : magnitude;
  }
  std::uint16_t infinity() const { return ((1 << GetParam().exponent_bits) - 1) << GetParam().mantissa_bits; }
  bool is_nan(std::uint16_t pattern) const { return (pattern & 0x7fff) > infinity(); }

  /// Round to nearest, ties to even, by looking at both neighbours; overflow starts half a step above the largest value.
  std::uint16_t nearest(double x) const {
    std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    double magnitude = std::fabs(x);
    std::uint16_t low = 0, high = infinity();  // patterns of one sign are ordered like their values
    while (high - low > 1) {
      std::uint16_t middle = low + (high - low) / 2;
      (meaning(middle) <= magnitude ? low : high) = middle;
    }
    double step_end = high == infinity() ? 2 * meaning(high - 1) - meaning(high - 2) : meaning(high);
    double halfway = meaning(low) + (step_end - meaning(low)) / 2;
    bool up = magnitude > halfway || (magnitude == halfway && (low & 1));
    return sign | (magnitude >= step_end || up ? high : low);
  }
};

TEST_P(Half, EveryPatternHasItsValueAndComesBack) {
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    auto bits = static_cast<std::uint16_t>(pattern);
    float value = GetParam().value(bits);
    if (is_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(is_nan(GetParam().bits(value))) << pattern;
    } else {
      ASSERT_EQ(value, static_cast<float>(meaning(bits))) << pattern;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << pattern;
      ASSERT_EQ(GetParam().bits(value), bits) << pattern;
    }
  }
}

TEST_P(Half, RoundsOnceToNearestEven) {
  std::mt19937_64 random(1);
  std::vector<double> values = {0.0, -0.0, 1e-300, 5e-324, 1e300, 1.0 / 3};
  for (int pattern = 0; pattern < infinity(); ++pattern) {
    // Halfway points, and points so close to them that a first rounding to float would land on the tie.
    double low = meaning(pattern), high = meaning(pattern + 1);
    if (std::isinf(high)) high = 2 * low - meaning(pattern - 1);
    double halfway = low + (high - low) / 2;
    for (double x : {halfway, std::nextafter(halfway, 0.0), std::nextafter(halfway, 1e300)}) values.push_back(x);
  }
  for (int i = 0; i < 20000; ++i) values.push_back(std::ldexp(double(random()), -64 + int(random() % 330) - 165));
  for (double x : values) {
    ASSERT_EQ(GetParam().bits(x), nearest(x)) << x;
    ASSERT_EQ(GetParam().bits(-x), nearest(-x)) << -x;
  }
}

TEST_P(Half, KeepsInfinitiesAndQuietNans) {
  EXPECT_EQ(GetParam().bits(std::numeric_limits<double>::infinity()), infinity());
  EXPECT_EQ(GetParam().bits(-std::numeric_limits<double>::infinity()), infinity() | 0x8000);
  std::uint16_t nan = GetParam().bits(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(is_nan(nan));
  EXPECT_TRUE(nan & (1 << (GetParam().mantissa_bits - 1))) << "quiet bit";
}

TEST(Half, NanInBfloat16KeepsItsSignAlone) {
  for (std::uint64_t payload : {std::uint64_t{1}, std::uint64_t{1} << 51, (std::uint64_t{1} << 52) - 1}) {
    EXPECT_EQ(bfloat16_bits(std::bit_cast<double>(0x7ff0000000000000 | payload)), 0x7fc0);
    EXPECT_EQ(bfloat16_bits(std::bit_cast<double>(0xfff0000000000000 | payload)), 0xffc0);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Half, testing::ValuesIn(formats), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace burin
