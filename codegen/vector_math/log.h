// log, log2, log1p. Scheme: x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
// f32: log(1 + f) = f - f^2/2 + f^3 P(f). f64: with s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 R(s^2)).
#pragma once
#include "codegen/vector_math/machine.h"

namespace burin::codegen::math {

template <int Bits>
struct LogFormat;
template <>
struct LogFormat<32> {
  static constexpr std::uint64_t sqrt_half = 0x3f3504f3;
  static constexpr double carrier = 0x1p23;  ///< its low mantissa bits hold a small integer
  static constexpr std::uint64_t carrier_bits = 0x4b000000;
};
template <>
struct LogFormat<64> {
  static constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
  static constexpr double carrier = 0x1p52;
  static constexpr std::uint64_t carrier_bits = 0x4330000000000000;
};

/// bits(x) moved so that the exponent field is e + bias, with 1 + f in [sqrt(1/2), sqrt(2)).
template <class M>
typename M::I log_shift(M& m, typename M::F x) {
  return m.bits(x) + m.i(FormatOf<M>::one - LogFormat<M::width>::sqrt_half);
}

/// e as a float; offset is subtracted (the bias is included).
template <class M>
typename M::F log_exponent(M& m, typename M::I shifted, typename M::F offset) {
  return m.from_bits((shifted >> FormatOf<M>::mantissa) | m.i(LogFormat<M::width>::carrier_bits)) - offset;
}

template <class M>
struct LogReduction {
  typename M::F e, f;
};

/// For positive finite x, denormals included.
template <class M>
LogReduction<M> reduce_log(M& m, typename M::F x) {
  using Fmt = FormatOf<M>;
  constexpr double offset = LogFormat<M::width>::carrier + Fmt::bias;
  auto is_denormal = x < m.f(Fmt::min_normal);
  x = m.select(is_denormal, x * m.f(static_cast<double>(std::uint64_t{1} << Fmt::mantissa)), x);
  auto shifted = log_shift(m, x);
  auto e = log_exponent(m, shifted, m.select(is_denormal, m.f(offset + Fmt::mantissa), m.f(offset)));
  auto f = m.from_bits((shifted & m.i(Fmt::mantissa_mask)) + m.i(LogFormat<M::width>::sqrt_half)) - m.f(1);
  return {e, f};
}

/// log(1 + f) - f.
template <class M>
typename M::F log_curvature(M& m, typename M::F f) {
  auto half_square = f * f * m.f(0.5);
  if constexpr (M::width == 32) {
    auto p = horner(m, f,
                    {0x1.555546p-2, -0x1.ffffeep-3, 0x1.99a55ap-3, -0x1.5562fap-3, 0x1.2330fep-3, -0x1.fb3da8p-4,
                     0x1.e66724p-4, -0x1.e315ap-4, 0x1.1b4304p-4});
    return m.fma(f * f * f, p, -half_square);
  } else {
    auto s = f / (f + m.f(2));
    auto z = s * s;
    auto r = horner(m, z,
                    {0x1.5555555555593p-1, 0x1.999999997f983p-2, 0x1.2492494234d71p-2, 0x1.c71c51cccd768p-3,
                     0x1.74664c556a911p-3, 0x1.39a048e06abp-3, 0x1.2f14cc8d24a73p-3});
    return m.fma(s, m.fma(z, r, half_square), -half_square);
  }
}

/// e ln2 + log(1 + f).
template <class M>
typename M::F log_of(M& m, LogReduction<M> x) {
  using Fmt = FormatOf<M>;
  auto low = m.fma(x.e, m.f(Fmt::ln2_lo), log_curvature(m, x.f));
  return m.fma(x.e, m.f(Fmt::ln2_hi), x.f + low);
}

/// `result`, or the logarithm's value where x is not a finite number above its pole.
template <class M>
typename M::F log_edges(M& m, typename M::F result, typename M::F x, typename M::F pole) {
  auto at_most_pole = m.select(x == pole, m.f(-infinity), m.f(not_a_number));
  return m.select(x > pole, m.select(x < m.f(infinity), result, x), at_most_pole);
}

template <class M>
typename M::F log(M& m, typename M::F x) {
  return log_edges(m, log_of(m, reduce_log(m, x)), x, m.f(0));
}

template <class M>
typename M::F log2(M& m, typename M::F x) {
  constexpr bool f32 = M::width == 32;
  auto [e, f] = reduce_log(m, x);
  auto hi = m.f(f32 ? 0x1.715476p0 : 0x1.71547652b82fep0);
  auto lo = m.f(f32 ? 0x1.4ae0cp-26 : 0x1.777d0ffda0d24p-56);
  auto result = e + m.fma(f, hi, m.fma(f, lo, log_curvature(m, f) * hi));
  return log_edges(m, result, x, m.f(0));
}

/// For x > -1: e comes from 1 + x rounded, f = 2^-e (1 + x) - 1 from x itself, rounded once. Denormal x loses bits.
template <class M>
LogReduction<M> reduce_log1p(M& m, typename M::F x) {
  using Fmt = FormatOf<M>;
  auto shifted = log_shift(m, x + m.f(1)) >> Fmt::mantissa;
  auto e =
      m.from_bits(shifted | m.i(LogFormat<M::width>::carrier_bits)) - m.f(LogFormat<M::width>::carrier + Fmt::bias);
  // 4 * 2^-e, as 2^-e may be denormal.
  auto scale = m.from_bits((m.i(2 * Fmt::bias + 2) - shifted) << Fmt::mantissa);
  auto quarter = m.f(0.25);
  return {e, m.fma(x * quarter, scale, m.fma(quarter, scale, m.f(-1)))};
}

template <class M>
typename M::F log1p(M& m, typename M::F x) {
  auto result = log_edges(m, log_of(m, reduce_log1p(m, x)), x, m.f(-1));
  return m.select(m.abs(x) < m.f(M::width == 32 ? 0x1p-26 : 0x1p-55), x, result);
}

}  // namespace burin::codegen::math
