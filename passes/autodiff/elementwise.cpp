// Derivatives of the elementwise family. Formulas: the derivative of each function as in any table; where a form loses
// accuracy near a limit, the one that does not.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {
namespace {

// Arithmetic with C++ numbers on a builder, so that a derivative reads like its formula.
struct Expr {
  Builder* b;
  ValueId v;
  ValueId full(double x) const { return b->full_like(v, x); }
};
Expr operator*(Expr x, Expr y) { return {x.b, x.b->mul(x.v, y.v)}; }
Expr operator+(Expr x, Expr y) { return {x.b, x.b->add(x.v, y.v)}; }
Expr operator-(Expr x, Expr y) { return {x.b, x.b->sub(x.v, y.v)}; }
Expr operator/(Expr x, Expr y) { return {x.b, x.b->div(x.v, y.v)}; }
Expr operator-(Expr x) { return {x.b, x.b->neg(x.v)}; }
Expr operator*(Expr x, double y) { return {x.b, x.b->mul(x.v, x.full(y))}; }
Expr operator+(Expr x, double y) { return {x.b, x.b->add(x.v, x.full(y))}; }
Expr operator-(double x, Expr y) { return {y.b, y.b->sub(y.full(x), y.v)}; }
Expr operator-(Expr x, double y) { return {x.b, x.b->sub(x.v, x.full(y))}; }
Expr operator/(double x, Expr y) { return {y.b, y.b->div(y.full(x), y.v)}; }
Expr exp(Expr x) { return {x.b, x.b->exp(x.v)}; }
Expr sin(Expr x) { return {x.b, x.b->sin(x.v)}; }
Expr cos(Expr x) { return {x.b, x.b->cos(x.v)}; }
Expr sinh(Expr x) { return {x.b, x.b->sinh(x.v)}; }
Expr cosh(Expr x) { return {x.b, x.b->cosh(x.v)}; }
Expr rsqrt(Expr x) { return {x.b, x.b->rsqrt(x.v)}; }
Expr sign(Expr x) { return {x.b, x.b->sign(x.v)}; }
// C++ leaves open which operand of * it evaluates first; the ops of a derivative have one order.
Expr one_minus_square(Expr x) {
  const Expr less = 1.0 - x;
  return less * (x + 1.0);
}
Expr square_minus_one(Expr x) {
  const Expr less = x - 1.0;
  return less * (x + 1.0);
}

}  // namespace

ValueId unary_tangent(Op op, JvpContext& c, ValueId xv, ValueId yv, ValueId tv) {
  const Expr x{&c.b, xv}, y{&c.b, yv}, t{&c.b, tv};
  const double two_over_root_pi = 2 / std::sqrt(std::numbers::pi);
  switch (op) {
    case Op::neg: return (-t).v;
    case Op::abs: return (t * sign(x)).v;
    case Op::sqrt: return (t * (0.5 / y)).v;
    case Op::rsqrt: return (t * ((y / x) * -0.5)).v;
    case Op::cbrt: return (t * ((1.0 / 3) / (y * y))).v;
    case Op::exp: return (t * y).v;
    case Op::exp2: return (t * (y * std::numbers::ln2)).v;
    case Op::expm1: return (t * (y + 1.0)).v;
    case Op::log: return (t / x).v;
    case Op::log2: return (t / (x * std::numbers::ln2)).v;
    case Op::log1p: return (t / (x + 1.0)).v;
    case Op::tanh: return (t * one_minus_square(y)).v;
    case Op::logistic: return (t * (y * (1.0 - y))).v;
    case Op::erf: return (t * (exp(-(x * x)) * two_over_root_pi)).v;
    case Op::erfc: return (t * (exp(-(x * x)) * -two_over_root_pi)).v;
    case Op::erf_inv: return (t * (exp(y * y) * (1 / two_over_root_pi))).v;
    case Op::sin: return (t * cos(x)).v;
    case Op::cos: return (t * -sin(x)).v;
    case Op::tan: return (t * (y * y + 1.0)).v;
    case Op::asin: return (t * rsqrt(one_minus_square(x))).v;
    case Op::acos: return (t * -rsqrt(one_minus_square(x))).v;
    case Op::atan: return (t / (x * x + 1.0)).v;
    case Op::sinh: return (t * cosh(x)).v;
    case Op::cosh: return (t * sinh(x)).v;
    case Op::asinh: return (t * rsqrt(x * x + 1.0)).v;
    case Op::acosh: return (t * rsqrt(square_minus_one(x))).v;
    case Op::atanh: return (t / one_minus_square(x)).v;
    default: BURIN_CHECK(false, std::string(name(op))); return {};
  }
}

