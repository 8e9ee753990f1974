// Elementwise ops and comparisons: the corners of the operands' intervals, for functions that are monotone in each
// operand; the others have a line of their own. A new op counts as monotone and correctly rounded until a line here
// says otherwise.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/approximated.h"
#include "tests/fuzz/enclosure_rules.h"

namespace burin::fuzz {
namespace {

// Representable values that two approximations of one function may be apart: docs/numerics.md allows machine code 2 ulp
// in f32 and 4 in f64, the evaluator rounds once; below a power of two a step is half an ulp. Half types: one rounding
// each.
int steps_of(Op op, DType dtype) {
  if (op == Op::erf_inv && dtype == f32) return 1024;  // JAX's formula against the true value
  switch (dtype) {
    case f64:
      return 10;
    case f32:
      return 6;
    default:
      return 2;
  }
}

// Ops whose half results are no roundings: excess precision changes nothing about them.
bool picks_an_operand(Op op) {
  switch (op) {
    case Op::convert:
    case Op::bitcast:
    case Op::select:
    case Op::stop_gradient:
    case Op::neg:
    case Op::abs:
    case Op::max:
    case Op::min:
    case Op::clamp:
      return true;
    default:
      return false;
  }
}

struct Interval {
  double low, value, high;
  bool exact() const { return low == high && std::signbit(low) == std::signbit(high); }
  bool has(double x) const { return low <= x && x <= high; }
};

/// -0 is below +0: a function may tell them apart.
bool is_less(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

Interval interval(const Enclosure& e, std::int64_t i) { return {e.low.at(i), e.value.at(i), e.high.at(i)}; }

// Whether corners say nothing about what lies between them.
bool is_discontinuous(Op op, const Interval& x, const Interval& y) {
  switch (op) {
    case Op::div:
      return !y.exact() && y.has(0);
    case Op::rem: {
      if (!y.exact() && y.has(0)) return true;
      const double first = std::trunc(x.low / y.low);
      return first != std::trunc(x.low / y.high) || first != std::trunc(x.high / y.low) ||
             first != std::trunc(x.high / y.high);
    }
    case Op::pow:
      return x.low <= 0 && (!y.exact() || (!x.exact() && x.has(0)));
    case Op::atan2:
      return (x.has(0) && y.has(0)) || (x.has(0) && y.low < 0);  // the origin, the cut
    case Op::tan: {
      const auto period = [](double v) { return std::floor(v / std::numbers::pi + 0.5); };
      return std::abs(x.value) > 1e4 || period(x.low) != period(x.high);
    }
    case Op::asin:
    case Op::acos:
    case Op::atanh:
    case Op::erf_inv:
      return x.low < -1 && x.high > 1;  // both corners are outside of what the function takes
    case Op::eq:
    case Op::ne:
      return x.low <= y.high && y.low <= x.high;
    case Op::bitcast:
      return true;
    default:
      return false;
  }
}

// Extremes that lie inside an interval.
void add_inner(Op op, Enclosure& r, std::int64_t i, const Interval& x) {
  if (op == Op::abs && x.has(0)) r.low.set(i, 0);
  if (op == Op::cosh && x.has(0)) r.low.set(i, 1);
  if (op == Op::sin || op == Op::cos) {  // the derivative is at most 1
    const double apart = std::max(x.high - x.value, x.value - x.low), value = r.value.at(i);
    set_low(r.low, i, std::max(-1.0, value - apart));
    set_high(r.high, i, std::min(1.0, value + apart));
  }
}

Enclosure enclose_select(const Site& s) {
  const Enclosure &condition = s.operands[0], &yes = s.operands[1], &no = s.operands[2];
  const auto choose = [&](const Literal& a, const Literal& b) {
    const Literal with[] = {condition.value, a, b};
    return s.apply(with);
  };
  Enclosure r{choose(yes.value, no.value), choose(yes.low, no.low), choose(yes.high, no.high), {}, false};
  for (std::int64_t i = 0; i < s.type().size(); ++i)
    if (condition.is_free(i) || (condition.value.int_at(i) != 0 ? yes : no).is_free(i)) free_element(r, i);
  return r;
}

}  // namespace

Enclosure enclose_elementwise(const Site& s) {
  if (s.op == Op::select) return enclose_select(s);
  Enclosure r = exactly(s.value());
  const Type& type = s.type();
  const bool floats = is_float(type.dtype), float_operands = is_float(s.operands[0].value.dtype());
  const bool approximated = floats && is_approximated(s.op);
  const bool widened = floats && is_half(type.dtype) && s.model.excess_precision && !picks_an_operand(s.op);
  const bool real = floats && s.model.real_numbers;
  const bool shows_bits = s.op == Op::bitcast && float_operands;
  if (s.all_exact() && !approximated && !widened && !real && !shows_bits) return r;

  std::vector<std::size_t> moving;
  for (std::size_t k = 0; k < s.operands.size(); ++k)
    if (!s.operands[k].exact && is_float(s.operands[k].value.dtype())) moving.push_back(k);
  std::vector<Literal> corners;
  for (std::size_t mask = 0; !moving.empty() && mask < (std::size_t{1} << moving.size()); ++mask) {
    std::vector<Literal> with;
    for (const Enclosure& e : s.operands) with.push_back(e.value);
    for (std::size_t k = 0; k < moving.size(); ++k)
      with[moving[k]] = (mask >> k & 1) != 0 ? s.operands[moving[k]].high : s.operands[moving[k]].low;
    corners.push_back(s.apply(with));
  }

  const int steps = (approximated ? steps_of(s.op, type.dtype) : 0) + (widened ? 1 : 0) + (real ? 1 : 0);
  const double infinity = HUGE_VAL;
  for (std::int64_t i = 0; i < type.size(); ++i) {
    bool unknown = std::any_of(s.operands.begin(), s.operands.end(), [&](const Enclosure& e) { return e.is_free(i); });
    bool moves = false, special = false, zero = float_operands;
    for (std::size_t k = 0; k < s.operands.size() && float_operands; ++k) {
      const Interval x = interval(s.operands[k], i);
      moves = moves || is_less(x.low, x.high);
      special = special || !std::isfinite(x.value);
      zero = zero && x.value == 0;
    }
    if (unknown) {
      free_element(r, i);
      continue;
    }
    if (moves) {
      const Interval x = interval(s.operands[0], i), y = s.operands.size() > 1 ? interval(s.operands[1], i) : x;
      unknown = is_discontinuous(s.op, x, y) || (type.dtype == bool_ && s.op == Op::convert && x.has(0));
      for (const Literal& corner : corners) {
        if (!floats) {
          unknown = unknown || corner.int_at(i) != r.value.int_at(i);
          continue;
        }
        unknown = unknown || std::isnan(corner.at(i)) != std::isnan(r.value.at(i));
        if (is_less(corner.at(i), r.low.at(i))) r.low.set(i, corner.at(i));
        if (is_less(r.high.at(i), corner.at(i))) r.high.set(i, corner.at(i));
      }
      if (floats && !unknown) add_inner(s.op, r, i, x);
      unknown = unknown || (floats && r.low.at(i) == -infinity && r.high.at(i) == infinity);
    }
    // Which NaN an op gives is not settled; a bitcast shows it.
    unknown = unknown || (s.op == Op::bitcast && float_operands && std::isnan(s.operands[0].value.at(i)));
    if (unknown) {
      free_element(r, i);
      continue;
    }
    // A limit is exact when it is 0, 1 or infinite, and so is a function that is zero at zero.
    const double limit = floats ? std::abs(r.value.at(i)) : 0;
    if (steps == 0 ||
        (!moves && ((special && (!std::isfinite(limit) || limit == 0 || limit == 1)) || (zero && limit == 0))))
      continue;
    step_down(r.low, i, steps);
    step_up(r.high, i, steps);
  }
  return r;
}

}  // namespace burin::fuzz
