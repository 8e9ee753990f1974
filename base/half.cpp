#include "base/half.h"

namespace burin {
namespace {

// Rounds to a binary format of `mantissa` stored bits and `exponent` bits, once, to nearest even. The significand of the
// double is shifted as an integer, so normal, denormal and overflowing results take the same path.
std::uint16_t round_to(double value, int mantissa, int exponent) {
  const std::uint64_t in = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((in >> 63) << 15);
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent) - 1) << mantissa;
  const int biased = static_cast<int>((in >> 52) & 0x7ff);
  const std::uint64_t fraction = in & ((std::uint64_t{1} << 52) - 1);
  if (biased == 0x7ff) {
    if (fraction == 0) return static_cast<std::uint16_t>(sign | infinity);
    const std::uint64_t payload = fraction >> (52 - mantissa);
    return static_cast<std::uint16_t>(sign | infinity | payload | (std::uint64_t{1} << (mantissa - 1)));
  }
  if (biased == 0) return sign;  // a denormal double is far below half of the smallest denormal of either format
  const int bias = (1 << (exponent - 1)) - 1;
  int target = biased - 1023 + bias;
  std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
  int drop = 52 - mantissa;
  if (target <= 0) {
    drop += 1 - target;
    target = 1;
    if (drop > 54) return sign;
  }
  const std::uint64_t half = std::uint64_t{1} << (drop - 1), rest = significand & ((std::uint64_t{1} << drop) - 1);
  significand >>= drop;
  if (rest > half || (rest == half && (significand & 1))) ++significand;
  // A carry out of the significand lands in the exponent field, which is exactly the next binade (or infinity).
  const std::uint64_t result = (static_cast<std::uint64_t>(target - 1) << mantissa) + significand;
  return static_cast<std::uint16_t>(sign | (result >= infinity ? infinity : result));
}

}  // namespace

std::uint16_t bfloat16_bits(double value) {
  if (value != value) return static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(value) >> 63 << 15 | 0x7fc0);
  return round_to(value, 7, 8);
}
std::uint16_t float16_bits(double value) { return round_to(value, 10, 5); }

float bfloat16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float float16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
                      fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

}  // namespace burin
