// The 16-bit floating types as storage. Arithmetic happens in float; conversion rounds to nearest even; NaN stays NaN and
// becomes quiet: bfloat16 keeps its sign alone, as XLA does, float16 the high bits of its payload too, as x86 does.
#pragma once
#include <bit>
#include <cstdint>

namespace burin {

/// Rounds a double once to bfloat16 bits (no double rounding through float).
std::uint16_t bfloat16_bits(double value);
/// Rounds a double once to IEEE binary16 bits (no double rounding through float).
std::uint16_t float16_bits(double value);
float bfloat16_value(std::uint16_t bits);
float float16_value(std::uint16_t bits);

struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(double value) : bits(bfloat16_bits(value)) {}
  operator float() const { return bfloat16_value(bits); }
};

struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(double value) : bits(float16_bits(value)) {}
  operator float() const { return float16_value(bits); }
};

}  // namespace burin
