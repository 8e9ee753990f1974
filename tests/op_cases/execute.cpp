#include "tests/op_cases/execute.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "ir/element_text.h"
#include "ir/eval/eval.h"
#include "passes/batching/batching.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

double ulps_of(Op op, DType dtype) {
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
    case Op::atan2:
      return dtype == DType::f64 ? 4 : dtype == DType::f32 ? 2 : 1;
    default:
      return 0;
  }
}

/// The bits as an integer that counts floats in their order, zeros apart by one.
std::int64_t ordered(const Literal& literal, std::int64_t i) {
  std::int64_t bits = 0;
  const std::size_t width = size_of(literal.dtype());
  std::memcpy(&bits, literal.raw().data() + static_cast<std::size_t>(i) * width, width);
  const std::int64_t sign = std::int64_t{1} << (8 * width - 1);
  const bool negative = width == 8 ? bits < 0 : (bits & sign) != 0;
  const std::int64_t magnitude = width == 8 ? bits & INT64_MAX : bits & (sign - 1);
  return negative ? -1 - magnitude : magnitude;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f32:
      return 0x1p-23;
    case DType::bf16:
      return 0x1p-7;
    case DType::f16:
      return 0x1p-10;
    default:
      return 0;
  }
}

void add_accuracy(const Function& f, Accuracy& total) {
  f.for_each_op([&](OpId op) {
    const Op kind = f.kind(op);
    if (f.num_results(op) == 0) return;
    total.ulps += ulps_of(kind, f.type(f.result(op)).dtype);
    if (kind == Op::dot_general || kind == Op::reduce_sum || kind == Op::reduce_prod) total.any_order = true;
    if ((kind == Op::add || kind == Op::sub) && total.ulps > 0) total.cancels = true;
    for (const AttrValue& value : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&value)) add_accuracy(**body, total);
  });
}

}  // namespace

Accuracy accuracy_of(const Function& f) {
  Accuracy total;
  add_accuracy(f, total);
  return total;
}

std::string inaccuracy(const Literal& found_in, const Literal& expected_in, const Accuracy& accuracy) {
  const std::string exact = test::difference(found_in, expected_in);
  if (exact.empty() || found_in.type() != expected_in.type() || !is_float(found_in.dtype())) return exact;
  Literal found = found_in, expected = expected_in;
  found.expand();
  expected.expand();
  for (std::int64_t i = 0; i < found.shape().size(); ++i) {
    const double a = found.at(i), b = expected.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (std::isnan(a) || std::isnan(b)) return exact;
    const std::int64_t apart = ordered(found, i) - ordered(expected, i);
    if (static_cast<double>(std::llabs(apart)) <= accuracy.ulps) continue;
    const double units = accuracy.any_order ? 64 + accuracy.ulps : accuracy.ulps;
    const double size = (accuracy.any_order || accuracy.cancels ? 1 : 0) + std::abs(b);
    if (units > 0 && std::isfinite(a) && std::abs(a - b) <= units * epsilon(found.dtype()) * size) continue;
    return "element " + std::to_string(i) + " of " + to_string(found.type()) + " is " + ir::element_text(found, i) +
           ", expected " + ir::element_text(expected, i);
  }
  return "";
}

std::vector<std::string> check_executions(Op op, const test::Execute& execute) {
  std::vector<std::string> broken;
  const auto compare = [&](const std::string& name, const Function& f, const std::vector<Literal>& args) {
    const std::vector<Literal> expected = ir::evaluate(f, args), found = execute(f, args);
    if (found.size() != expected.size()) {
      broken.push_back(name + ": " + std::to_string(found.size()) + " results, expected " +
                       std::to_string(expected.size()));
      return;
    }
    const Accuracy accuracy = accuracy_of(f);
    for (std::size_t r = 0; r < found.size(); ++r)
      if (const std::string d = inaccuracy(found[r], expected[r], accuracy); !d.empty())
        broken.push_back(name + ": " + d);
  };
  for (const OpCase& c : entry(op).cases) {
    compare(c.name, c.function, c.args(0));
    if (!c.smooth) continue;
    const std::vector<bool> active = test::float_args(c.function);
    if (std::find(active.begin(), active.end(), true) != active.end()) {
      const Function g = test::gradient(c.function, active);
      std::vector<Literal> args = c.args(0);
      for (std::size_t i = args.size(); i < g.args().size(); ++i)
        args.push_back(test::spread(g.type(g.args()[i]), -1, 1, i));
      compare(c.name + ", gradient", g, args);
    }
    if (c.function.args().empty()) continue;
    const passes::Batched batched = passes::batch(c.function, std::vector<bool>(c.function.args().size(), true), 2);
    std::vector<Literal> args;
    const std::vector<Literal> first = c.args(0), second = c.args(1);
    for (std::size_t i = 0; i < first.size(); ++i)
      args.push_back(test::stacked(std::vector<Literal>{first[i], second[i]}));
    compare(c.name + ", batched", batched.function, args);
  }
  return broken;
}

}  // namespace burin::op_cases
