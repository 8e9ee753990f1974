// Derivatives against differences: the program with all its floats made f64, where differences are exact enough to
// tell.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/builder.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/inputs.h"
#include "tests/fuzz/properties.h"

namespace burin::fuzz {

using namespace ir;

namespace {

DType widened(DType dtype) { return is_float(dtype) ? f64 : dtype; }

Literal widened(const Literal& value) {
  if (!is_float(value.dtype())) return value;
  Literal expanded = value, wide(Type{f64, value.shape()});
  expanded.expand();
  for (std::int64_t i = 0; i < wide.type().size(); ++i) wide.set(i, expanded.at(i));
  return wide;
}

/// f with f64 for every float dtype. Throws Error where that is no program: a bitcast.
Function widened(const Function& f) {
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args())
    map[arg.index] = b.add_arg({widened(f.type(arg).dtype), f.type(arg).shape}, f.value_name(arg));
  f.for_each_op([&](OpId op) {
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    std::vector<AttrValue> attributes(f.attributes(op).begin(), f.attributes(op).end());
    for (AttrValue& value : attributes) {
      if (DType* dtype = std::get_if<DType>(&value)) *dtype = widened(*dtype);
      if (Literal* literal = std::get_if<Literal>(&value)) *literal = widened(*literal);
      if (Body* body = std::get_if<Body>(&value)) *body = std::make_shared<const Function>(widened(**body));
    }
    const ValueId first = b.append(f.kind(op), operands, std::move(attributes));
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return b.finish(std::move(results));
}

bool has_half_constant(const Function& f) {
  bool found = false;
  f.for_each_op([&](OpId op) {
    found = found || (f.kind(op) == Op::constant && is_half(f.type(f.result(op)).dtype));
    for (const AttrValue& attribute : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&attribute)) found = found || has_half_constant(**body);
  });
  return found;
}

/// Whether differences see something else than the derivative: a gradient stopped by decree, steps and saws (steep ones
/// look like a slope from afar), a custom_vjp, which has no tangent, or the rule of a custom_jvp whose factors were
/// rounded to a half type when it was made.
bool misleads_differences(const Function& f, OpId op) {
  switch (f.kind(op)) {
    case Op::stop_gradient:
    case Op::custom_vjp:
    case Op::rem:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_away:
      return true;
    case Op::custom_jvp:
      return has_half_constant(*f.attrs<Op::custom_jvp>(op).jvp);
    case Op::convert:
      return is_float(f.type(f.operand(op, 0)).dtype) && !is_float(f.type(f.result(op)).dtype);
    default:
      return false;
  }
}

bool misleads_differences(const Function& f) {
  bool found = false;
  f.for_each_op([&](OpId op) {
    found = found || misleads_differences(f, op);
    for (const AttrValue& attribute : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&attribute)) found = found || misleads_differences(**body);
  });
  return found;
}

/// By result: central differences along the direction.
std::vector<Literal> differences(const Function& f, const std::vector<Literal>& at,
                                 const std::vector<Literal>& direction, double h) {
  const auto moved = [&](double step) {
    std::vector<Literal> args = at;
    std::size_t next = 0;
    for (Literal& arg : args) {
      if (arg.dtype() != f64) continue;
      const Literal& d = direction[next++];
      for (std::int64_t i = 0; i < arg.type().size(); ++i) arg.set(i, arg.at(i) + step * d.at(i));
    }
    return evaluated(f, args).results;
  };
  std::vector<Literal> up = moved(h), down = moved(-h);
  if (up.empty() || down.empty()) return {};
  for (std::size_t r = 0; r < up.size(); ++r) {
    if (up[r].dtype() != f64) continue;
    up[r].expand();
    down[r].expand();
    for (std::int64_t i = 0; i < up[r].type().size(); ++i)
      up[r].set(i, up[r].at(i) == down[r].at(i) ? 0 : (up[r].at(i) - down[r].at(i)) / (2 * h));
  }
  return up;
}

/// Differences of three steps: where they do not agree among themselves the function has a kink, or its values drown
/// them; where they and the tangent do not agree, a step of next to nothing decides. An infinite slope along a direction
/// that does not move is NaN, which says nothing.
std::string difference_on(const Function& f, const Function& tangent, std::uint64_t seed) {
  const std::vector<Literal> all = draw_inputs(tangent, seed, true);
  const std::size_t n = f.args().size();
  const std::vector<Literal> at(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
  const std::vector<Literal> direction(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
  const Outcome found = evaluated(tangent, all);
  const std::vector<Literal> coarse = differences(f, at, direction, 1e-4), fine = differences(f, at, direction, 5e-5),
                             finest = differences(f, at, direction, 1.25e-5);
  if (!found.error.empty() || coarse.empty() || fine.empty() || finest.empty()) return "";
  // How far rounding alone may move a result: differences of such a result tell nothing.
  std::vector<Enclosure> exact;
  for (const Literal& arg : at) exact.push_back(exactly(arg));
  Model model;
  model.real_numbers = true;
  const std::vector<Enclosure> blurred = enclose(f, exact, model);
  std::vector<Literal> nearest;
  std::size_t next = f.results().size();
  for (std::size_t r = 0; r < f.results().size(); ++r) {
    if (f.type(f.results()[r]).dtype != f64) continue;
    Literal slope = found.results[next++], value = found.results[r];
    slope.expand();
    value.expand();
    for (std::int64_t i = 0; i < slope.type().size(); ++i) {
      const double x = slope.at(i), a = coarse[r].at(i), b = fine[r].at(i), d = finest[r].at(i);
      if (!std::isfinite(x) || !std::isfinite(a) || !std::isfinite(b) || !std::isfinite(d) ||
          !std::isfinite(value.at(i)))
        continue;
      const double size = std::max({std::abs(a), std::abs(b), std::abs(d)}),
                   noise = 1e-6 * std::abs(value.at(i)) + 1e-6;
      const double blur = (blurred[r].high.at(i) - blurred[r].low.at(i)) / 1.25e-5;
      if (blurred[r].is_free(i) || !(blur < 1e-4 * size + noise)) continue;
      if (std::abs(a - b) + std::abs(b - d) > 1e-4 * size + noise) continue;  // no derivative to compare with
      if (std::abs(x - d) <= 1e-3 * std::max(size, std::abs(x)) + 10 * noise) continue;
      // Between poles that lie closer than a step, min and max show another value at every step than where the slope is.
      if (nearest.empty()) nearest = differences(f, at, direction, 1e-10);
      if (!(std::abs(x - nearest[r].at(i)) <= 1e-2 * std::abs(x)))
        return "tangent of result " + std::to_string(r) + ", element " + std::to_string(i) + ": " + std::to_string(x) +
               " instead of " + std::to_string(d);
    }
  }
  return "";
}

}  // namespace

// A bug shows on any data; a function that is flat to the last bit of its values is so on some.
std::string check_tangent(Case& c) {
  if (c.f().num_ops() > 60 || misleads_differences(c.f())) return "";
  Function f, tangent;
  try {
    f = widened(c.f());
    std::vector<bool> active;
    for (ValueId arg : f.args()) active.push_back(f.type(arg).dtype == f64);
    tangent = tangent_of(f, active);
  } catch (const Error&) {
    return "";  // a bitcast, an op without a derivative
  }
  std::string text;
  for (std::uint64_t k = 0; k < 3; ++k)
    if (text = difference_on(f, tangent, c.seed() + k); text.empty()) return "";
  return text;
}

}  // namespace burin::fuzz