void jvp_zero(JvpContext& c) { c.emit_primal(); }

void jvp_linear(JvpContext& c) {
  c.emit_primal();
  std::vector<ValueId> tangents;
  for (std::size_t i = 0; i < c.size(); ++i) tangents.push_back(c.tangent_or_zeros(i));
  c.add_tangent(0, c.b.append_copy(c.source, c.op, tangents));
}

void jvp_unary(JvpContext& c) {
  const Op op = c.source.kind(c.op);
  const ValueId y = c.emit_primal();
  switch (op) {
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_away:
    case Op::is_finite: return;  // constant between jumps, as in JAX
    default: c.add_tangent(0, unary_tangent(op, c, c.primal(0), y, *c.tangent(0)));
  }
}

namespace {

// The share of a tie that each operand of max or min gets is one half.
ValueId extremum_weight(Builder& b, Op op, ValueId mine, ValueId other) {
  const ValueId wins = op == Op::max ? b.gt(mine, other) : b.lt(mine, other);
  const ValueId one = b.full_like(mine, 1), equal = b.eq(mine, other), half = b.full_like(mine, 0.5);
  return b.select(wins, one, b.select(equal, half, b.full_like(mine, 0)));
}

}  // namespace

void jvp_binary(JvpContext& c) {
  Builder& b = c.b;
  const Op op = c.source.kind(c.op);
  const ValueId z = c.emit_primal();
  const Expr x{&b, c.primal(0)}, y{&b, c.primal(1)};
  const auto has = [&](std::size_t i) { return c.tangent(i).has_value(); };
  const auto t = [&](std::size_t i) { return Expr{&b, *c.tangent(i)}; };
  const auto give = [&](Expr value) { c.add_tangent(0, value.v); };
  switch (op) {
    case Op::add:
      if (has(0)) give(t(0));
      if (has(1)) give(t(1));
      return;
    case Op::sub:
      if (has(0) && has(1)) return give(t(0) - t(1));
      return give(has(0) ? t(0) : -t(1));
    case Op::mul:
      if (has(0)) give(t(0) * y);
      if (has(1)) give(t(1) * x);
      return;
    case Op::div:
      if (has(0)) give(t(0) / y);
      if (has(1)) give(t(1) * -(Expr{&b, z} / y));
      return;
    case Op::rem:
      if (has(0)) give(t(0));
      if (has(1)) give(t(1) * -Expr{&b, b.trunc((x / y).v)});
      return;
    case Op::max:
    case Op::min:
      if (has(0)) give(t(0) * Expr{&b, extremum_weight(b, op, x.v, y.v)});
      if (has(1)) give(t(1) * Expr{&b, extremum_weight(b, op, y.v, x.v)});
      return;
    case Op::pow: {
      // x^y: the derivative in x of 0^0 is 0, not 0 * inf; where x is 0 the one in y is 0, not 0 * -inf. Where only y is 0
      // nothing is hidden: y * x^(y - 1) is 0 there but has a derivative.
      if (has(0)) {
        const ValueId base_is_zero = b.eq(x.v, x.full(0));
        const ValueId corner = b.bit_and(base_is_zero, b.eq(y.v, y.full(0))), one = y.full(1);
        const Expr less{&b, b.select(corner, one, (y - 1.0).v)};
        const ValueId zero = y.full(0);
        give(t(0) * Expr{&b, b.select(corner, zero, (y * Expr{&b, b.pow(x.v, less.v)}).v)});
      }
      if (has(1)) {
        const ValueId base_is_zero = b.eq(x.v, x.full(0));
        const ValueId safe = b.select(base_is_zero, x.full(1), x.v);
        give(t(1) * (Expr{&b, b.log(safe)} * Expr{&b, z}));
      }
      return;
    }
    case Op::atan2: {
      const Expr x_square = x * x, square = x_square + y * y;
      if (has(0)) give(t(0) * (y / square));
      if (has(1)) give(t(1) * -(x / square));
      return;
    }
    default: BURIN_CHECK(false, std::string(name(op)));
  }
}

