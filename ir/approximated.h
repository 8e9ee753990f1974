// Which ops no execution rounds exactly: the evaluator and machine code approximate them each in its own way.
#pragma once
#include "ir/op.h"

namespace burin::ir {

/// True for the transcendental functions, roots other than sqrt, and pow: results on floats may differ in the last places.
constexpr bool is_approximated(Op op) {
  switch (op) {
    case Op::rsqrt:
    case Op::cbrt:
    case Op::exp:
    case Op::exp2:
    case Op::expm1:
    case Op::log:
    case Op::log2:
    case Op::log1p:
    case Op::tanh:
    case Op::logistic:
    case Op::erf:
    case Op::erfc:
    case Op::erf_inv:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::sinh:
    case Op::cosh:
    case Op::asinh:
    case Op::acosh:
    case Op::atanh:
    case Op::pow:
    case Op::atan2: return true;
    default: return false;
  }
}

}  // namespace burin::ir
