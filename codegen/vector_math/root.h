// rsqrt and cbrt.
#pragma once
#include "codegen/vector_math/log.h"

namespace burin::codegen::math {

template <class M>
typename M::F rsqrt(M& m, typename M::F x) {
  return m.f(1) / m.sqrt(x);
}

/// r = a^(-1/3) without a division: a start from the bits (the exponent field divided by -3), then r (1 + h/3 + 2
/// h^2/9) with h = 1 - a r^3, which cubes the error; y = a r^2 takes one more step of Newton's on y^3 = a.
template <class M>
typename M::F cbrt(M& m, typename M::F x) {
  using Fmt = FormatOf<M>;
  constexpr bool f32 = M::width == 32;
  constexpr int dropped = Fmt::mantissa - 15;
  auto a = m.abs(x);
  auto is_denormal = a < m.f(Fmt::min_normal);
  auto scaled = m.select(is_denormal, a * m.f(f32 ? 0x1p24 : 0x1p54), a);
  // The upper bits of `scaled`, at most 23 (26) of them, as a float; divided by 3; as an integer again.
  auto top = m.from_bits((m.bits(scaled) >> dropped) | m.i(LogFormat<M::width>::carrier_bits)) -
             m.f(LogFormat<M::width>::carrier);
  auto third = m.bits(m.fma(top, m.f(1.0 / 3), m.f(Fmt::rounder))) - m.i(f32 ? 0x4b400000 : 0x4338000000000000);
  auto r = m.from_bits(m.i(f32 ? 0x54a1f671 : 0x553ee978caaaaaaa) - (third << dropped));
  auto one = m.f(1);
  for (int step = 0; step < (f32 ? 2 : 3); ++step) {
    auto h = m.fma(-(scaled * r), r * r, one);
    r = m.fma(r * h, m.fma(h, m.f(2.0 / 9), m.f(1.0 / 3)), r);
  }
  auto square = r * r;
  auto y = scaled * square;
  auto miss = m.fma(y * y, y, -scaled);
  y = m.fma(miss * square, m.f(-1.0 / 3), y);
  y = y * m.select(is_denormal, m.f(f32 ? 0x1p-8 : 0x1p-18), one);
  auto is_positive = a > m.f(0), is_finite = a < m.f(infinity);
  return m.select(is_positive & is_finite, m.copysign(y, x), x);
}

}  // namespace burin::codegen::math
