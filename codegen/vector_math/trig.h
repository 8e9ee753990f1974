// sin, cos, tan. After the reduction, minimax polynomials on [-pi/4, pi/4]; the quadrant chooses and negates by
// selects.
#pragma once
#include "codegen/vector_math/trig_reduce.h"

namespace burin::codegen::math {

/// r + low in radians, and the quadrant.
template <class M>
struct Angle {
  typename M::F r, low;
  typename M::I quadrant;
};

template <class M>
Angle<M> reduce_angle(M& m, typename M::F x) {
  auto half_pi = [](auto& machine) { return machine.f(0x1.921fb54442d18p0); };
  if constexpr (M::width == 32) {
    auto w = m.wide();
    auto reduced = reduce_f32(w, m.widen(x));
    return {m.narrow(reduced.turns * half_pi(w)), m.f(0), m.narrow_bits(reduced.quadrant)};
  } else {
    auto reduced = reduce_f64(m, x);
    auto r = reduced.turns * half_pi(m);
    auto low = m.fma(reduced.turns, half_pi(m), -r) +
               m.fma(reduced.turns, m.f(0x1.1a62633145c07p-54), reduced.rest * half_pi(m));
    return {r, low, reduced.quadrant};
  }
}

/// sin(r + low) for |r| <= 0.79.
template <class M>
typename M::F sin_polynomial(M& m, typename M::F r, typename M::F low) {
  auto z = r * r;
  if constexpr (M::width == 32) {
    return m.fma(r * z, horner(m, z, {-0x1.555546p-3, 0x1.110776p-7, -0x1.99528cp-13}), r);
  } else {
    auto s = horner(m, z,
                    {-0x1.5555555555555p-3, 0x1.1111111111067p-7, -0x1.a01a019ffdc3ep-13, 0x1.71de3a32c5accp-19,
                     -0x1.ae642b0fe747ap-26, 0x1.6108e5776d2ebp-33, -0x1.9f8f9659c261p-41});
    return r + m.fma(r * z, s, low);
  }
}

/// cos(r + low) for |r| <= 0.79.
template <class M>
typename M::F cos_polynomial(M& m, typename M::F r, typename M::F low) {
  auto z = r * r, one = m.f(1);
  if constexpr (M::width == 32) {
    auto c = horner(m, z, {0x1.55554ap-5, -0x1.6c0c1ap-10, 0x1.99e114p-16});
    return m.fma(z, m.fma(z, c, m.f(-0.5)), one);
  } else {
    auto c = horner(m, z,
                    {0x1.5555555555555p-5, -0x1.6c16c16c16b2bp-10, 0x1.a01a019ffb954p-16, -0x1.27e4fb58975f1p-22,
                     0x1.1eed6d8a64c1ap-29, -0x1.9371ee014f86fp-37, 0x1.9c8de7eeaeb0fp-45});
    auto half_square = z * m.f(0.5);
    auto top = one - half_square;
    return top + (((one - top) - half_square) + m.fma(z * z, c, -r * low));
  }
}

/// sin of x advanced by `quarters` quarter turns.
template <class M>
typename M::F sine_advanced(M& m, typename M::F x, int quarters) {
  auto angle = reduce_angle(m, x);
  auto quadrant = angle.quadrant + m.i(quarters);
  auto is_even = (quadrant & m.i(1)) == m.i(0);
  auto value = m.select(is_even, sin_polynomial(m, angle.r, angle.low), cos_polynomial(m, angle.r, angle.low));
  return m.from_bits(m.bits(value) ^ ((quadrant & m.i(2)) << (M::width - 2)));
}

/// Below this, sin(x) and tan(x) round to x or its neighbour; keeps the sign of zero and denormals.
template <class M>
typename M::B is_tiny_angle(M& m, typename M::F x) {
  return m.abs(x) < m.f(M::width == 32 ? 0x1p-13 : 0x1p-27);
}

template <class M>
typename M::F sin(M& m, typename M::F x) {
  return m.select(is_tiny_angle(m, x), x, sine_advanced(m, x, 0));
}

template <class M>
typename M::F cos(M& m, typename M::F x) {
  return sine_advanced(m, x, 1);
}

template <class M>
typename M::F tan(M& m, typename M::F x) {
  if constexpr (M::width == 32) {
    auto w = m.wide();
    auto reduced = reduce_f32(w, m.widen(x));
    auto r = reduced.turns * w.f(0x1.921fb54442d18p0);
    auto z = r * r;
    auto s = w.fma(r * z, horner(w, z, {-0x1.555546p-3, 0x1.110776p-7, -0x1.99528cp-13}), r);
    auto c = w.fma(z, w.fma(z, horner(w, z, {0x1.55554ap-5, -0x1.6c0c1ap-10, 0x1.99e114p-16}), w.f(-0.5)), w.f(1));
    auto is_even = (reduced.quadrant & w.i(1)) == w.i(0);
    auto quotient = w.select(is_even, s, -c) / w.select(is_even, c, s);
    return m.select(is_tiny_angle(m, x), x, m.narrow(quotient));
  } else {
    auto angle = reduce_angle(m, x);
    auto s = sin_polynomial(m, angle.r, angle.low), c = cos_polynomial(m, angle.r, angle.low);
    auto is_even = (angle.quadrant & m.i(1)) == m.i(0);
    return m.select(is_tiny_angle(m, x), x, m.select(is_even, s, -c) / m.select(is_even, c, s));
  }
}

}  // namespace burin::codegen::math
