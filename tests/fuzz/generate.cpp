#include "tests/fuzz/generate.h"

#include <algorithm>

#include "base/error.h"
#include "ir/rewriter.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

std::vector<bool> some_float_args(Random& random, const Function& f) {
  std::vector<bool> active;
  for (ValueId arg : f.args()) active.push_back(is_float(f.type(arg).dtype) && random.chance(0.8));
  return active;
}

std::int64_t largest_value(const Function& f) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < f.num_values(); ++i) largest = std::max(largest, f.type(ValueId{i}).size());
  return largest;
}

// Which of a few transformations to apply, in order; each may refuse.
Function transformed(Random& random, Function f, const Recipe& recipe) {
  const int rounds = random.chance(0.8) ? 1 : 2;
  for (int round = 0; round < rounds && f.num_ops() < 120; ++round) {
    const std::int64_t choice = random.below(4);
    try {
      if (choice == 0) {
        f = tangent_of(f, some_float_args(random, f));
      } else if (choice == 1) {
        const std::int64_t size = random.pick(std::vector<std::int64_t>{1, 2, 3, 5, 0});
        std::vector<bool> batched;
        for (std::size_t i = 0; i < f.args().size(); ++i) batched.push_back(random.chance(0.7));
        if (largest_value(f) * size > 4 * recipe.max_elements) continue;
        f = passes::batch(f, batched, size).function;
      } else {
        f = gradient_of(f, some_float_args(random, f));
      }
    } catch (const Error&) {
      // An op without a derivative or more axes than there are; the program stays as it was.
    }
  }
  return f;
}

}  // namespace

Function generate_plain(std::uint64_t seed, const Recipe& recipe) {
  Random random(seed);
  Generator g(random, recipe, 0);
  // Most programs are small: a failure in one is easy to read, and there are more of them.
  const int most = random.chance(0.7) ? std::min(recipe.max_ops, recipe.min_ops + 9) : recipe.max_ops;
  return with_arguments_first(g.draw(static_cast<int>(random.between(recipe.min_ops, most)), "main"));
}

Function generate(std::uint64_t seed, const Recipe& recipe) {
  Function f = generate_plain(seed, recipe);
  Random random(seed ^ 0x5eedull << 40);
  return recipe.transform && random.chance(0.3) ? with_arguments_first(transformed(random, std::move(f), recipe)) : f;
}

Function gradient_of(const Function& f, const std::vector<bool>& active) {
  const passes::Vjp vjp = passes::vjp(f, active);
  Builder b(f.name());
  std::vector<ValueId> args;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  const std::vector<ValueId> all = b.inline_body(vjp.forward, args);
  const auto n = static_cast<std::ptrdiff_t>(f.results().size());
  std::vector<ValueId> results(all.begin(), all.begin() + n), operands(all.begin() + n, all.end());
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (const Type& type = f.type(f.results()[i]); is_float(type.dtype))
      operands.push_back(b.add_arg(type, "ct" + std::to_string(i)));
  for (ValueId cotangent : b.inline_body(vjp.pullback, operands)) results.push_back(cotangent);
  return b.finish(std::move(results));
}

Function tangent_of(const Function& f, const std::vector<bool>& active) {
  const passes::Jvp jvp = passes::jvp(f, active);
  Builder b(f.name());
  std::vector<ValueId> args;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) args.push_back(b.add_arg(f.type(f.args()[i]), "t" + std::to_string(i)));
  std::vector<ValueId> results = b.inline_body(jvp.function, args);
  std::size_t next = f.results().size();
  std::vector<ValueId> tangents;
  for (std::size_t i = 0; i < f.results().size(); ++i) {
    const Type& type = f.type(f.results()[i]);
    if (!is_float(type.dtype)) continue;
    tangents.push_back(jvp.result_active[i] ? results[next++] : b.full(type, 0));
  }
  results.resize(f.results().size());
  results.insert(results.end(), tangents.begin(), tangents.end());
  return b.finish(std::move(results));
}

Function with_arguments_first(const Function& f) {
  Rewriter rewriter(f);
  f.for_each_op([&](OpId op) { rewriter.copy(op); });
  return rewriter.finish();
}

}  // namespace burin::fuzz
