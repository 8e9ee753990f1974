// The elementwise ops on floats. `exact` rules are computed in N = float (f32 and half types) or double, where IEEE 754
// rounds each operation once; `wide` rules in W = double (f32 and half types) or long double (f64), and the caller
// rounds the outcome once to the dtype. Written with the C library alone: nothing here is shared with generated code.
#pragma once
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/op.h"

namespace burin::ir::eval::floats {

// ---- exactly rounded ------------------------------------------------------------------------------------------------
template <class N> N exact(Tag<Op::neg>, N x) { return -x; }
template <class N> N exact(Tag<Op::abs>, N x) { return std::fabs(x); }
template <class N> N exact(Tag<Op::sign>, N x) { return x > 0 ? N(1) : x < 0 ? N(-1) : x; }
template <class N> N exact(Tag<Op::floor>, N x) { return std::floor(x); }
template <class N> N exact(Tag<Op::ceil>, N x) { return std::ceil(x); }
template <class N> N exact(Tag<Op::trunc>, N x) { return std::trunc(x); }
template <class N> N exact(Tag<Op::round_even>, N x) { return std::nearbyint(x); }
template <class N> N exact(Tag<Op::round_away>, N x) { return std::round(x); }
template <class N> N exact(Tag<Op::sqrt>, N x) { return std::sqrt(x); }
template <class N> N exact(Tag<Op::add>, N x, N y) { return x + y; }
template <class N> N exact(Tag<Op::sub>, N x, N y) { return x - y; }
template <class N> N exact(Tag<Op::mul>, N x, N y) { return x * y; }
template <class N> N exact(Tag<Op::div>, N x, N y) { return x / y; }
template <class N> N exact(Tag<Op::rem>, N x, N y) { return std::fmod(x, y); }

template <class N>
N exact(Tag<Op::max>, N x, N y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? y : x;  // of two zeros the positive one
  return x > y ? x : y;
}
template <class N>
N exact(Tag<Op::min>, N x, N y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? x : y;  // of two zeros the negative one
  return x < y ? x : y;
}
template <class N>
N exact(Tag<Op::clamp>, N low, N x, N high) {
  return exact(Tag<Op::min>{}, exact(Tag<Op::max>{}, x, low), high);
}

template <class N> bool exact(Tag<Op::is_finite>, N x) { return std::isfinite(x); }
template <class N> bool exact(Tag<Op::eq>, N x, N y) { return x == y; }
template <class N> bool exact(Tag<Op::ne>, N x, N y) { return x != y; }
template <class N> bool exact(Tag<Op::lt>, N x, N y) { return x < y; }
template <class N> bool exact(Tag<Op::le>, N x, N y) { return x <= y; }
template <class N> bool exact(Tag<Op::gt>, N x, N y) { return x > y; }
template <class N> bool exact(Tag<Op::ge>, N x, N y) { return x >= y; }

// ---- rounded once from a wider type ---------------------------------------------------------------------------------
template <class W> W wide(Tag<Op::rsqrt>, W x) { return 1 / std::sqrt(x); }
template <class W> W wide(Tag<Op::cbrt>, W x) { return std::cbrt(x); }
template <class W> W wide(Tag<Op::exp>, W x) { return std::exp(x); }
template <class W> W wide(Tag<Op::exp2>, W x) { return std::exp2(x); }
template <class W> W wide(Tag<Op::expm1>, W x) { return std::expm1(x); }
template <class W> W wide(Tag<Op::log>, W x) { return std::log(x); }
template <class W> W wide(Tag<Op::log2>, W x) { return std::log2(x); }
template <class W> W wide(Tag<Op::log1p>, W x) { return std::log1p(x); }
template <class W> W wide(Tag<Op::tanh>, W x) { return std::tanh(x); }
template <class W> W wide(Tag<Op::logistic>, W x) { return 1 / (1 + std::exp(-x)); }
template <class W> W wide(Tag<Op::erf>, W x) { return std::erf(x); }
template <class W> W wide(Tag<Op::erfc>, W x) { return std::erfc(x); }
template <class W> W wide(Tag<Op::sin>, W x) { return std::sin(x); }
template <class W> W wide(Tag<Op::cos>, W x) { return std::cos(x); }
template <class W> W wide(Tag<Op::tan>, W x) { return std::tan(x); }
template <class W> W wide(Tag<Op::asin>, W x) { return std::asin(x); }
template <class W> W wide(Tag<Op::acos>, W x) { return std::acos(x); }
template <class W> W wide(Tag<Op::atan>, W x) { return std::atan(x); }
template <class W> W wide(Tag<Op::sinh>, W x) { return std::sinh(x); }
template <class W> W wide(Tag<Op::cosh>, W x) { return std::cosh(x); }
template <class W> W wide(Tag<Op::asinh>, W x) { return std::asinh(x); }
template <class W> W wide(Tag<Op::acosh>, W x) { return std::acosh(x); }
template <class W> W wide(Tag<Op::atanh>, W x) { return std::atanh(x); }
template <class W> W wide(Tag<Op::pow>, W x, W y) { return std::pow(x, y); }
template <class W> W wide(Tag<Op::atan2>, W y, W x) { return std::atan2(y, x); }

// Newton's method in long double. Below one half on erf(y) = a, which is concave: from the left, where
// erf(y) <= 2y/sqrt(pi) puts the start, every step falls short of the root. Above on log(erfc(y)) = log(1 - a), concave
// and falling: from the right, where erfc(y) <= exp(-y^2) puts the start. 1 - a is exact there, so that nothing is lost
// close to 1.
inline long double inverse_erf(long double a) {
  constexpr long double slope = 2 * std::numbers::inv_sqrtpi_v<long double>;
  const long double rest = 1 - a;
  long double y = a < 0.5L ? a / slope : std::sqrt(-std::log(rest));
  for (int step = 0; step < 64; ++step) {
    const long double derivative = slope * std::exp(-y * y);
    const long double change = a < 0.5L ? (std::erf(y) - a) / derivative
                                        : -std::log(std::erfc(y) / rest) * std::erfc(y) / derivative;
    if (y - change == y) break;
    y -= change;
  }
  return y;
}
template <class W>
W wide(Tag<Op::erf_inv>, W x) {
  const long double a = std::fabs(static_cast<long double>(x));
  if (a == 0) return x;
  if (a == 1) return std::copysign(std::numeric_limits<W>::infinity(), x);
  if (!(a < 1)) return std::numeric_limits<W>::quiet_NaN();
  return static_cast<W>(std::copysign(inverse_erf(a), static_cast<long double>(x)));
}

}  // namespace burin::ir::eval::floats
