// pow, with the special values of C. |x|^y = 2^(y log2 |x|): f32 on the Wide machine; f64 with the logarithm and the
// product as unevaluated sums of two doubles (relative error about 2^-66), since y multiplies the error by up to 2^10.
#pragma once
#include "codegen/vector_math/exp.h"
#include "codegen/vector_math/log.h"

namespace burin::codegen::math {

/// hi + lo.
template <class M>
struct Double {
  typename M::F hi, lo;
};

/// log(1 + f) = s (2 + z T(z)), s = f / (2 + f), z = s^2.
template <class M>
Double<M> log_twofold(M& m, typename M::F f) {
  auto two = m.f(2);
  auto d = two + f, d_low = f - (d - two);
  auto inverse = m.f(1) / d;
  auto s = f * inverse;
  auto s_low = (m.fma(-s, d, f) - s * d_low) * inverse;
  auto z = s * s, z_low = m.fma(s, s, -z) + (s + s) * s_low;
  auto u = horner(m, z,
                  {0x1.9999999999995p-2, 0x1.2492492493192p-2, 0x1.c71c71c55743dp-3, 0x1.745d1845e48cep-3,
                   0x1.3b135d8944c24p-3, 0x1.11217b2997d0ap-3, 0x1.de145d04da8d3p-4, 0x1.ec11d9a66909fp-4});
  auto c = m.f(0x1.5555555555555p-1), zu = z * u;
  auto t = c + zu, t_low = ((c - t) + zu) + m.f(0x1.5555555555555p-55);
  auto w = z * t, w_low = m.fma(z, t, -w) + (z * t_low + z_low * t);
  auto v = two + w, v_low = ((two - v) + w) + w_low;
  auto hi = s * v;
  return {hi, m.fma(s, v, -hi) + (s * v_low + s_low * v)};
}

/// log2(a) for a >= 0 or NaN.
template <class M>
Double<M> log2_twofold(M& m, typename M::F a) {
  auto [e, f] = reduce_log(m, a);
  auto log = log_twofold(m, f);
  auto scale = m.f(0x1.71547652b82fep0);
  auto hi = log.hi * scale;
  auto lo = m.fma(log.hi, scale, -hi) + (log.hi * m.f(0x1.777d0ffda0d24p-56) + log.lo * scale);
  auto sum = e + hi;
  lo = (hi - (sum - e)) + lo;
  return {m.select(a == m.f(0), m.f(-infinity), m.select(a < m.f(infinity), sum, a)), lo};
}

/// a^y for a >= 0, except where the exact product y log2(a) is 0 * infinity.
template <class M>
typename M::F pow_magnitude(M& m, typename M::F a, typename M::F y) {
  if constexpr (M::width == 32) {
    auto w = m.wide();
    auto x = m.widen(a);
    auto [e, f] = reduce_log(w, x);
    auto s = f / (f + w.f(2)), z = s * s, half_square = f * f * w.f(0.5);
    auto r = horner(
        w, z,
        {0x1.55555556202ccp-1, 0x1.999996a37daedp-2, 0x1.24941498557c5p-2, 0x1.c62a2201a2f98p-3, 0x1.91243c0186e0bp-3});
    auto log = f + w.fma(s, w.fma(z, r, half_square), -half_square);
    auto log2 = w.fma(log, w.f(0x1.71547652b82fep0), e);
    log2 = w.select(x == w.f(0), w.f(-infinity), w.select(x < w.f(infinity), log2, x));
    auto product = clamp_above(w, clamp_below(w, m.widen(y) * log2, -200), 200);
    auto rounded = product + w.f(Format<64>::rounder);
    auto fraction = product - (rounded - w.f(Format<64>::rounder));
    auto q = horner(
        w, fraction,
        {0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6b074p-5, 0x1.3b2a58p-7, 0x1.5d9c92p-10, 0x1.441438p-13, 0x1.eced22p-17});
    return m.narrow(w.fma(q, fraction, w.f(1)) * power_of_two(w, w.bits(rounded)));
  } else {
    auto log = log2_twofold(m, a);
    auto product = y * log.hi;
    auto low = m.fma(y, log.hi, -product) + y * log.lo;
    low = m.select(m.abs(product) < m.f(2000), low, m.f(0));
    product = clamp_above(m, clamp_below(m, product, -1080), 1030);
    auto rounder = m.f(Format<64>::rounder);
    auto rounded = product + rounder;
    auto r = (product - (rounded - rounder)) + low;
    return scale(m, m.fma(exp2_quotient(m, r), r, m.f(1)), rounded, m.fma(product, m.f(0.5), rounder));
  }
}

template <class M>
typename M::F pow(M& m, typename M::F x, typename M::F y) {
  auto zero = m.f(0), one = m.f(1), a = m.abs(x);
  auto magnitude = m.select(a == one, m.select(y == y, one, y), pow_magnitude(m, a, y));
  auto half = y * m.f(0.5);
  auto is_integer = m.floor(y) == y;
  auto is_odd = is_integer & !(m.floor(half) == half);
  auto signed_value = m.select(is_odd, m.copysign(magnitude, x), magnitude);
  auto has_no_value = (x < zero) & (a < m.f(infinity)) & !is_integer;
  auto result = m.select(has_no_value, m.f(not_a_number), signed_value);
  return m.select((y == zero) | (x == one), one, result);
}

}  // namespace burin::codegen::math
