// What vector-math functions are measured against: the C library one format wider, and the distance in units of the
// last place.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/vector_math/functions.h"

namespace burin::codegen {

/// fn in R: double for f32, long double for f64.
template <class R>
R reference(MathFn fn, R x, R y) {
  switch (fn) {
    case MathFn::exp:
      return std::exp(x);
    case MathFn::exp2:
      return std::exp2(x);
    case MathFn::expm1:
      return std::expm1(x);
    case MathFn::log:
      return std::log(x);
    case MathFn::log2:
      return std::log2(x);
    case MathFn::log1p:
      return std::log1p(x);
    case MathFn::tanh:
      return std::tanh(x);
    case MathFn::logistic:
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case MathFn::erf:
      return std::erf(x);
    case MathFn::erfc:
      return std::erfc(x);
    case MathFn::erf_inv: {
      R a = std::fabs(x);
      if (!(a < 1)) return a == 1 ? x * std::numeric_limits<R>::infinity() : std::numeric_limits<R>::quiet_NaN();
      if (a < R(1e-9)) return x * R(0.886226925452758013649083741670572591L);
      // Newton's iteration from an asymptotic guess, on erfc where x is near 1.
      R z = std::sqrt(-std::log((1 - a) * (1 + a)));
      for (int k = 0; k < 60; ++k) {
        R miss = a < R(0.5) ? std::erf(z) - a : (1 - a) - std::erfc(z);
        R step = miss * R(0.886226925452758013649083741670572591L) * std::exp(z * z);
        z -= step;
        if (std::fabs(step) <= std::numeric_limits<R>::epsilon() * z) break;
      }
      return std::copysign(z, x);
    }
    case MathFn::sin:
      return std::sin(x);
    case MathFn::cos:
      return std::cos(x);
    case MathFn::tan:
      return std::tan(x);
    case MathFn::rsqrt:
      return 1 / std::sqrt(x);
    case MathFn::cbrt:
      return std::cbrt(x);
    case MathFn::asin:
      return std::asin(x);
    case MathFn::acos:
      return std::acos(x);
    case MathFn::atan:
      return std::atan(x);
    case MathFn::sinh:
      return std::sinh(x);
    case MathFn::cosh:
      return std::cosh(x);
    case MathFn::asinh:
      return std::asinh(x);
    case MathFn::acosh:
      return std::acosh(x);
    case MathFn::atanh:
      return std::atanh(x);
    case MathFn::atan2:
      return std::atan2(x, y);
    case MathFn::pow:
      // Such y is an even integer; glibc 2.36 returns infinity for powl(-infinity, -2^63).
      return std::pow(std::fabs(y) >= 0x1p54 ? std::fabs(x) : x, y);
  }
  return x;
}

/// A binary format, its numbers as in std::numeric_limits.
struct Format {
  int digits, min_exponent, max_exponent;
};

/// |got - exact| in units of the last place of the format at exact, whose nearest number of the format is `nearest`; infinity where
/// NaN, infinity or the sign of zero is wrong.
template <class R>
double ulps(R got, R exact, R nearest, const Format& format) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : wrong;
  if (std::isnan(got)) return wrong;
  if (std::isinf(exact)) return got == exact ? 0 : wrong;
  if (std::isinf(nearest) && got == nearest) return 0;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : wrong;
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::clamp(exponent, format.min_exponent, format.max_exponent) - format.digits;
  // An infinity stands where the next number would: one unit above the largest finite one.
  const R value = std::isinf(got) ? std::copysign(std::ldexp(R(1), format.max_exponent), got) : got;
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(R(1), exponent));
}
/// The same for a type of C++.
template <class T, class R>
double ulps(T got, R exact) {
  using Limits = std::numeric_limits<T>;
  return ulps<R>(got, exact, static_cast<T>(exact), {Limits::digits, Limits::min_exponent, Limits::max_exponent});
}

/// Zeros, infinities, NaN, denormals, powers of two, integers, halves, and neighbours of them.
template <class T>
std::vector<T> edge_inputs() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges = {T(0),
                          Limits::denorm_min(),
                          Limits::min(),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN(),
                          Limits::epsilon()};
  auto with_neighbours = [&](T x) {
    edges.push_back(x);
    edges.push_back(std::nextafter(x, T(0)));
    edges.push_back(std::nextafter(x, Limits::infinity()));
  };
  with_neighbours(Limits::min());
  for (int k = 0; k <= 40; ++k) with_neighbours(T(k) / 2);
  for (int k = Limits::min_exponent - Limits::digits + 1; k < Limits::max_exponent; ++k)
    edges.push_back(std::ldexp(T(1), k));
  // Where exp and its kin overflow, underflow and saturate, and where routines change formula.
  for (double x : {0.41421356237309503,
                   0.70710678118654757,
                   1.4142135623730951,
                   0.6,
                   0.89,
                   2.71828182845904523,
                   9.25,
                   3.14159265358979312,
                   1.57079632679489656,
                   0.785398163397448279,
                   2.35619449019234484,
                   88.0,
                   88.72283,
                   87.33654,
                   89.0,
                   103.27893,
                   103.97208,
                   104.0,
                   126.0,
                   127.0,
                   128.0,
                   149.0,
                   150.0,
                   151.0,
                   708.39641853226408,
                   709.78271289338397,
                   710.0,
                   744.44007192138122,
                   745.13321910194111,
                   746.0,
                   1022.0,
                   1023.0,
                   1024.0,
                   1074.0,
                   1075.0,
                   1076.0,
                   10.054,
                   26.543,
                   27.226,
                   9007199254740991.0,
                   9007199254740992.0}) {
    with_neighbours(T(x));
  }
  for (std::size_t k = 0, n = edges.size(); k < n; ++k) edges.push_back(-edges[k]);
  return edges;
}

}  // namespace burin::codegen
