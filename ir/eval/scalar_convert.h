// convert between all pairs of dtypes, each rounding once.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ir/eval/scalar.h"

namespace burin::ir::eval {

/// A 64-bit integer as a double with the same rounding to any format of at most 51 bits: the bits that do not fit are
/// collected in the last one that does (round to odd).
inline double sticky_double(std::uint64_t magnitude) {
  if (magnitude < std::uint64_t{1} << 53) return static_cast<double>(magnitude);
  const std::uint64_t lost = magnitude & 0x7ff;
  return std::ldexp(static_cast<double>(magnitude >> 11 | (lost != 0)), 11);
}

template <class To, class From>
To convert_element(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Native<From>>(x) != 0;
  } else if constexpr (FloatElement<From> && FloatElement<To>) {
    return static_cast<To>(static_cast<Native<From>>(x));
  } else if constexpr (FloatElement<From>) {
    // Both bounds are powers of two and exact: truncation stays inside for low <= x < 2^bits.
    const double value = static_cast<double>(x);
    const double low = static_cast<double>(std::numeric_limits<To>::min());
    const double beyond = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (std::isnan(value)) return 0;
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= beyond) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else if constexpr (HalfElement<To>) {
    const bool negative = x < From(0);
    const std::uint64_t word = static_cast<std::uint64_t>(x);
    const double magnitude = sticky_double(negative ? -word : word);
    return static_cast<To>(negative ? -magnitude : magnitude);
  } else {
    return static_cast<To>(x);  // to f32 and f64 rounded once by the processor, to integers modulo 2^bits
  }
}

}  // namespace burin::ir::eval
