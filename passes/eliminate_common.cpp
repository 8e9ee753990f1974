#include <unordered_map>

#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {

using namespace ir;

Function eliminate_common(const Function& f) {
  std::unordered_map<Hash128, OpId> seen(f.num_ops());
  std::vector<ValueId> same(f.num_values());  // the first value equal to each
  for (std::size_t v = 0; v < same.size(); ++v) same[v] = ValueId{v};
  std::vector<OpId> first(f.num_ops());
  bool any = false;
  f.for_each_op([&](OpId op) {
    first[op.index] = op;
    // A barrier stands for a moment: two of them are two moments.
    if (info(f.kind(op)).effect != Effect::none || f.kind(op) == Op::optimization_barrier || f.num_results(op) == 0) return;
    Hasher hasher;
    hasher.add(f.kind(op));
    hasher.add(f.operands(op).size());
    for (ValueId operand : f.operands(op)) hasher.add(same[operand.index].index);
    for (const AttrValue& value : f.attributes(op)) hash_attribute(hasher, value);
    const auto [found, added] = seen.try_emplace(hasher.finish(), op);
    if (added) return;
    any = true;
    first[op.index] = found->second;
    for (std::size_t r = 0; r < f.num_results(op); ++r) same[f.result(op, r).index] = f.result(found->second, r);
  });
  if (!any) return f;
  Rewriter rewriter(f);
  f.for_each_op([&](OpId op) {
    if (first[op.index] == op)
      rewriter.copy(op);
    else
      rewriter.replace_results(op, rewriter[f.result(first[op.index])]);
  });
  return rewriter.finish();
}

}  // namespace burin::passes
