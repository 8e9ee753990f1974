#include "tests/support/transforms.h"

#include <cmath>

#include "base/check.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "tests/support/literals.h"

namespace burin::test {

using namespace ir;

std::vector<bool> float_args(const Function& f) {
  std::vector<bool> flags;
  for (ValueId arg : f.args()) flags.push_back(is_float(f.type(arg).dtype));
  return flags;
}

Function gradient(const Function& f, const std::vector<bool>& active) {
  const passes::Vjp vjp = passes::vjp(f, active);
  Builder b(f.name() + "_gradient");
  std::vector<ValueId> args;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg)));
  std::vector<ValueId> all = b.inline_body(vjp.forward, args);
  const auto n = static_cast<std::ptrdiff_t>(f.results().size());
  std::vector<ValueId> results(all.begin(), all.begin() + n), operands(all.begin() + n, all.end());
  BURIN_CHECK(operands.size() == vjp.num_residuals);
  for (ValueId result : f.results())
    if (is_float(f.type(result).dtype)) operands.push_back(b.add_arg(f.type(result)));
  for (ValueId cotangent : b.inline_body(vjp.pullback, operands)) results.push_back(cotangent);
  return b.finish(std::move(results));
}

namespace {

std::string named(std::string_view what, const std::string& difference) {
  return difference.empty() ? "" : std::string(what) + ": " + difference;
}

std::string first_broken(std::string_view what, const Function& f) { return named(what, verify(f)); }

std::vector<Literal> directions(const Function& f, const std::vector<bool>& active) {
  std::vector<Literal> result;
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) result.push_back(spread(f.type(f.args()[i]), -1, 1, 100 + i));
  return result;
}

std::vector<Literal> moved(std::span<const Literal> args, const std::vector<bool>& active,
                           std::span<const Literal> direction, double step) {
  std::vector<Literal> result(args.begin(), args.end());
  for (std::size_t i = 0, next = 0; i < args.size(); ++i) {
    if (!active[i]) continue;
    for (std::int64_t k = 0; k < args[i].shape().size(); ++k)
      result[i].set(k, args[i].at(k) + step * direction[next].at(k));
    ++next;
  }
  return result;
}

/// By result of f: its derivative along the direction; nothing for results that are not floats.
std::vector<std::vector<double>> differences(const Function& f, std::span<const Literal> args,
                                             const std::vector<bool>& active, std::span<const Literal> direction) {
  const double step = 1e-3;
  const auto central = [&](double h) {
    const std::vector<Literal> up = evaluate(f, moved(args, active, direction, h));
    const std::vector<Literal> down = evaluate(f, moved(args, active, direction, -h));
    std::vector<std::vector<double>> slopes(up.size());
    for (std::size_t r = 0; r < up.size(); ++r)
      if (is_float(up[r].dtype()))
        for (std::int64_t k = 0; k < up[r].shape().size(); ++k)
          slopes[r].push_back(up[r].at(k) == down[r].at(k) ? 0 : (up[r].at(k) - down[r].at(k)) / (2 * h));
    return slopes;
  };
  std::vector<std::vector<double>> coarse = central(step);
  const std::vector<std::vector<double>> fine = central(step / 2);
  for (std::size_t r = 0; r < coarse.size(); ++r)
    for (std::size_t k = 0; k < coarse[r].size(); ++k) coarse[r][k] = (4 * fine[r][k] - coarse[r][k]) / 3;
  return coarse;
}

}  // namespace

std::string check_jvp(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                      double tolerance) {
  const passes::Jvp jvp = passes::jvp(f, active);
  if (std::string broken = first_broken("jvp", jvp.function); !broken.empty()) return broken;
  const std::vector<Literal> direction = directions(f, active);
  std::vector<Literal> operands(args.begin(), args.end());
  operands.insert(operands.end(), direction.begin(), direction.end());
  const std::vector<Literal> found = evaluate(jvp.function, operands), results = evaluate(f, args);
  const std::vector<std::vector<double>> expected = differences(f, args, active, direction);
  std::size_t next = results.size();
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (std::string d = difference(found[r], results[r]); !d.empty()) return named("result under jvp", d);
    if (!is_float(results[r].dtype())) {
      if (jvp.result_active[r]) return "an integer result has a tangent";
      continue;
    }
    const Type type{DType::f64, results[r].shape()};
    Literal tangent(type);
    if (jvp.result_active[r])
      for (std::int64_t k = 0; k < type.size(); ++k) tangent.set(k, found[next].at(k));
    if (jvp.result_active[r] && found[next++].type() != results[r].type()) return "the tangent has another type";
    const std::string d = difference(tangent, from_doubles(type, expected[r]), tolerance);
    if (!d.empty()) return named("tangent of result " + std::to_string(r), d);
  }
  return next == found.size() ? "" : "more tangents than active results";
}

