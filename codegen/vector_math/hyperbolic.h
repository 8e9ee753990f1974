// sinh, cosh and the inverse hyperbolic functions. The inverses of f32 are computed on the Wide machine.
#pragma once
#include "codegen/vector_math/exp.h"
#include "codegen/vector_math/log.h"

namespace burin::codegen::math {

/// exp(a) / 2 for a >= 0: finite as long as cosh(a) is.
template <class M>
typename M::F half_exp(M& m, typename M::F a) {
  return exp_times(m, clamp_above(m, a, M::width == 32 ? 90 : 711), m.f(0), m.f(0.5));
}

template <class M>
typename M::F cosh(M& m, typename M::F x) {
  auto e = half_exp(m, m.abs(x));
  return e + m.f(0.25) / e;
}

/// Up to 1: x + x^3 S(x^2).
template <class M>
typename M::F sinh(M& m, typename M::F x) {
  auto a = m.abs(x), z = x * x;
  auto e = half_exp(m, a);
  auto large = m.copysign(e - m.f(0.25) / e, x);
  auto s = z;
  if constexpr (M::width == 32) {
    s = horner(m, z, {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bap-13, 0x1.756caap-19});
  } else {
    s = horner(m, z,
               {0x1.5555555555556p-3, 0x1.111111111101ep-7, 0x1.a01a01a037263p-13, 0x1.71de3a3b04df4p-19,
                0x1.ae646ff9fb64dp-26, 0x1.6116f0dddfffep-33, 0x1.b5ca644dd66cap-41});
  }
  auto small = m.fma(x * z, s, x);
  return m.select(a < m.f(M::width == 32 ? 0x1p-13 : 0x1p-27), x, m.select(a < m.f(1), small, large));
}

/// log(1 + near), or log(2 far) where is_far: near may have overflowed there.
template <class M>
typename M::F log1p_or_log_twice(M& m, typename M::F near, typename M::B is_far, typename M::F far) {
  auto small = reduce_log1p(m, near), large = reduce_log(m, far);
  return log_of<M>(m, {m.select(is_far, large.e + m.f(1), small.e), m.select(is_far, large.f, small.f)});
}

/// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))).
template <class M>
typename M::F asinh(M& m, typename M::F x) {
  if constexpr (M::width == 32) {
    auto w = m.wide();
    return m.narrow(asinh(w, m.widen(x)));
  } else {
    auto a = m.abs(x), one = m.f(1), square = a * a;
    auto near = a + square / (one + m.sqrt(square + one));
    auto y = m.copysign(log1p_or_log_twice(m, near, a > m.f(0x1p28), a), x);
    auto is_tiny = a < m.f(0x1p-28), is_finite = a < m.f(infinity);
    return m.select(is_tiny | !is_finite, x, y);
  }
}

/// With t = x - 1: log1p(t + sqrt(2 t + t^2)).
template <class M>
typename M::F acosh(M& m, typename M::F x) {
  if constexpr (M::width == 32) {
    auto w = m.wide();
    return m.narrow(acosh(w, m.widen(x)));
  } else {
    auto one = m.f(1), t = x - one;
    auto near = t + m.sqrt(m.fma(t, t, t + t));
    auto y = log1p_or_log_twice(m, near, x > m.f(0x1p28), x);
    return m.select(x < one, m.f(not_a_number), m.select(x < m.f(infinity), y, x));
  }
}

/// log1p(2 a / (1 - a)) / 2.
template <class M>
typename M::F atanh(M& m, typename M::F x) {
  if constexpr (M::width == 32) {
    auto w = m.wide();
    return m.narrow(atanh(w, m.widen(x)));
  } else {
    auto a = m.abs(x);
    auto y = log1p(m, (a + a) / (m.f(1) - a)) * m.f(0.5);
    return m.select(a < m.f(0x1p-28), x, m.copysign(y, x));
  }
}

}  // namespace burin::codegen::math