void jvp(Tag<Op::select>, JvpContext& c) {
  c.emit_primal();
  const ValueId t = c.tangent_or_zeros(1);
  c.add_tangent(0, c.b.select(c.primal(0), t, c.tangent_or_zeros(2)));
}

void jvp(Tag<Op::clamp>, JvpContext& c) {
  Builder& b = c.b;
  c.emit_primal();
  const ValueId low = c.primal(0), x = c.primal(1), high = c.primal(2);
  const auto where = [&](ValueId mask, ValueId t) { c.add_tangent(0, b.select(mask, t, b.full_like(t, 0))); };
  // high has the last word: it also bounds low.
  if (c.tangent(0)) where(b.emit<Op::bit_and>({b.gt(low, x), b.le(low, high)}), *c.tangent(0));
  if (c.tangent(1)) where(b.emit<Op::bit_and>({b.ge(x, low), b.le(x, high)}), *c.tangent(1));
  if (c.tangent(2)) where(b.lt(high, b.max(x, low)), *c.tangent(2));
}

void jvp(Tag<Op::convert>, JvpContext& c) {
  const DType dtype = c.attrs<Op::convert>().dtype;
  c.emit_primal();
  if (is_float(dtype)) c.add_tangent(0, c.b.convert(*c.tangent(0), dtype));
}

void jvp(Tag<Op::bitcast>, JvpContext& c) { c.not_differentiable("it reads the bits of a float"); }

void jvp(Tag<Op::stop_gradient>, JvpContext& c) { c.emit_primal(); }

// ---- transpose ------------------------------------------------------------------------------------------------------

void transpose(Tag<Op::neg>, TransposeContext& c) { c.give(0, c.b.neg(c.ct())); }

void transpose(Tag<Op::add>, TransposeContext& c) {
  for (std::size_t i = 0; i < 2; ++i)
    if (c.linear[i]) c.give(i, c.ct());
}

void transpose(Tag<Op::sub>, TransposeContext& c) {
  if (c.linear[0]) c.give(0, c.ct());
  if (c.linear[1]) c.give(1, c.b.neg(c.ct()));
}

void transpose(Tag<Op::mul>, TransposeContext& c) {
  if (c.linear[0] && c.linear[1]) c.not_linear();
  const std::size_t i = c.linear[0] ? 0 : 1;
  c.give(i, c.b.mul(c.ct(), c.operands[1 - i]));
}

void transpose(Tag<Op::div>, TransposeContext& c) {
  c.linear_only_in({0});
  c.give(0, c.b.div(c.ct(), c.operands[1]));
}

void transpose(Tag<Op::select>, TransposeContext& c) {
  c.linear_only_in({1, 2});
  const ValueId zero = c.b.full_like(c.ct(), 0);
  if (c.linear[1]) c.give(1, c.b.select(c.operands[0], c.ct(), zero));
  if (c.linear[2]) c.give(2, c.b.select(c.operands[0], zero, c.ct()));
}

void transpose(Tag<Op::convert>, TransposeContext& c) {
  const DType from = c.operand_type(0).dtype;
  if (!is_float(from) || !is_float(c.b.type(c.ct()).dtype)) c.not_linear();
  c.give(0, c.b.convert(c.ct(), from));
}

}  // namespace burin::passes::autodiff
