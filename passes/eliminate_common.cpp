#include <unordered_map>

#include "ir/builder.h"
#include "passes/passes.h"

namespace burin::passes {

using namespace ir;

Function eliminate_common(const Function& f) {
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args()) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  std::unordered_map<Hash128, OpId> seen;  // in the function being built
  f.for_each_op([&](OpId op) {
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    // A barrier stands for a moment: two of them are two moments.
    const bool mergeable = info(f.kind(op)).effect == Effect::none && f.kind(op) != Op::optimization_barrier;
    Hash128 key;
    if (mergeable) {
      Hasher hasher;
      hasher.add(f.kind(op));
      for (ValueId operand : operands) hasher.add(operand.index);
      for (const AttrValue& value : f.attributes(op)) hash_attribute(hasher, value);
      key = hasher.finish();
      if (const auto found = seen.find(key); found != seen.end()) {
        for (std::size_t r = 0; r < f.num_results(op); ++r)
          map[f.result(op, r).index] = b.function().result(found->second, r);
        return;
      }
    }
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
    if (mergeable) seen.emplace(key, b.function().def(first));
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return b.finish(std::move(results));
}

}  // namespace burin::passes
