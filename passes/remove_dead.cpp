#include "ir/builder.h"
#include "passes/passes.h"

namespace burin::passes {

using namespace ir;

Function remove_dead(const Function& f) {
  std::vector<bool> live(f.num_values(), false);
  for (ValueId result : f.results()) live[result.index] = true;
  std::vector<bool> keep(f.num_ops(), false);
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    const OpId op{i};
    bool needed = info(f.kind(op)).effect == Effect::ordered;
    for (std::size_t r = 0; r < f.num_results(op); ++r) needed = needed || live[f.result(op, r).index];
    if (!needed) continue;
    keep[i] = true;
    for (ValueId operand : f.operands(op)) live[operand.index] = true;
  }
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args()) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  f.for_each_op([&](OpId op) {
    if (!keep[op.index]) return;
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return b.finish(std::move(results));
}

}  // namespace burin::passes
