#include <cmath>

#include <burin/ops.h>

#include "frontend/promote.h"

namespace burin {

using detail::as_dtype;
using detail::as_float;
using detail::constant;
using detail::emit;
using detail::Matched;
using detail::Node;
using detail::OpScope;
using ir::Op;

namespace {

Tensor binary(const char* name, Op op, const Operand& a, const Operand& b, bool only_floats = false) {
  OpScope scope(a.where);
  const Matched m = detail::match(name, {a.tensor, b.tensor}, only_floats);
  return scope.done(emit(op, {m.operands[0], m.operands[1]}, m.weak));
}

Tensor compare(const char* name, Op op, const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  const Matched m = detail::match(name, {a.tensor, b.tensor});
  return scope.done(emit(op, {m.operands[0], m.operands[1]}));
}

// An op of floats; integers become f32 first, as in jax.numpy.
Tensor float_unary(Op op, const Operand& x) {
  OpScope scope(x.where);
  const Tensor f = as_float(x.tensor);
  return scope.done(emit(op, {f}, f.weak()));
}

Tensor unary(Op op, const Operand& x) {
  OpScope scope(x.where);
  return scope.done(emit(op, {x.tensor}, x.tensor.weak()));
}

// Rounding leaves whole numbers alone.
Tensor rounding(Op op, const Operand& x) {
  OpScope scope(x.where);
  if (!is_float(x.tensor.dtype())) return x.tensor;
  return scope.done(emit(op, {x.tensor}, x.tensor.weak()));
}

Tensor full_of(const Tensor& like, double value) { return constant(ir::Type{like.dtype(), like.shape()}, value); }

Tensor differ_in_sign(const Tensor& r, const Tensor& b) {
  const Tensor zero = full_of(r, 0);
  const Tensor r_negative = emit(Op::lt, {r, zero}), b_negative = emit(Op::lt, {b, zero});
  return emit(Op::bit_and, {emit(Op::ne, {r, zero}), emit(Op::ne, {r_negative, b_negative})});
}

const Node* as_number(const Tensor& t) {
  const auto& node = detail::Access::node(t);
  return node && node->kind == Node::Kind::number ? node.get() : nullptr;
}

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) { return binary("add", Op::add, a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return binary("sub", Op::sub, a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return binary("mul", Op::mul, a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return binary("div", Op::div, a, b, true); }
Tensor operator-(const Operand& x) { return unary(Op::neg, x); }
Tensor operator+(const Operand& x) { return x.tensor; }

Tensor fmod(const Operand& a, const Operand& b) { return binary("fmod", Op::rem, a, b); }

Tensor operator%(const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  const Matched m = detail::match("remainder", {a.tensor, b.tensor});
  const Tensor r = emit(Op::rem, {m.operands[0], m.operands[1]}, m.weak);
  if (is_unsigned_int(r.dtype())) return scope.done(r);
  return scope.done(emit(Op::select, {differ_in_sign(r, m.operands[1]), emit(Op::add, {r, m.operands[1]}), r}, m.weak));
}

Tensor floor_divide(const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  const Matched m = detail::match("floor_divide", {a.tensor, b.tensor});
  const Tensor &x = m.operands[0], &y = m.operands[1];
  const Tensor one = full_of(x, 1);
  if (is_unsigned_int(x.dtype())) return scope.done(emit(Op::div, {x, y}, m.weak));
  if (is_int(x.dtype())) {
    const Tensor q = emit(Op::div, {x, y}), zero = full_of(x, 0);
    const Tensor down = emit(Op::bit_and, {emit(Op::ne, {emit(Op::sign, {x}), emit(Op::sign, {y})}),
                                           emit(Op::ne, {emit(Op::rem, {x, y}), zero})});
    return scope.done(emit(Op::select, {down, emit(Op::sub, {q, one}), q}, m.weak));
  }
  const Tensor mod = emit(Op::rem, {x, y});
  // Dividing by zero has no remainder.
  const Tensor whole = emit(Op::select, {emit(Op::eq, {y, full_of(y, 0)}), x, emit(Op::sub, {x, mod})});
  const Tensor q = emit(Op::div, {whole, y});
  const Tensor down = emit(Op::bit_and, {emit(Op::ne, {mod, full_of(x, 0)}),
                                         emit(Op::ne, {emit(Op::sign, {y}), emit(Op::sign, {mod})})});
  return scope.done(emit(Op::round_even, {emit(Op::select, {down, emit(Op::sub, {q, one}), q})}, m.weak));
}

Tensor pow(const Operand& x, const Operand& y) {
  OpScope scope("pow", x.where);
  const Node* exponent = as_number(y.tensor);
  if (exponent && !as_number(x.tensor)) {
    const double value = exponent->integral ? static_cast<double>(exponent->integer) : exponent->floating;
    const bool whole = value == std::nearbyint(value);
    // A whole exponent written as an integer multiplies, as jax.lax.integer_pow does; a small one written as a float is
    // the same multiplication.
    if (whole && value >= 0 && value <= (exponent->integral ? 64 : 4) &&
        (exponent->integral || is_float(x.tensor.dtype()))) {
      auto n = static_cast<std::uint64_t>(value);
      Tensor square = x.tensor, result;
      if (n == 0) return scope.done(full_of(x.tensor, 1));
      for (; n > 0; n >>= 1) {
        if (n & 1) result = result.defined() ? emit(Op::mul, {result, square}, square.weak()) : square;
        if (n > 1) square = emit(Op::mul, {square, square}, square.weak());
      }
      return scope.done(result);
    }
  }
  const Matched m = detail::match("pow", {x.tensor, y.tensor});
  return scope.done(emit(Op::pow, {m.operands[0], m.operands[1]}, m.weak));
}

Tensor maximum(const Operand& a, const Operand& b) { return binary("maximum", Op::max, a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return binary("minimum", Op::min, a, b); }
Tensor atan2(const Operand& y, const Operand& x) { return binary("atan2", Op::atan2, y, x, true); }

Tensor logaddexp(const Operand& a, const Operand& b) {
  OpScope scope("logaddexp", a.where);
  const Matched m = detail::match("logaddexp", {a.tensor, b.tensor}, true);
  const Tensor &x = m.operands[0], &y = m.operands[1];
  // Of equal operands one is the higher: max and abs would share between them, and have no second derivative there.
  const Tensor first = emit(Op::ge, {x, y});
  const Tensor high = emit(Op::select, {first, x, y}), low = emit(Op::select, {first, y, x});
  // Where both are the same infinity their difference is no number; there it is the answer.
  const Tensor same = emit(Op::bit_and, {emit(Op::eq, {x, y}), emit(Op::eq, {emit(Op::abs, {x}), full_of(x, inf)})});
  const Tensor gap = emit(Op::select, {same, full_of(x, 0), emit(Op::sub, {low, high})});
  const Tensor sum = emit(Op::add, {high, emit(Op::log1p, {emit(Op::exp, {gap})})});
  return scope.done(emit(Op::select, {same, emit(Op::stop_gradient, {high}), sum}, m.weak));
}

Tensor clip(const Operand& x, const Operand& low, const Operand& high) {
  OpScope scope("clip", x.where);
  if (!as_number(low.tensor) || !as_number(high.tensor)) return scope.done(minimum(maximum(x, low), high));
  const Matched m = detail::match("clip", {low.tensor, x.tensor, high.tensor});
  return scope.done(emit(Op::clamp, {m.operands[0], m.operands[1], m.operands[2]}, m.weak));
}

Tensor abs(const Operand& x) { return unary(Op::abs, x); }
Tensor sign(const Operand& x) { return unary(Op::sign, x); }
Tensor square(const Operand& x) {
  OpScope scope(x.where);
  return scope.done(emit(Op::mul, {x.tensor, x.tensor}, x.tensor.weak()));
}
Tensor sqrt(const Operand& x) { return float_unary(Op::sqrt, x); }
Tensor rsqrt(const Operand& x) { return float_unary(Op::rsqrt, x); }
Tensor cbrt(const Operand& x) { return float_unary(Op::cbrt, x); }
Tensor reciprocal(const Operand& x) {
  OpScope scope(x.where);
  const Tensor f = as_float(x.tensor);
  return scope.done(emit(Op::div, {full_of(f, 1), f}, f.weak()));
}
Tensor exp(const Operand& x) { return float_unary(Op::exp, x); }
Tensor exp2(const Operand& x) { return float_unary(Op::exp2, x); }
Tensor expm1(const Operand& x) { return float_unary(Op::expm1, x); }
Tensor log(const Operand& x) { return float_unary(Op::log, x); }
Tensor log2(const Operand& x) { return float_unary(Op::log2, x); }
Tensor log10(const Operand& x) {
  OpScope scope("log10", x.where);
  const Tensor f = as_float(x.tensor);
  return scope.done(emit(Op::div, {emit(Op::log, {f}), full_of(f, 2.302585092994045684)}, f.weak()));
}
Tensor log1p(const Operand& x) { return float_unary(Op::log1p, x); }
Tensor sin(const Operand& x) { return float_unary(Op::sin, x); }
Tensor cos(const Operand& x) { return float_unary(Op::cos, x); }
Tensor tan(const Operand& x) { return float_unary(Op::tan, x); }
Tensor asin(const Operand& x) { return float_unary(Op::asin, x); }
Tensor acos(const Operand& x) { return float_unary(Op::acos, x); }
Tensor atan(const Operand& x) { return float_unary(Op::atan, x); }
Tensor sinh(const Operand& x) { return float_unary(Op::sinh, x); }
Tensor cosh(const Operand& x) { return float_unary(Op::cosh, x); }
Tensor tanh(const Operand& x) { return float_unary(Op::tanh, x); }
Tensor asinh(const Operand& x) { return float_unary(Op::asinh, x); }
Tensor acosh(const Operand& x) { return float_unary(Op::acosh, x); }
Tensor atanh(const Operand& x) { return float_unary(Op::atanh, x); }
Tensor erf(const Operand& x) { return float_unary(Op::erf, x); }
Tensor erfc(const Operand& x) { return float_unary(Op::erfc, x); }
Tensor erf_inv(const Operand& x) { return float_unary(Op::erf_inv, x); }
Tensor sigmoid(const Operand& x) { return float_unary(Op::logistic, x); }
Tensor floor(const Operand& x) { return rounding(Op::floor, x); }
Tensor ceil(const Operand& x) { return rounding(Op::ceil, x); }
Tensor trunc(const Operand& x) { return rounding(Op::trunc, x); }
Tensor round(const Operand& x) { return rounding(Op::round_even, x); }
Tensor stop_gradient(const Operand& x) {
  if (!is_float(x.tensor.dtype())) return x.tensor;
  return unary(Op::stop_gradient, x);
}

Tensor operator==(const Operand& a, const Operand& b) { return compare("eq", Op::eq, a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return compare("ne", Op::ne, a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return compare("lt", Op::lt, a, b); }
Tensor operator<=(const Operand& a, const Operand& b) { return compare("le", Op::le, a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return compare("gt", Op::gt, a, b); }
Tensor operator>=(const Operand& a, const Operand& b) { return compare("ge", Op::ge, a, b); }
Tensor operator&(const Operand& a, const Operand& b) { return binary("bit_and", Op::bit_and, a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return binary("bit_or", Op::bit_or, a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return binary("bit_xor", Op::bit_xor, a, b); }
Tensor operator~(const Operand& x) { return unary(Op::bit_not, x); }
Tensor operator!(const Tensor& x) {
  // An operator cannot have a default argument: the line is that of the operand.
  const std::source_location where = detail::used_node(x, {}).made_at;
  OpScope scope(where);
  const Tensor flag =
      x.dtype() == DType::bool_ ? x : emit(Op::ne, {x, full_of(x, 0)});
  return scope.done(emit(Op::bit_not, {flag}));
}
Tensor operator<<(const Operand& a, const Operand& b) { return binary("shift_left", Op::shift_left, a, b); }
Tensor operator>>(const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  const Matched m = detail::match("shift_right", {a.tensor, b.tensor});
  const Op op = is_unsigned_int(m.operands[0].dtype()) ? Op::shift_right_logical : Op::shift_right_arithmetic;
  return scope.done(emit(op, {m.operands[0], m.operands[1]}, m.weak));
}
Tensor popcount(const Operand& x) { return unary(Op::popcount, x); }
Tensor count_leading_zeros(const Operand& x) { return unary(Op::count_leading_zeros, x); }

Tensor isnan(const Operand& x) {
  OpScope scope(x.where);
  return scope.done(emit(Op::ne, {x.tensor, x.tensor}));
}
Tensor isinf(const Operand& x) {
  OpScope scope(x.where);
  const Tensor f = as_float(x.tensor);
  return scope.done(emit(Op::eq, {emit(Op::abs, {f}), full_of(f, inf)}));
}
Tensor isfinite(const Operand& x) {
  OpScope scope(x.where);
  return scope.done(emit(Op::is_finite, {as_float(x.tensor)}));
}

Tensor where(const Operand& condition, const Operand& a, const Operand& b) {
  OpScope scope(condition.where);
  Tensor flag = condition.tensor;
  if (flag.dtype() != DType::bool_) flag = emit(Op::ne, {flag, full_of(flag, 0)});
  const Shape shape = detail::broadcast_shapes("where", {flag, a.tensor, b.tensor});
  const detail::Promoted both =
      detail::promote({a.tensor.dtype(), a.tensor.weak()}, {b.tensor.dtype(), b.tensor.weak()});
  const auto side = [&](const Tensor& t) { return detail::as_shape(as_dtype(t, both.dtype, both.weak), shape); };
  return scope.done(emit(Op::select, {detail::as_shape(flag, shape), side(a.tensor), side(b.tensor)}, both.weak));
}

Tensor astype(const Operand& x, DType dtype) {
  OpScope scope(x.where);
  if (x.tensor.dtype() == dtype && !x.tensor.weak()) return x.tensor;
  if (x.tensor.dtype() == dtype && !as_number(x.tensor)) {
    auto firm = std::make_shared<Node>(*detail::Access::node(x.tensor));
    firm->weak = false;
    return detail::Access::make(std::move(firm));
  }
  if (as_number(x.tensor)) {
    const Node& number = *as_number(x.tensor);
    if (!is_float(dtype) && !number.integral) return scope.done(emit<Op::convert>({x.tensor}, {.dtype = dtype}));
    return detail::make_concrete(detail::number_literal(number, dtype, x.where));
  }
  return scope.done(emit<Op::convert>({x.tensor}, {.dtype = dtype}));
}

Tensor bitcast(const Operand& x, DType dtype) {
  OpScope scope(x.where);
  return scope.done(emit<Op::bitcast>({x.tensor}, {.dtype = dtype}));
}

Tensor Tensor::astype(DType dtype, Where where) const { return burin::astype({*this, where}, dtype); }
Tensor& Tensor::operator+=(const Operand& b) & { return *this = Operand(*this, b.where) + b; }
Tensor& Tensor::operator-=(const Operand& b) & { return *this = Operand(*this, b.where) - b; }
Tensor& Tensor::operator*=(const Operand& b) & { return *this = Operand(*this, b.where) * b; }
Tensor& Tensor::operator/=(const Operand& b) & { return *this = Operand(*this, b.where) / b; }
Tensor& Tensor::operator%=(const Operand& b) & { return *this = Operand(*this, b.where) % b; }

}  // namespace burin
