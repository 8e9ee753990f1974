// asin, acos, atan, atan2.
#pragma once
#include "codegen/vector_math/machine.h"

namespace burin::codegen::math {

/// atan(t) for 0 <= t <= 1: t + t^3 A(t^2).
template <class M>
typename M::F atan_unit(M& m, typename M::F t) {
  auto z = t * t;
  if constexpr (M::width == 32) {
    return m.fma(t * z,
                 horner(m, z,
                        {-0x1.55553ep-2, 0x1.9991e4p-3, -0x1.242088p-3, 0x1.c08c8ap-4, -0x1.580a6cp-4, 0x1.da3172p-5,
                         -0x1.fd9428p-6, 0x1.64461ap-7, -0x1.d3a9a6p-10}),
                 t);
  } else {
    return m.fma(
        t * z,
        horner(m, z, {-0x1.5555555555526p-2, 0x1.99999999955b1p-3,  -0x1.249249237f4b9p-3,  0x1.c71c717fccadfp-4,
                      -0x1.745d11ae4666p-4,  0x1.3b1366983442cp-4,  -0x1.110e511839e09p-4,  0x1.e1bba5ca569dcp-5,
                      -0x1.ae5e702902fc1p-5, 0x1.82dacf7bb08e6p-5,  -0x1.59a3eb72cda63p-5,  0x1.2c2e379155fcep-5,
                      -0x1.e9f99fef00aefp-6, 0x1.683c4c071d4c9p-6,  -0x1.c78ef0d610ca2p-7,  0x1.d7b80400ea5ep-8,
                      -0x1.7a3881c9c8783p-9, 0x1.b3f957d965263p-11, -0x1.3f351f0d09bfbp-13, 0x1.bbebd8e26f07ep-17}),
        t);
  }
}

/// turn - a for a constant turn given as the sum of two numbers, a in [0, turn].
template <class M>
typename M::F complement(M& m, double turn, double turn_low, typename M::F a) {
  return m.f(turn) - (a - m.f(turn_low));
}

template <class M>
struct Pi {
  static constexpr bool f32 = M::width == 32;
  static constexpr double pi = f32 ? 0x1.921fb6p1 : 0x1.921fb54442d18p1;
  static constexpr double pi_low = f32 ? -0x1.777a5cp-24 : 0x1.1a62633145c07p-53;
  static constexpr double half_pi = pi / 2, half_pi_low = pi_low / 2;
};

template <class M>
typename M::F atan(M& m, typename M::F x) {
  auto a = m.abs(x), one = m.f(1);
  auto is_large = a > one;
  auto r = atan_unit(m, m.select(is_large, one / a, a));
  return m.copysign(m.select(is_large, complement(m, Pi<M>::half_pi, Pi<M>::half_pi_low, r), r), x);
}

/// The angle of the point (x, y), as C has it: signs of zeros count, and infinities are directions.
template <class M>
typename M::F atan2(M& m, typename M::F y, typename M::F x) {
  auto a = m.abs(x), b = m.abs(y), zero = m.f(0), one = m.f(1);
  auto is_steep = b > a;
  auto small = m.select(is_steep, a, b), large = m.select(is_steep, b, a);
  auto t = m.select(small == large, m.select(large == zero, zero, one), small / large);
  auto r = atan_unit(m, t);
  // r, pi/2 - r, pi/2 + r or pi - r, rounded once.
  auto points_left = m.copysign(one, x) < zero;
  auto added = m.select(is_steep, m.select(points_left, r, -r), m.select(points_left, -r, r));
  auto pick = [&](double half_pi, double pi) {
    return m.select(is_steep, m.f(half_pi), m.select(points_left, m.f(pi), zero));
  };
  r = pick(Pi<M>::half_pi, Pi<M>::pi) + (pick(Pi<M>::half_pi_low, Pi<M>::pi_low) + added);
  auto x_is_nan = m.is_nan(x), y_is_nan = m.is_nan(y);
  return m.select(x_is_nan | y_is_nan, m.f(not_a_number), m.copysign(r, y));
}

/// asin(a) = s + rest for a <= 1/2; acos(a) = 2 (s + rest) for 1/2 < a <= 1, with s = sqrt((1 - a) / 2).
template <class M>
struct AsinParts {
  typename M::B is_large;
  typename M::F s, rest;
};

template <class M>
AsinParts<M> asin_parts(M& m, typename M::F a) {
  auto half = m.f(0.5);
  auto is_large = a > half;
  auto z = m.select(is_large, half - half * a, a * a);
  auto s = m.select(is_large, m.sqrt(z), a);
  if constexpr (M::width == 32) {
    return {
        is_large, s,
        s * z *
            horner(m, z, {0x1.55554cp-3, 0x1.3338aap-4, 0x1.6ca7dep-5, 0x1.04cceep-5, 0x1.d58c48p-7, 0x1.349d46p-5})};
  } else {
    return {is_large, s,
            s * z *
                horner(m, z,
                       {0x1.5555555555382p-3, 0x1.333333337024ap-4, 0x1.6db6db416ab68p-5, 0x1.f1c72c9066aa2p-6,
                        0x1.6e89ec1693884p-6, 0x1.1c6c5c34af17dp-6, 0x1.c6f45871a0c6cp-7, 0x1.8f007713b65c1p-7,
                        0x1.a9be3bfc2cf48p-8, 0x1.415cf3bfdb6a5p-6, -0x1.0c060283b1292p-6, 0x1.062d88ba8c69fp-5})};
  }
}

/// turn - (s + rest), rest far below s <= turn: the rounding of turn - s is added back.
template <class M>
typename M::F complement(M& m, double turn, double turn_low, typename M::F s, typename M::F rest) {
  auto difference = m.f(turn) - s;
  auto rounding = (m.f(turn) - difference) - s;
  return difference + (rounding + (m.f(turn_low) - rest));
}

template <class M>
typename M::F asin(M& m, typename M::F x) {
  auto a = m.abs(x);
  auto [is_large, s, rest] = asin_parts(m, a);
  auto large = complement(m, Pi<M>::half_pi, Pi<M>::half_pi_low, s + s, rest + rest);
  return m.select(a > m.f(1), m.f(not_a_number), m.copysign(m.select(is_large, large, s + rest), x));
}

template <class M>
typename M::F acos(M& m, typename M::F x) {
  auto a = m.abs(x);
  auto [is_large, s, rest] = asin_parts(m, a);
  auto large =
      m.select(x < m.f(0), complement(m, Pi<M>::pi, Pi<M>::pi_low, s + s, rest + rest), (s + rest) + (s + rest));
  auto near = complement(m, Pi<M>::half_pi, Pi<M>::half_pi_low, x, m.copysign(rest, x));
  return m.select(a > m.f(1), m.f(not_a_number), m.select(is_large, large, near));
}

}  // namespace burin::codegen::math
