#include <burin/testing.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <ostream>

#include <burin/random.h>

#include "base/message_ids.h"
#include "frontend/node.h"
#include "frontend/trace_stack.h"
#include "ir/function.h"

namespace burin {
namespace detail {
namespace {

double dot_of(const Leaves& a, const Leaves& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    for (std::size_t k = 0; k < x.size(); ++k) total += x[k] * y[k];
  }
  return total;
}

Leaves random_like(const Leaves& like, std::int64_t seed) {
  Leaves result;
  Key key = random::key(seed);
  for (const Tensor& t : like) {
    const auto [next, use] = random::split(key);
    key = next;
    result.push_back(random::normal(use, t.shape(), f32).astype(t.dtype()));
  }
  return result;
}

Leaves moved(const Leaves& at, const Leaves& direction, double by) {
  Leaves result;
  for (std::size_t i = 0; i < at.size(); ++i) result.push_back(at[i] + by * direction[i]);
  return result;
}

Leaves only_floats(Leaves leaves) {
  std::erase_if(leaves, [](const Tensor& t) { return !is_float(t.dtype()); });
  return leaves;
}

// Whether forward mode would meet an op whose derivative is known in reverse mode alone.
bool has_reverse_rule(const ir::Function& f) {
  bool found = false;
  f.for_each_op([&](ir::OpId op) {
    found |= f.kind(op) == ir::Op::custom_vjp;
    const std::span<const ir::AttrValue> attributes = f.attributes(op);
    // Of an op with a custom_jvp rule only the rule is differentiated.
    for (std::size_t i = f.kind(op) == ir::Op::custom_jvp ? 1 : 0; i < attributes.size(); ++i)
      if (const ir::Body* body = std::get_if<ir::Body>(&attributes[i])) found |= has_reverse_rule(**body);
  });
  return found;
}

bool uses_reverse_rule(const LeafFunction& f, const Leaves& at, const std::source_location& where) {
  Trace trace("main");
  Leaves leaves;
  for (const Tensor& t : at) leaves.push_back(trace.add_argument({t.dtype(), t.shape()}, false, "x"));
  std::vector<ir::ValueId> results;
  for (const Tensor& t : f(leaves)) results.push_back(trace.resolve(t, where));
  return has_reverse_rule(trace.finish(std::move(results)));
}

void check_order(const LeafFunction& f, const Leaves& at, const std::vector<std::string>& names, int order,
                 const CheckGradsOptions& o, const std::source_location& where) {
  const LeafFunction floats = [&](const Leaves& x) { return only_floats(f(x)); };
  const Leaves direction = random_like(at, o.seed);
  const Leaves value = floats(at);
  if (value.empty()) fail_at(where_text(where), Msg::nothing_to_differentiate, "check_grads", "the result holds none");
  const Leaves weights = random_like(value, o.seed + 1);
  const double numeric =
      (dot_of(floats(moved(at, direction, o.step)), weights) - dot_of(floats(moved(at, direction, -o.step)), weights)) /
      (2 * o.step);
  const auto [again, pull] = vjp(floats, at);
  const auto [gradients] = pull(weights);
  const double reverse = dot_of(gradients, direction);
  const auto check = [&](const char* mode, double expected, double found, double tolerance) {
    const double scale = 1 + std::max(std::abs(expected), std::abs(found));
    if (!(std::abs(expected - found) <= tolerance * scale))
      fail_at(where_text(where), Msg::wrong_derivative, o.order - order + 1, mode, fmt::format("{:.9g}", expected),
              fmt::format("{:.9g}", found), names[0], names.size() > 1 ? " and others" : "");
  };
  // A difference quotient of an order-n derivative loses digits; forward and reverse must agree to rounding.
  if (uses_reverse_rule(floats, at, where)) {
    check("reverse", numeric, reverse, o.tolerance * 10);
  } else {
    const auto [same, tangent] = jvp(floats, std::tuple<Leaves>(at), std::tuple<Leaves>(direction));
    const double forward = dot_of(tangent, weights);
    check("forward", numeric, forward, o.tolerance * 10);
    check("reverse", forward, reverse, 1e-9);
  }
  if (order == 1) return;
  const LeafFunction derivative = [&](const Leaves& x) {
    const auto [y, back] = vjp(floats, x);
    return std::get<0>(back(weights));
  };
  check_order(derivative, at, names, order - 1, o, where);
}

double ulps(double a, double b, DType dtype) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return inf;
  const int digits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  int exponent = 0;
  std::frexp(std::max(std::abs(a), std::abs(b)), &exponent);
  return std::abs(a - b) / std::ldexp(1.0, exponent - 1 - digits);
}

Comparison::Leaf compare_leaf(std::string path, const Tensor& a, const Tensor& b, const std::source_location& where) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    fail_at(where_text(where), Msg::compare_types, path, to_string(ir::Type{a.dtype(), a.shape()}),
            to_string(ir::Type{b.dtype(), b.shape()}));
  Comparison::Leaf leaf{std::move(path)};
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    leaf.max_ulp = std::max(leaf.max_ulp, is_float(a.dtype()) ? ulps(x[i], y[i], a.dtype()) : std::abs(x[i] - y[i]));
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  leaf.relative = difference == 0 ? 0 : std::sqrt(difference / size);
  return leaf;
}