namespace {

/// <cotangents, derivative along the direction>, by jvp or by differences.
double pushed_product(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                      std::span<const Literal> direction, std::span<const Literal> cotangents, bool by_differences) {
  double sum = 0;
  std::size_t next_cotangent = 0;
  if (by_differences) {
    const std::vector<std::vector<double>> slopes = differences(f, args, active, direction);
    for (std::size_t r = 0; r < slopes.size(); ++r) {
      if (!is_float(f.type(f.results()[r]).dtype)) continue;
      const Literal& cotangent = cotangents[next_cotangent++];
      for (std::size_t k = 0; k < slopes[r].size(); ++k) sum += slopes[r][k] * cotangent.at(static_cast<std::int64_t>(k));
    }
    return sum;
  }
  const passes::Jvp jvp = passes::jvp(f, active);
  std::vector<Literal> operands(args.begin(), args.end());
  operands.insert(operands.end(), direction.begin(), direction.end());
  const std::vector<Literal> pushed = evaluate(jvp.function, operands);
  std::size_t next_tangent = f.results().size();
  for (std::size_t r = 0; r < f.results().size(); ++r) {
    if (!is_float(f.type(f.results()[r]).dtype)) continue;
    const Literal& cotangent = cotangents[next_cotangent++];
    if (jvp.result_active[r]) sum += inner_product(std::span(&pushed[next_tangent++], 1), std::span(&cotangent, 1));
  }
  return sum;
}

std::string check_pullback(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                           bool by_differences, double tolerance) {
  const Function pull = gradient(f, active);
  if (std::string broken = first_broken("vjp", pull); !broken.empty()) return broken;
  const std::vector<Literal> direction = directions(f, active);
  std::vector<Literal> backward(args.begin(), args.end()), cotangents;
  for (std::size_t r = 0; r < f.results().size(); ++r) {
    const Type& type = f.type(f.results()[r]);
    if (is_float(type.dtype)) cotangents.push_back(spread(type, -1, 1, 200 + r));
  }
  backward.insert(backward.end(), cotangents.begin(), cotangents.end());
  const std::vector<Literal> pulled = evaluate(pull, backward), results = evaluate(f, args);
  for (std::size_t r = 0; r < results.size(); ++r)
    if (std::string d = difference(pulled[r], results[r]); !d.empty()) return named("result under vjp", d);
  for (std::size_t i = 0, next = results.size(); i < active.size(); ++i)
    if (active[i] && pulled[next++].type() != f.type(f.args()[i])) return "a cotangent has another type than its arg";
  const double pushed = pushed_product(f, args, active, direction, cotangents, by_differences);
  const double back = inner_product(std::span(pulled).subspan(results.size()), direction);
  if (std::abs(pushed - back) <= tolerance * (1 + std::abs(pushed))) return "";
  return "<ct, jvp(t)> is " + std::to_string(pushed) + ", <vjp(ct), t> is " + std::to_string(back);
}

}  // namespace

std::string check_vjp(const Function& f, std::span<const Literal> args, const std::vector<bool>& active) {
  return check_pullback(f, args, active, false, 1e-9);
}

std::string check_vjp_by_differences(const Function& f, std::span<const Literal> args, const std::vector<bool>& active) {
  return check_pullback(f, args, active, true, 1e-6);
}

std::string check_second_order(const Function& f, std::span<const Literal> args, const std::vector<bool>& active,
                               double tolerance) {
  const Function g = gradient(f, active);
  std::vector<Literal> operands(args.begin(), args.end());
  std::vector<bool> flags = active;
  for (std::size_t i = args.size(); i < g.args().size(); ++i) {
    operands.push_back(spread(g.type(g.args()[i]), -1, 1, 300 + i));
    flags.push_back(true);
  }
  if (std::string broken = check_jvp(g, operands, flags, tolerance); !broken.empty())
    return named("jvp of vjp", broken);
  return named("vjp of vjp", check_vjp(g, operands, flags));
}

