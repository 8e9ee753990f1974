// exp, exp2, expm1 and what is built on them: logistic, sinh, cosh, tanh of f64.
// Scheme: x = n ln2 + r with |r| <= ln2 / 2; exp(r) - 1 = r + r^2 q(r), q minimax; the result is scaled by 2^n, where a denormal is
// rounded once.
#pragma once
#include "codegen/vector_math/machine.h"

namespace burin::codegen::math {

/// x = n ln2 + r; `rounded` has n in its low bits.
template <class M>
struct ExpReduction {
  typename M::F rounded, r;
};

template <class M>
ExpReduction<M> reduce_exp(M& m, typename M::F x) {
  using Fmt = FormatOf<M>;
  auto rounded = m.fma(x, m.f(0x1.71547652b82fep0), m.f(Fmt::rounder));
  auto n = rounded - m.f(Fmt::rounder);
  auto r = m.fma(n, m.f(-Fmt::ln2_hi), x);
  return {rounded, m.fma(n, m.f(-Fmt::ln2_lo), r)};
}

/// (exp(r) - 1 - r) / r^2 for |r| <= 0.35.
template <class M>
typename M::F exp_quotient(M& m, typename M::F r) {
  if constexpr (M::width == 32) {
    return horner(m, r, {0x1p-1, 0x1.5554a4p-3, 0x1.555538p-5, 0x1.12319ep-7, 0x1.6cd656p-10});
  } else {
    return horner(m, r,
                  {0x1p-1, 0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f5a1p-7, 0x1.6c16c16c14797p-10,
                   0x1.a01a01b07cff1p-13, 0x1.a01a01b06cb3bp-16, 0x1.71ddf67aa5f14p-19, 0x1.27e4c564626cdp-22,
                   0x1.af627bd4bf774p-26, 0x1.1f969309b36b9p-29});
  }
}

/// p 2^n for n + rounder = rounded, |n| <= 2 * bias, rounded once: by one instruction where there is one, else in two halves of which the
/// first is exact; half_rounded is any m + rounder with m and n - m normal exponents.
template <class M>
typename M::F scale(M& m, typename M::F p, typename M::F rounded, typename M::F half_rounded) {
  if (const auto scaled = m.scaled(p, rounded - m.f(FormatOf<M>::rounder))) return *scaled;
  auto first = m.bits(half_rounded);
  auto second = m.bits(rounded) - first;
  return p * power_of_two(m, first) * power_of_two(m, second);
}

/// exp for x at most a little beyond the overflow threshold on either side, or NaN.
template <class M>
typename M::F exp_clamped(M& m, typename M::F x) {
  auto [rounded, r] = reduce_exp(m, x);
  auto p = m.fma(m.fma(exp_quotient(m, r), r, m.f(1)), r, m.f(1));
  auto half_rounded = m.fma(x, m.f(0x1.71547652b82fep-1), m.f(FormatOf<M>::rounder));
  return scale(m, p, rounded, half_rounded);
}

/// factor * exp(x + low) for finite x down to twice the underflow threshold and low far below x; a denormal product is
/// rounded once.
template <class M>
typename M::F exp_times(M& m, typename M::F x, typename M::F low, typename M::F factor) {
  auto [rounded, r] = reduce_exp(m, x);
  r = r + low;
  auto p = m.fma(factor, m.fma(r * r, exp_quotient(m, r), r), factor);
  auto half_rounded = m.fma(x, m.f(0x1.71547652b82fep-1), m.f(FormatOf<M>::rounder));
  return scale(m, p, rounded, half_rounded);
}

/// exp for the Wide machine of a 32-bit one, where 28 correct bits are enough: |x| below 700.
template <class W>
typename W::F exp_to_28_bits(W& w, typename W::F x) {
  auto [rounded, r] = reduce_exp(w, x);
  auto q = horner(w, r, {0x1p-1, 0x1.5554a4p-3, 0x1.555538p-5, 0x1.12319ep-7, 0x1.6cd656p-10});
  return w.fma(w.fma(q, r, w.f(1)), r, w.f(1)) * power_of_two(w, w.bits(rounded));
}

/// power(x) where x is at least `low`, below which it is 0: there another x is raised, for processors take a hundred cycles for a result
/// that underflows, and what is masked comes as -inf.
template <class M, class Power>
typename M::F zero_below(M& m, typename M::F x, double low, Power power) {
  auto below = x < m.f(low);
  return m.select(below, m.f(0), power(m.select(below, m.f(0), x)));
}

template <class M>
typename M::F exp(M& m, typename M::F x) {
  constexpr bool f32 = M::width == 32;
  return zero_below(m, x, f32 ? -104 : -746, [&](auto y) { return exp_clamped(m, clamp_above(m, y, f32 ? 89 : 710)); });
}

/// (2^r - 1) / r for |r| <= 0.505.
template <class M>
typename M::F exp2_quotient(M& m, typename M::F r) {
  if constexpr (M::width == 32) {
    return horner(m, r, {0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6aebep-5, 0x1.3b29ap-7, 0x1.5f50b2p-10, 0x1.4497aep-13});
  } else {
    return horner(m, r,
                  {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5adp-3, 0x1.c6b08d704a221p-5, 0x1.3b2ab6fb9ea0bp-7,
                   0x1.5d87fe785e4fdp-10, 0x1.4309131386a6ep-13, 0x1.ffcbfdca09e5ap-17, 0x1.62bfbbc720a19p-20,
                   0x1.b522054f6f66ap-24, 0x1.e62fc2280cdf3p-28, 0x1.ee57c1d3f93ap-32});
  }
}

template <class M>
typename M::F exp2(M& m, typename M::F x) {
  constexpr bool f32 = M::width == 32;
  auto rounder = m.f(FormatOf<M>::rounder);
  return zero_below(m, x, f32 ? -151 : -1076, [&](auto y) {
    y = clamp_above(m, y, f32 ? 129 : 1025);
    auto rounded = y + rounder;
    auto r = y - (rounded - rounder);
    return scale(m, m.fma(exp2_quotient(m, r), r, m.f(1)), rounded, m.fma(y, m.f(0.5), rounder));
  });
}

/// expm1 for x where exp(x) is a normal number or a little more. Denormal x and the sign of zero are the caller's.
template <class M>
typename M::F expm1_clamped(M& m, typename M::F x) {
  using Fmt = FormatOf<M>;
  auto [rounded, r] = reduce_exp(m, x);
  auto p = m.fma(r * r, exp_quotient(m, r), r);
  // 2 (2^(n-1) p + (2^(n-1) - 1/2)): half the scale, as 2^n alone would overflow one step too early.
  auto half_scale =
      m.from_bits((m.bits(rounded) << Fmt::mantissa) + m.i(Fmt::one - (std::uint64_t{1} << Fmt::mantissa)));
  auto half = m.fma(p, half_scale, half_scale - m.f(0.5));
  return half + half;
}

template <class M>
typename M::F expm1(M& m, typename M::F x) {
  constexpr bool f32 = M::width == 32;
  auto y = expm1_clamped(m, clamp_above(m, clamp_below(m, x, f32 ? -18 : -38), f32 ? 89 : 710));
  return m.select(m.abs(x) < m.f(f32 ? 0x1p-26 : 0x1p-55), x, y);
}

/// With y = exp(-|x|): 1 / (1 + y) for positive x; y / (1 + y) for negative x, which keeps the lower tail down to
/// denormals, written y - y (y / (1 + y)), since the rounding of 1 + y then weighs less.
template <class M>
typename M::F logistic(M& m, typename M::F x) {
  auto y = exp_clamped(m, clamp_below(m, -m.abs(x), M::width == 32 ? -104 : -746));
  auto negative = x < m.f(0);
  auto ratio = m.select(negative, y, m.f(1)) / (y + m.f(1));
  return m.select(negative, m.fma(-y, ratio, y), ratio);
}

}  // namespace burin::codegen::math
