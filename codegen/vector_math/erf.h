// erf and erfc.
// |x| small: erf(x) = x + x E(x^2). Beyond, f32 erf: 1 - 2^G(|x|), G approximating log2(erfc). Elsewhere
// erfc(a) = exp(-a^2) H(t) / (a + 3) with t = (a - 3) / (a + 3), for which H is smooth up to infinity.
#pragma once
#include "codegen/vector_math/exp.h"

namespace burin::codegen::math {

/// erf(x) for |x| <= 0.9 (f32), 1 (f64).
template <class M>
typename M::F erf_small(M& m, typename M::F x) {
  auto z = x * x;
  if constexpr (M::width == 32) {
    auto e = horner(
        m, z,
        {0x1.06eba8p-3, -0x1.812744p-2, 0x1.ce2e54p-4, -0x1.b81524p-6, 0x1.550a46p-8, -0x1.aca3ap-11, 0x1.6510e6p-14});
    return m.fma(x, e, x);
  } else {
    auto e = horner(
        m, z,
        {0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b2p-4, -0x1.b82ce3128499cp-6, 0x1.565bcd0db02dp-8,
         -0x1.c02db3d8eceffp-11, 0x1.f9a321a1188cp-14, -0x1.f4d1df38f3c8cp-17, 0x1.b9def19a3ef43p-20,
         -0x1.5f1d36a877647p-23, 0x1.f7a4115192efp-27, -0x1.386abebd830c9p-30, 0x1.0579a6cacbd72p-34});
    return m.fma(x, e, x);
  }
}

/// 1 - erfc(a) for 0.9 <= a <= 4, f32: the error of the power weighs at most erfc(0.9) = 0.2.
template <class M>
typename M::F erf_large(M& m, typename M::F a) {
  auto g = horner(
      m, a,
      {-0x1.c7867cp-13, -0x1.a08daap0, -0x1.d66d98p-1, -0x1.33e61ep-3, 0x1.084516p-5, -0x1.22e788p-8, 0x1.2d96aap-12});
  auto rounded = g + m.f(FormatOf<M>::rounder);
  auto r = g - (rounded - m.f(FormatOf<M>::rounder));
  auto p = m.fma(exp2_quotient(m, r), r, m.f(1));
  return m.fma(-p, power_of_two(m, m.bits(rounded)), m.f(1));
}

/// erfc(a) for 0.5 <= a <= 28, f64.
template <class M>
typename M::F erfc_tail(M& m, typename M::F a) {
  auto square = a * a;
  auto rest = m.fma(a, a, -square);
  // H falls steeply at small a: the quotient is kept to twice the precision until t and H are formed.
  auto d = two_sum<M>(a, m.f(3));
  auto inverse = m.f(1) / d.sum;
  auto inverse_low = inverse * (m.fma(-inverse, d.sum, m.f(1)) - inverse * d.error);
  auto t = m.fma(m.f(-6), inverse, m.f(1)) + m.f(-6) * inverse_low;
  auto h =
      horner(m, t, {0x1.12f21ddd9f5e2p0,    -0x1.c44c471baa376p-1,  0x1.2e326945de2b5p-1,   -0x1.3deb21415dd25p-2,
                    0x1.e995f11b17489p-4,   -0x1.b78993d6a346bp-6,  -0x1.3dd3e71237f65p-10, 0x1.8dae3a1fa331cp-9,
                    -0x1.1f78e10beccfp-11,  -0x1.2238fbd5eb5d5p-12, 0x1.c325268370defp-14,  0x1.fdfecfdfe3514p-16,
                    -0x1.251977a741789p-16, -0x1.3eb28cb1fc4c7p-18, 0x1.72fe02978802cp-19,  0x1.0bf2f8fc65282p-20,
                    -0x1.b3c7e2d4d0075p-22, -0x1.f29b5bbc61c32p-23, 0x1.7a927eb346ccep-25,  0x1.a3f9e8f373be9p-25,
                    -0x1.67437579e26bap-33, -0x1.e4bcc4e4af7c6p-28, -0x1.d6096c3330be5p-31, 0x1.648c3484454eep-32});
  return exp_times(m, -square, -rest, m.fma(h, inverse, h * inverse_low));
}

/// erfc(a) for 0 <= a <= 11 to 26 bits, on the Wide machine of a 32-bit one: a^2 is exact there.
template <class W>
typename W::F erfc_tail_to_26_bits(W& w, typename W::F a) {
  auto three = w.f(3), inverse = w.f(1) / (a + three);
  auto t = (a - three) * inverse;
  auto h = horner(w, t,
                  {0x1.12f21ep0, -0x1.c44c48p-1, 0x1.2e3266p-1, -0x1.3deaep-2, 0x1.e997b8p-4, -0x1.b7b352p-6,
                   -0x1.41e1f4p-10, 0x1.927384p-9, -0x1.fbbcb6p-12, -0x1.475b08p-12, 0x1.04f93ep-17});
  return exp_to_28_bits(w, -(a * a)) * (h * inverse);
}

template <class M>
typename M::F erf(M& m, typename M::F x) {
  auto a = m.abs(x);
  if constexpr (M::width == 32) {
    auto large = m.copysign(erf_large(m, clamp_above(m, a, 4)), x);
    return m.select(a < m.f(0.89), erf_small(m, x), large);
  } else {
    auto large = m.copysign(m.f(1) - erfc_tail(m, clamp_above(m, a, 6)), x);
    return m.select(a < m.f(1), erf_small(m, x), large);
  }
}

template <class M>
typename M::F erfc(M& m, typename M::F x) {
  auto zero = m.f(0), two = m.f(2), a = m.abs(x);
  if constexpr (M::width == 32) {
    auto w = m.wide();
    auto tail = erfc_tail_to_26_bits(w, w.abs(m.widen(clamp_above(m, a, 11))));
    return m.narrow(w.select(m.widen(x) < w.f(0), w.f(2) - tail, tail));
  } else {
    auto tail = erfc_tail(m, clamp_above(m, a, 28));
    auto large = m.select(x < zero, two - tail, tail);
    auto near_zero = x < m.f(0.5);
    return m.select(near_zero, m.select(x > m.f(-1), m.f(1) - erf_small(m, x), large), large);
  }
}

}  // namespace burin::codegen::math
