// What a vector-math routine is written over. Every routine of this folder is one template over an abstract machine
// `M`, instantiated twice: over plain host numbers (tests, exhaustive over f32) and over LLVM values of any vector
// width (code generation). Both perform the same IEEE operations in the same order, so their results are equal bit for
// bit, vector body and scalar tail included.
//
// A machine has value types F (a float of M::width bits), I (an integer of the same width, wrapping), B (a truth
// value):
//   operators   F: + - * / unary -, < <= > >= (false on NaN), == ; I: + - & | ^, << and >> by a constant (logical), ==
//   ;
//               B: & | !. There is no contraction: a product and a sum round separately unless fma is written.
//   f(c), i(c)             constants; a double literal that M::width can hold exactly, or is rounded to it
//   fma, abs, sqrt, round_even, floor, copysign(magnitude, sign), select(b, x, y), is_nan(x)
//   bits(F) -> I, from_bits(I) -> F
//   pick(table, I) -> F    of 16 numbers, 32 bits: the one that the low four bits say
//   scaled(x, n) -> x 2^n for an integer n, rounded once, where the machine has an instruction for it; else nothing
// A machine of 32 bits also has a Wide machine of 64 bits, with as many lanes: wide(), widen(F), narrow(Wide::F),
// narrow_bits(Wide::I) -> I (the low half).
// Routines keep denormals, branch only through select, and touch no memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace burin::codegen::math {

/// The format of the machine's floats, and constants that many routines share.
template <int Bits>
struct Format;

template <>
struct Format<32> {
  static constexpr int mantissa = 23;
  static constexpr int bias = 127;
  static constexpr std::uint64_t one = 0x3f800000;
  static constexpr std::uint64_t sign = 0x80000000;
  static constexpr std::uint64_t mantissa_mask = 0x7fffff;
  static constexpr double min_normal = 0x1p-126;
  static constexpr double ln2_hi = 0x1.62e43p-1, ln2_lo = -0x1.05c61p-29;
  /// Adding it rounds a small float to an integer, which then stands in the low bits.
  static constexpr double rounder = 0x1.8p23;
};

template <>
struct Format<64> {
  static constexpr int mantissa = 52;
  static constexpr int bias = 1023;
  static constexpr std::uint64_t one = 0x3ff0000000000000;
  static constexpr std::uint64_t sign = 0x8000000000000000;
  static constexpr std::uint64_t mantissa_mask = 0xfffffffffffff;
  static constexpr double min_normal = 0x1p-1022;
  static constexpr double ln2_hi = 0x1.62e42fefa39efp-1, ln2_lo = 0x1.abc9e3b39803fp-56;
  static constexpr double rounder = 0x1.8p52;
};

template <class M>
using FormatOf = Format<M::width>;

constexpr double infinity = __builtin_huge_val();
constexpr double not_a_number = __builtin_nan("");

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule with fma.
template <class M>
typename M::F horner(M& m, typename M::F x, std::initializer_list<double> c) {
  const double* last = c.end() - 1;
  typename M::F sum = m.f(*last);
  while (last != c.begin()) sum = m.fma(sum, x, m.f(*--last));
  return sum;
}

template <class M, std::size_t N>
std::array<typename M::F, N> make_constants(M& m, const std::array<double, N>& c) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) { return std::array<typename M::F, N>{m.f(c[K])...}; }
  (std::make_index_sequence<N>());
}

/// Values above `high` become `high`; NaN stays.
template <class M>
typename M::F clamp_above(M& m, typename M::F x, double high) {
  return m.select(x > m.f(high), m.f(high), x);
}

/// Values below `low` become `low`; NaN stays.
template <class M>
typename M::F clamp_below(M& m, typename M::F x, double low) {
  return m.select(x < m.f(low), m.f(low), x);
}

/// sum + error = a + b exactly.
template <class M>
struct Pair {
  typename M::F sum, error;
};

template <class M>
Pair<M> two_sum(typename M::F a, typename M::F b) {
  auto sum = a + b;
  auto b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// 2^n, where `rounded` is n plus the rounder and n a normal exponent.
template <class M>
typename M::F power_of_two(M& m, typename M::I rounded) {
  return m.from_bits((rounded << FormatOf<M>::mantissa) + m.i(FormatOf<M>::one));
}

}  // namespace burin::codegen::math
