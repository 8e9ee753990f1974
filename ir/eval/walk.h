// One step per op through a Function, over whatever stands for its values: literals, or bounds of them.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "ir/function.h"

namespace burin::ir {

/// The results of f, given what stands for its arguments. `rule(op, operands, result_types)` gives what stands for the
/// results of one op. A value is forgotten with its last use.
template <class V, class Rule>
std::vector<V> walk(const Function& f, std::span<const V> args, Rule&& rule) {
  std::vector<V> values(f.num_values());
  for (std::size_t i = 0; i < args.size(); ++i) values[f.args()[i].index] = args[i];
  std::vector<std::uint32_t> uses = use_counts(f);
  std::vector<V> operands;
  std::vector<Type> types;
  f.for_each_op([&](OpId op) {
    operands.clear();
    types.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(values[operand.index]);
    for (std::size_t i = 0; i < f.num_results(op); ++i) types.push_back(f.type(f.result(op, i)));
    std::vector<V> results = rule(op, std::span<const V>(operands), std::span<const Type>(types));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const ValueId result = f.result(op, i); uses[result.index] > 0) values[result.index] = std::move(results[i]);
    for (ValueId operand : f.operands(op))
      if (--uses[operand.index] == 0) values[operand.index] = V{};
  });
  std::vector<V> results;
  for (ValueId result : f.results()) results.push_back(values[result.index]);
  return results;
}

}  // namespace burin::ir
