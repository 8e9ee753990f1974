#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {

using namespace ir;

Function remove_dead(const Function& f) {
  std::vector<bool> live(f.num_values(), false);
  for (ValueId result : f.results()) live[result.index] = true;
  std::vector<bool> keep(f.num_ops(), false);
  std::size_t kept = 0;
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    const OpId op{i};
    bool needed = info(f.kind(op)).effect == Effect::ordered;
    for (std::size_t r = 0; r < f.num_results(op); ++r) needed = needed || live[f.result(op, r).index];
    if (!needed) continue;
    keep[i] = true;
    ++kept;
    for (ValueId operand : f.operands(op)) live[operand.index] = true;
  }
  if (kept == f.num_ops()) return f;
  Rewriter rewriter(f);
  f.for_each_op([&](OpId op) {
    if (keep[op.index]) rewriter.copy(op);
  });
  return rewriter.finish();
}

}  // namespace burin::passes
