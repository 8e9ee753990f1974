// The elementwise ops on integers and bool. Integers wrap: arithmetic happens in 64 unsigned bits, of which the dtype
// keeps the lowest.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "ir/op.h"

namespace burin::ir::eval::integers {

template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept Signed = Integer<T> && std::is_signed_v<T>;

template <Integer T>
constexpr int width = 8 * static_cast<int>(sizeof(T));
template <Integer T>
std::uint64_t word(T x) { return static_cast<std::uint64_t>(x); }
template <Integer T>
std::make_unsigned_t<T> bits(T x) { return static_cast<std::make_unsigned_t<T>>(x); }

// ---- arithmetic -----------------------------------------------------------------------------------------------------
template <Integer T> T rule(Tag<Op::neg>, T x) { return static_cast<T>(-word(x)); }
template <Integer T> T rule(Tag<Op::abs>, T x) { return x < 0 ? static_cast<T>(-word(x)) : x; }
template <Integer T> T rule(Tag<Op::sign>, T x) { return static_cast<T>((x > 0) - (x < 0)); }
template <Integer T> T rule(Tag<Op::add>, T x, T y) { return static_cast<T>(word(x) + word(y)); }
template <Integer T> T rule(Tag<Op::sub>, T x, T y) { return static_cast<T>(word(x) - word(y)); }
template <Integer T> T rule(Tag<Op::mul>, T x, T y) { return static_cast<T>(word(x) * word(y)); }
template <Integer T> T rule(Tag<Op::max>, T x, T y) { return std::max(x, y); }
template <Integer T> T rule(Tag<Op::min>, T x, T y) { return std::min(x, y); }
template <Integer T> T rule(Tag<Op::clamp>, T low, T x, T high) { return std::min(std::max(x, low), high); }

template <Integer T>
T rule(Tag<Op::div>, T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if (Signed<T> && y == static_cast<T>(-1)) return static_cast<T>(-word(x));
  return static_cast<T>(x / y);
}
template <Integer T>
T rule(Tag<Op::rem>, T x, T y) {
  if (y == 0) return x;
  if (Signed<T> && y == static_cast<T>(-1)) return 0;
  return static_cast<T>(x % y);
}
template <Integer T>
T rule(Tag<Op::pow>, T x, T y) {
  if constexpr (Signed<T>)
    if (y < 0) return x == 1 ? T(1) : x == -1 ? static_cast<T>(y % 2 == 0 ? 1 : -1) : T(0);
  std::uint64_t result = 1, square = word(x);
  for (std::uint64_t exponent = word(y); exponent != 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// ---- bits -----------------------------------------------------------------------------------------------------------
template <Integer T> T rule(Tag<Op::bit_not>, T x) { return static_cast<T>(~word(x)); }
template <Integer T> T rule(Tag<Op::bit_and>, T x, T y) { return static_cast<T>(word(x) & word(y)); }
template <Integer T> T rule(Tag<Op::bit_or>, T x, T y) { return static_cast<T>(word(x) | word(y)); }
template <Integer T> T rule(Tag<Op::bit_xor>, T x, T y) { return static_cast<T>(word(x) ^ word(y)); }
template <Integer T> T rule(Tag<Op::popcount>, T x) { return static_cast<T>(std::popcount(bits(x))); }
template <Integer T> T rule(Tag<Op::count_leading_zeros>, T x) { return static_cast<T>(std::countl_zero(bits(x))); }

template <Integer T>
T rule(Tag<Op::shift_left>, T x, T y) {
  return bits(y) >= width<T> ? T(0) : static_cast<T>(word(x) << bits(y));
}
template <Integer T>
T rule(Tag<Op::shift_right_logical>, T x, T y) {
  return bits(y) >= width<T> ? T(0) : static_cast<T>(word(bits(x)) >> bits(y));
}
template <Integer T>
T rule(Tag<Op::shift_right_arithmetic>, T x, T y) {
  const auto x_signed = static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(x));
  return static_cast<T>(x_signed >> (bits(y) >= width<T> ? width<T> - 1 : static_cast<int>(bits(y))));
}

// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): four rounds, then a key is
// injected, five times. The third key word is the parity of the two with a constant from Skein.
inline std::uint64_t rule(Tag<Op::threefry2x32>, std::uint64_t key, std::uint64_t counter) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const auto k0 = static_cast<std::uint32_t>(key >> 32), k1 = static_cast<std::uint32_t>(key);
  const std::uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  auto x0 = static_cast<std::uint32_t>(counter >> 32) + keys[0], x1 = static_cast<std::uint32_t>(counter) + keys[1];
  for (std::uint32_t injection = 1; injection <= 5; ++injection) {
    for (int rotation : rotations[(injection - 1) % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += keys[injection % 3];
    x1 += keys[(injection + 1) % 3] + injection;
  }
  return std::uint64_t{x0} << 32 | x1;
}

// ---- bool: add is or, mul is and ------------------------------------------------------------------------------------
template <class T>
concept Bool = std::is_same_v<T, bool>;

template <Bool T> T rule(Tag<Op::add>, T x, T y) { return x || y; }
template <Bool T> T rule(Tag<Op::mul>, T x, T y) { return x && y; }
template <Bool T> T rule(Tag<Op::max>, T x, T y) { return x || y; }
template <Bool T> T rule(Tag<Op::min>, T x, T y) { return x && y; }
template <Bool T> T rule(Tag<Op::clamp>, T low, T x, T high) { return (x || low) && high; }
template <Bool T> T rule(Tag<Op::bit_not>, T x) { return !x; }
template <Bool T> T rule(Tag<Op::bit_and>, T x, T y) { return x && y; }
template <Bool T> T rule(Tag<Op::bit_or>, T x, T y) { return x || y; }
template <Bool T> T rule(Tag<Op::bit_xor>, T x, T y) { return x != y; }

// ---- compare, bool included: false < true ---------------------------------------------------------------------------
template <std::integral T> bool rule(Tag<Op::eq>, T x, T y) { return x == y; }
template <std::integral T> bool rule(Tag<Op::ne>, T x, T y) { return x != y; }
template <std::integral T> bool rule(Tag<Op::lt>, T x, T y) { return x < y; }
template <std::integral T> bool rule(Tag<Op::le>, T x, T y) { return x <= y; }
template <std::integral T> bool rule(Tag<Op::gt>, T x, T y) { return x > y; }
template <std::integral T> bool rule(Tag<Op::ge>, T x, T y) { return x >= y; }

}  // namespace burin::ir::eval::integers
