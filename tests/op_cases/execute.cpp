#include "tests/op_cases/execute.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "ir/element_text.h"
#include "ir/approximated.h"
#include "ir/eval/eval.h"
#include "passes/batching/batching.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

double ulps_of(Op op, DType dtype) {
  // Machine code follows XLA's approximation in f32, which loses digits towards 1 and -1; the evaluator has the true value.
  if (op == Op::erf_inv && dtype == DType::f32) return 65;
  if (!is_approximated(op)) return 0;
  return dtype == DType::f64 ? 4 : dtype == DType::f32 ? 2 : 1;
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

namespace {

/// One function and its arguments, run together with others.
struct Run {
  std::string name;
  Function function;
  std::vector<Literal> args;
};

std::vector<Run> runs_of(Op op) {
  std::vector<Run> runs;
  for (const OpCase& c : entry(op).cases) {
    const std::vector<Literal> first = c.args(0);
    runs.push_back({c.name, c.function, first});
    if (!c.smooth) continue;
    const std::vector<bool> active = test::float_args(c.function);
    if (std::find(active.begin(), active.end(), true) != active.end()) {
      Run gradient{c.name + ", gradient", test::gradient(c.function, active), first};
      for (std::size_t i = first.size(); i < gradient.function.args().size(); ++i)
        gradient.args.push_back(test::spread(gradient.function.type(gradient.function.args()[i]), -1, 1, i));
      runs.push_back(std::move(gradient));
    }
    if (first.empty()) continue;
    Run batched{c.name + ", batched",
                passes::batch(c.function, std::vector<bool>(first.size(), true), 2).function, {}};
    const std::vector<Literal> second = c.args(1);
    for (std::size_t i = 0; i < first.size(); ++i)
      batched.args.push_back(test::stacked(std::vector<Literal>{first[i], second[i]}));
    runs.push_back(std::move(batched));
  }
  return runs;
}

/// All of them side by side in one function, so that what executes it compiles once.
Run together(std::span<const Run> runs) {
  Builder b("cases");
  Run all;
  std::vector<ValueId> results;
  for (const Run& run : runs) {
    std::vector<ValueId> args;
    for (const Literal& arg : run.args) args.push_back(b.add_arg(arg.type()));
    all.args.insert(all.args.end(), run.args.begin(), run.args.end());
    for (ValueId result : b.inline_body(run.function, args)) results.push_back(result);
  }
  all.function = b.finish(std::move(results));
  return all;
}

}  // namespace

std::vector<std::string> check_executions(Op op, const test::Execute& execute) {
  std::vector<std::string> broken;
  const std::vector<Run> runs = runs_of(op);
  const Run all = together(runs);
  const std::vector<Literal> found = execute(all.function, all.args);
  if (found.size() != all.function.results().size()) return {"another number of results"};
  std::size_t next = 0;
  for (const Run& run : runs) {
    const Accuracy accuracy = accuracy_of(run.function);
    for (const Literal& expected : ir::evaluate(run.function, run.args))
      if (const std::string d = inaccuracy(found[next++], expected, accuracy); !d.empty())
        broken.push_back(run.name + ": " + d);
  }
  return broken;
}

}  // namespace burin::op_cases