namespace {

std::vector<Literal> stacked_args(std::span<const std::vector<Literal>> examples, const std::vector<bool>& batched) {
  std::vector<Literal> args;
  for (std::size_t i = 0; i < batched.size(); ++i) {
    std::vector<Literal> column;
    for (const std::vector<Literal>& args_of_one : examples) column.push_back(args_of_one[i]);
    args.push_back(batched[i] ? stacked(column) : examples[0][i]);
  }
  return args;
}

std::vector<Literal> args_of(std::span<const std::vector<Literal>> examples, const std::vector<bool>& batched,
                             std::size_t example) {
  std::vector<Literal> args;
  for (std::size_t i = 0; i < batched.size(); ++i) args.push_back(examples[batched[i] ? example : 0][i]);
  return args;
}

}  // namespace

std::string check_batch(const Function& f, std::span<const std::vector<Literal>> examples,
                        const std::vector<bool>& batched) {
  const auto size = static_cast<std::int64_t>(examples.size());
  const passes::Batched done = passes::batch(f, batched, size);
  if (std::string broken = first_broken("batch", done.function); !broken.empty()) return broken;
  const std::vector<Literal> found = evaluate(done.function, stacked_args(examples, batched));
  for (std::size_t e = 0; e < examples.size(); ++e) {
    const std::vector<Literal> expected = evaluate(f, args_of(examples, batched, e));
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const Literal mine = done.result_batched[r] ? example(found[r], static_cast<std::int64_t>(e)) : found[r];
      if (std::string d = difference(mine, expected[r]); !d.empty())
        return named("example " + std::to_string(e) + ", result " + std::to_string(r), d);
    }
  }
  return "";
}

std::string check_batched_gradient(const Function& f, std::span<const std::vector<Literal>> examples,
                                   const std::vector<bool>& batched, const std::vector<bool>& active) {
  const Function g = gradient(f, active);
  std::vector<std::vector<Literal>> extended(examples.begin(), examples.end());
  std::vector<bool> flags = batched;
  for (std::size_t i = batched.size(); i < g.args().size(); ++i) {
    flags.push_back(true);
    for (std::size_t e = 0; e < extended.size(); ++e)
      extended[e].push_back(spread(g.type(g.args()[i]), -1, 1, 400 + 10 * i + e));
  }
  if (std::string broken = check_batch(g, extended, flags); !broken.empty()) return named("vmap of vjp", broken);

  const passes::Batched both = passes::batch(f, batched, static_cast<std::int64_t>(examples.size()));
  for (std::size_t r = 0; r < f.results().size(); ++r)
    if (!both.result_batched[r]) return "";  // its one cotangent is not the sum of given ones
  const Function of_batch = gradient(both.function, active);
  const std::vector<Literal> found = evaluate(of_batch, stacked_args(extended, flags));
  const std::size_t n = f.results().size();
  for (std::size_t i = 0, k = n; i < batched.size(); ++i) {
    if (!active[i]) continue;
    std::vector<Literal> each;
    for (std::size_t e = 0; e < examples.size(); ++e) each.push_back(evaluate(g, args_of(extended, flags, e))[k]);
    Literal expected = each[0];
    if (batched[i])
      expected = stacked(each);
    else
      for (std::int64_t j = 0; j < expected.shape().size(); ++j) {
        double sum = 0;
        for (const Literal& one : each) sum += one.at(j);
        expected.set(j, sum);
      }
    if (std::string d = difference(found[k], expected, 1e-12); !d.empty())
      return named("vjp of vmap, arg " + std::to_string(i), d);
    ++k;
  }
  return "";
}

std::string check_batch_twice(const Function& f, std::span<const std::vector<Literal>> examples,
                              const std::vector<bool>& batched) {
  // The inner batch is the given one; the outer has it forwards and backwards.
  const passes::Batched inner = passes::batch(f, batched, static_cast<std::int64_t>(examples.size()));
  std::vector<std::vector<Literal>> rows(examples.rbegin(), examples.rend());
  std::vector<std::vector<Literal>> outer = {stacked_args(examples, batched), stacked_args(rows, batched)};
  return named("vmap of vmap", check_batch(inner.function, outer, batched));
}

}  // namespace burin::test
