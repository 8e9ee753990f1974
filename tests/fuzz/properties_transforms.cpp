// Properties of differentiation and batching, by the evaluator.
#include <cmath>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/inputs.h"
#include "tests/fuzz/properties.h"

namespace burin::fuzz {

using namespace ir;

namespace {

/// Sum over all elements of the products, in f64; zero for no pair.
ValueId inner_product(Builder& b, const std::vector<ValueId>& x, const std::vector<ValueId>& y) {
  ValueId sum = b.full({f64, {}}, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    Ints axes;
    for (std::size_t axis = 0; axis < b.type(x[i]).rank(); ++axis) axes.push_back(static_cast<Int>(axis));
    sum = b.add(sum, b.reduce(Op::reduce_sum, b.mul(b.convert(x[i], f64), b.convert(y[i], f64)), axes));
  }
  return sum;
}

// Does a custom_vjp stand in it, in the body of an op too? Then there is no jvp.
bool has_custom_vjp(const Function& f) {
  bool found = false;
  f.for_each_op([&](OpId op) {
    found = found || f.kind(op) == Op::custom_vjp;
    for (const AttrValue& attribute : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&attribute)) found = found || has_custom_vjp(**body);
  });
  return found;
}

}  // namespace

// The difference of the two products is zero in exact arithmetic, so zero lies in the interval that the error model
// gives it.
std::string check_transpose(Case& c) {
  const Function& f = c.f();
  if (has_custom_vjp(f) || f.num_ops() > 60) return "";
  std::vector<bool> active;
  for (ValueId arg : f.args())
    active.push_back(is_float(f.type(arg).dtype) && (c.seed() >> (active.size() % 20) & 3) != 0);
  Function forward, backward;
  try {
    forward = tangent_of(f, active);
    backward = gradient_of(f, active);
  } catch (const Error& error) {
    return std::string(error.what()).find("not differentiable") != std::string::npos ? "" : error.what();
  }
  Builder b("difference");
  std::vector<ValueId> args, tangents, cotangents;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) tangents.push_back(b.add_arg(f.type(f.args()[i]), "t" + std::to_string(i)));
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (const Type& type = f.type(f.results()[i]); is_float(type.dtype))
      cotangents.push_back(b.add_arg(type, "ct" + std::to_string(i)));
  const auto apply = [&](const Function& g, const std::vector<ValueId>& more) {
    std::vector<ValueId> operands = args;
    operands.insert(operands.end(), more.begin(), more.end());
    std::vector<ValueId> all = b.inline_body(g, operands);
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(f.results().size()));
    return all;
  };
  const std::vector<ValueId> pushed = apply(forward, tangents), pulled = apply(backward, cotangents);
  if (pushed.size() != cotangents.size() || pulled.size() != tangents.size())
    return "another number of tangents or cotangents";
  const ValueId x = inner_product(b, cotangents, pushed), y = inner_product(b, pulled, tangents);
  const Function difference = b.finish({b.sub(x, y), x, y});
  if (std::string broken = verify(difference); !broken.empty()) return broken;
  std::vector<Enclosure> operands;
  for (const Literal& input : draw_inputs(difference, c.seed(), true)) operands.push_back(exactly(input));
  Model model;
  model.real_numbers = true;
  try {
    const std::vector<Enclosure> results = enclose(difference, operands, model);
    const Enclosure& zero = results[0];
    if (!model.unsure.empty() || zero.is_free(0) || std::isnan(zero.value.at(0))) return "";
    if (zero.low.at(0) <= 0 && 0 <= zero.high.at(0)) return "";
    return "<cotangent, jvp> = " + std::to_string(results[1].value.at(0)) +
           ", <vjp, tangent> = " + std::to_string(results[2].value.at(0)) + ", their difference lies in " +
           std::to_string(zero.low.at(0)) + " .. " + std::to_string(zero.high.at(0));
  } catch (const Error&) {
    return "";  // an index out of range
  }
}

std::string check_batch(Case& c) {
  constexpr std::int64_t size = 3;
  const Function& f = c.f();
  std::vector<bool> batched;
  for (std::size_t i = 0; i < f.args().size(); ++i) batched.push_back((c.seed() >> (2 * i) & 3) != 0);
  passes::Batched batch;
  try {
    batch = passes::batch(f, batched, size);
  } catch (const Error& error) {
    // The one thing that may be refused: more than 8 axes.
    return std::string(error.what()).find("8") != std::string::npos ? "" : error.what();
  }
  if (std::string broken = verify(batch.function); !broken.empty()) return broken;
  std::vector<std::vector<Literal>> examples;
  for (std::int64_t k = 0; k < size; ++k) examples.push_back(draw_inputs(f, c.seed() + static_cast<std::uint64_t>(k)));
  std::vector<Literal> together;
  for (std::size_t i = 0; i < batched.size(); ++i) {
    for (auto& example : examples)
      if (!batched[i]) example[i] = examples[0][i];
    if (!batched[i]) {
      together.push_back(examples[0][i]);
      continue;
    }
    Literal stacked(batch.function.type(batch.function.args()[i]));
    std::span<std::byte> bytes = stacked.mutable_raw();
    for (std::int64_t k = 0; k < size; ++k) {
      const auto from = examples[static_cast<std::size_t>(k)][i].raw();
      std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from.size()) * k);
    }
    together.push_back(stacked);
  }
  const Outcome found = evaluated(batch.function, together);
  std::vector<Literal> stacked;
  for (std::size_t r = 0; r < f.results().size(); ++r)
    stacked.emplace_back(batch.function.type(batch.function.results()[r]));
  for (std::int64_t k = 0; k < size; ++k) {
    const Outcome one = evaluated(f, examples[static_cast<std::size_t>(k)]);
    if (!one.error.empty()) return found.error.empty() ? "no error instead of: " + one.error : "";
    for (std::size_t r = 0; r < stacked.size(); ++r) {
      Literal value = one.results[r];
      value.expand();
      if (!batch.result_batched[r]) {
        stacked[r] = value;
        continue;
      }
      std::span<std::byte> bytes = stacked[r].mutable_raw();
      std::copy(value.raw().begin(), value.raw().end(),
                bytes.begin() + static_cast<std::ptrdiff_t>(value.raw().size()) * k);
    }
  }
  return wrong(found, Outcome{stacked, ""});
}

}  // namespace burin::fuzz
