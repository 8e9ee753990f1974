// Exact points and special values of the vector-math routines.
#include <gtest/gtest.h>

#include <limits>

#include "codegen/vector_math/apply.h"
#include "tests/codegen/host_machine.h"
#include "tests/codegen/math_reference.h"

namespace burin::codegen {
namespace {

template <class T>
class VectorMath : public testing::Test {
 protected:
  static constexpr T inf = std::numeric_limits<T>::infinity();
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  static T call(MathFn fn, T x, T y = 0) {
    math::HostMachine<T> m;
    return math::apply(m, fn, x, y);
  }
  /// Equal, zeros by sign, NaN to NaN.
  static void expect(MathFn fn, T x, T expected) { expect(fn, x, T(0), expected); }
  static void expect(MathFn fn, T x, T y, T expected) {
    T got = call(fn, x, y);
    bool same = std::isnan(expected) ? std::isnan(got) : got == expected && std::signbit(got) == std::signbit(expected);
    EXPECT_TRUE(same) << math_name(fn) << '(' << x << ", " << y << ") = " << got << ", not " << expected;
  }
};

using Formats = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMath, Formats);

TYPED_TEST(VectorMath, OddFunctionsKeepTheSignOfZero) {
  using T = TypeParam;
  for (MathFn fn :
       {MathFn::expm1, MathFn::log1p, MathFn::tanh, MathFn::erf, MathFn::erf_inv, MathFn::sin, MathFn::tan}) {
    this->expect(fn, T(0), T(0));
    this->expect(fn, T(-0.0), T(-0.0));
  }
}

TYPED_TEST(VectorMath, ExactPoints) {
  using T = TypeParam;
  for (T zero : {T(0), T(-0.0)}) {
    this->expect(MathFn::exp, zero, T(1));
    this->expect(MathFn::exp2, zero, T(1));
    this->expect(MathFn::logistic, zero, T(0.5));
    this->expect(MathFn::cos, zero, T(1));
    this->expect(MathFn::erfc, zero, T(1));
    this->expect(MathFn::cosh, zero, T(1));
  }
  this->expect(MathFn::log, T(1), T(0));
  this->expect(MathFn::log2, T(1), T(0));
  this->expect(MathFn::acos, T(1), T(0));
  this->expect(MathFn::acosh, T(1), T(0));
  this->expect(MathFn::rsqrt, T(4), T(0.5));
  for (int k = -50; k <= 50; ++k) this->expect(MathFn::cbrt, T(k) * T(k) * T(k), T(k));
  using Limits = std::numeric_limits<T>;
  for (int k = Limits::min_exponent - Limits::digits; k < Limits::max_exponent; ++k) {
    this->expect(MathFn::exp2, T(k), std::ldexp(T(1), k));
    this->expect(MathFn::log2, std::ldexp(T(1), k), T(k));
  }
}

TYPED_TEST(VectorMath, InfinitiesAndPoles) {
  using T = TypeParam;
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  this->expect(MathFn::exp, inf, inf);
  this->expect(MathFn::exp, -inf, T(0));
  this->expect(MathFn::exp2, -inf, T(0));
  this->expect(MathFn::expm1, inf, inf);
  this->expect(MathFn::expm1, -inf, T(-1));
  this->expect(MathFn::tanh, inf, T(1));
  this->expect(MathFn::tanh, -inf, T(-1));
  this->expect(MathFn::logistic, inf, T(1));
  this->expect(MathFn::logistic, -inf, T(0));
  this->expect(MathFn::erf, -inf, T(-1));
  this->expect(MathFn::erfc, -inf, T(2));
  this->expect(MathFn::erfc, inf, T(0));
  for (MathFn fn : {MathFn::log, MathFn::log2}) {
    this->expect(fn, T(0), -inf);
    this->expect(fn, T(-0.0), -inf);
    this->expect(fn, T(-1), nan);
    this->expect(fn, -inf, nan);
    this->expect(fn, inf, inf);
    this->expect(fn, -std::numeric_limits<T>::denorm_min(), nan);
  }
  this->expect(MathFn::log1p, T(-1), -inf);
  this->expect(MathFn::log1p, std::nextafter(T(-1), T(-2)), nan);
  this->expect(MathFn::erf_inv, T(1), inf);
  this->expect(MathFn::erf_inv, T(-1), -inf);
  this->expect(MathFn::erf_inv, std::nextafter(T(1), T(2)), nan);
  for (MathFn fn : {MathFn::sin, MathFn::cos, MathFn::tan}) {
    this->expect(fn, inf, nan);
    this->expect(fn, -inf, nan);
  }
  this->expect(MathFn::rsqrt, T(0), inf);
  this->expect(MathFn::rsqrt, T(-0.0), -inf);
  this->expect(MathFn::rsqrt, inf, T(0));
  this->expect(MathFn::rsqrt, T(-1), nan);
  this->expect(MathFn::cbrt, -inf, -inf);
  for (MathFn fn : {MathFn::sinh, MathFn::asinh}) {
    this->expect(fn, inf, inf);
    this->expect(fn, -inf, -inf);
  }
  this->expect(MathFn::cosh, -inf, inf);
  this->expect(MathFn::acosh, inf, inf);
  this->expect(MathFn::acosh, -inf, nan);
  this->expect(MathFn::acosh, std::nextafter(T(1), T(0)), nan);
  this->expect(MathFn::atanh, T(1), inf);
  this->expect(MathFn::atanh, T(-1), -inf);
  for (MathFn fn : {MathFn::asin, MathFn::acos, MathFn::atanh}) {
    this->expect(fn, std::nextafter(T(1), T(2)), nan);
    this->expect(fn, -inf, nan);
  }
}

TYPED_TEST(VectorMath, Atan2SeesTheSignsOfZeros) {
  using T = TypeParam;
  constexpr T inf = std::numeric_limits<T>::infinity();
  for (T y : {T(0), T(-0.0), T(1), T(-1), inf, -inf}) {
    for (T x : {T(0), T(-0.0), T(1), T(-1), inf, -inf}) {
      if (std::fabs(x) != std::fabs(y)) this->expect(MathFn::atan2, y, x, std::atan2(y, x));
    }
  }
  for (T y : {T(0), T(-0.0)}) {
    for (T x : {T(0), T(-0.0)}) this->expect(MathFn::atan2, y, x, std::atan2(y, x));
  }
}

TYPED_TEST(VectorMath, NanComesOut) {
  constexpr TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (MathFn fn : all_math_functions) this->expect(fn, nan, TypeParam(2), nan);
}

TYPED_TEST(VectorMath, TinyArgumentsStayThemselves) {
  using T = TypeParam;
  for (T x : {std::numeric_limits<T>::denorm_min(), 3 * std::numeric_limits<T>::denorm_min(),
              std::numeric_limits<T>::min()}) {
    for (T y : {x, -x}) {
      for (MathFn fn : {MathFn::expm1, MathFn::log1p, MathFn::tanh, MathFn::sin, MathFn::tan, MathFn::asin,
                        MathFn::atan, MathFn::sinh, MathFn::asinh, MathFn::atanh}) {
        this->expect(fn, y, y);
      }
    }
  }
}

TYPED_TEST(VectorMath, PowHasTheSpecialValuesOfC) {
  using T = TypeParam;
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  constexpr T values[] = {T(0),
                          T(-0.0),
                          T(1),
                          T(-1),
                          T(0.5),
                          T(-0.5),
                          T(2),
                          T(-2),
                          T(3),
                          T(-3),
                          T(2.5),
                          T(-2.5),
                          T(8388607),
                          T(16777216),
                          inf,
                          -inf,
                          nan,
                          std::numeric_limits<T>::denorm_min(),
                          std::numeric_limits<T>::max(),
                          -std::numeric_limits<T>::max()};
  for (T x : values) {
    for (T y : values) {
      T expected = std::pow(x, y);
      if (!std::isfinite(expected) || expected == 0 || std::fabs(expected) == 1) {
        this->expect(MathFn::pow, x, y, expected);
      } else {
        EXPECT_EQ(std::signbit(this->call(MathFn::pow, x, y)), std::signbit(expected)) << x << ' ' << y;
      }
    }
  }
}

}  // namespace
}  // namespace burin::codegen
