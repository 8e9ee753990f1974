// The vector-math functions by name, and the arity of each.
#pragma once
#include <cstdint>
#include <string_view>

// X(name) per function of one argument, Y(name) per function of two.
// clang-format off
#define BURIN_MATH_FUNCTIONS(X, Y) \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log1p) X(tanh) X(logistic) X(erf) X(erfc) X(erf_inv) X(rsqrt) X(cbrt) \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) Y(pow) Y(atan2)
// clang-format on

namespace burin::codegen {

#define BURIN_NAME(name) name,
enum class MathFn : std::uint8_t { BURIN_MATH_FUNCTIONS(BURIN_NAME, BURIN_NAME) };
#undef BURIN_NAME

#define BURIN_ENUM(name) MathFn::name,
inline constexpr MathFn all_math_functions[] = {BURIN_MATH_FUNCTIONS(BURIN_ENUM, BURIN_ENUM)};
#undef BURIN_ENUM

constexpr std::string_view math_name(MathFn fn) {
  switch (fn) {
#define BURIN_CASE(name) \
  case MathFn::name:     \
    return #name;
    BURIN_MATH_FUNCTIONS(BURIN_CASE, BURIN_CASE)
#undef BURIN_CASE
  }
  return {};
}

/// 1 or 2.
constexpr int math_arity(MathFn fn) {
  switch (fn) {
#define BURIN_ONE(name) \
  case MathFn::name:    \
    return 1;
#define BURIN_TWO(name) \
  case MathFn::name:    \
    return 2;
    BURIN_MATH_FUNCTIONS(BURIN_ONE, BURIN_TWO)
#undef BURIN_ONE
#undef BURIN_TWO
  }
  return 0;
}

}  // namespace burin::codegen
