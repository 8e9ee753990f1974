// Conversions between f32, f64 and the half types that hardware and LLVM do not do as Burin means them: rounding to
// nearest even exactly once, NaN made the quiet one of its sign, denormals kept (hardware f32 -> bf16 flushes them).
#pragma once
#include "codegen/vector_math/machine.h"

namespace burin::codegen::math {

/// The bfloat16 of x in the low 16 bits.
template <class M>
typename M::I bf16_bits(M& m, typename M::F x) {
  static_assert(M::width == 32);
  auto bits = m.bits(x), high = bits >> 16;
  auto rounded = (bits + (m.i(0x7fff) + (high & m.i(1)))) >> 16;
  return m.select(m.is_nan(x), (high & m.i(0x8000)) | m.i(0x7fc0), rounded);
}

/// The value of a bfloat16 given in the low 16 bits of an otherwise zero integer.
template <class M>
typename M::F bf16_value(M& m, typename M::I bits) {
  static_assert(M::width == 32);
  return m.from_bits(bits << 16);
}

/// f64 -> f32 rounded to odd: an inexact result has its last bit set. Rounding that to a narrower format which is at
/// least two bits shorter gives what rounding x once would. NaN stays NaN.
template <class M>
typename M::F round_to_odd(M& m, typename M::Wide::F x) {
  static_assert(M::width == 32);
  auto w = m.wide();
  auto nearest = m.narrow(x);
  auto back = m.widen(nearest);
  auto bits = m.bits(nearest);
  auto is_too_large = w.abs(back) > w.abs(x);
  auto truncated = m.select(is_too_large, bits - m.i(1), bits);
  auto is_inexact = (back < x) | (back > x);
  return m.from_bits(m.select(is_inexact, truncated | m.i(1), bits));
}

}  // namespace burin::codegen::math