Leaves gradients_of_sum(const LeafFunction& f, const Leaves& at) {
  return grad([&](const Leaves& x) {
    Tensor total = 0.0;
    for (const Tensor& t : f(x))
      if (is_float(t.dtype())) total = total + t.astype(f32).sum();
    return total;
  })(at);
}

}  // namespace

void check_gradients(const LeafFunction& f, const Leaves& at, const std::vector<std::string>& names,
                     const CheckGradsOptions& options, std::source_location where) {
  const auto refuse = [&](const char* option, const char* expected, const auto& found) {
    fail_at(where_text(where), Msg::check_grads_option, option, expected, found);
  };
  if (options.order < 1) refuse("order", "at least 1", options.order);
  if (!(options.step > 0 && std::isfinite(options.step))) refuse("step", "a number above 0", options.step);
  if (!(options.tolerance > 0 && std::isfinite(options.tolerance)))
    refuse("tolerance", "a number above 0", options.tolerance);
  if (at.empty()) fail_at(where_text(where), Msg::nothing_to_differentiate, "check_grads", "the arguments hold none");
  check_order(f, at, names, options.order, options, where);
}

Comparison compare_functions(const LeafFunction& f, const LeafFunction& g, const Leaves& at,
                             const std::vector<std::string>& names, std::source_location where) {
  Comparison result;
  const Leaves a = f(at), b = g(at);
  if (a.size() != b.size()) fail_at(where_text(where), Msg::compare_leaves, a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    result.leaves.push_back(compare_leaf(a.size() == 1 ? "result" : "result " + std::to_string(i), a[i], b[i], where));
  if (at.empty()) return result;
  const Leaves da = gradients_of_sum(f, at), db = gradients_of_sum(g, at);
  for (std::size_t i = 0; i < da.size(); ++i) result.leaves.push_back(compare_leaf("gradient " + names[i], da[i], db[i], where));
  return result;
}

}  // namespace detail

double Comparison::max_ulp() const {
  double most = 0;
  for (const Leaf& leaf : leaves) most = std::max(most, leaf.max_ulp);
  return most;
}
double Comparison::max_relative() const {
  double most = 0;
  for (const Leaf& leaf : leaves) most = std::max(most, leaf.relative);
  return most;
}
std::ostream& operator<<(std::ostream& out, const Comparison& c) {
  for (const Comparison::Leaf& leaf : c.leaves)
    out << fmt::format("{:<32} {:>10.4g} ulp  {:>10.3g} relative\n", leaf.path, leaf.max_ulp, leaf.relative);
  return out;
}

}  // namespace burin
