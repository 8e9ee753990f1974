// One sweep: operands are simplified before their users, and what a rule builds goes through the rules again, so that the sweep
// ends at a fixpoint.
#include "base/check.h"
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace burin::passes {
namespace {

using namespace ir;
using rewrite::Rewrite;
using rewrite::Site;

Rewrite rewrite_one(const Site& site) {
  if (site.op == Op::stop_gradient) return site.operands[0];
  switch (family_of(site.op)) {
    case Family::elementwise: return rewrite::arithmetic(site);
    case Family::movement:
    case Family::reduce: return rewrite::movement(site);
    case Family::index: return rewrite::index(site);
    default: return {};
  }
}

Function sweep(const Function& f, bool* changed) {
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args()) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  f.for_each_op([&](OpId op) {
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    if (f.num_results(op) == 1) {
      b.set_location(f.location(op));
      const std::vector<Type> types = {f.type(f.result(op))};
      if (const Rewrite value = rewrite_one({b, f.kind(op), operands, f.attributes(op), types})) {
        BURIN_CHECK(b.type(*value) == types[0], "a rewrite of another type");
        map[f.result(op).index] = *value;
        *changed = true;
        return;
      }
    }
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return b.finish(std::move(results));
}

}  // namespace

ir::Function simplify(const ir::Function& f) {
  bool changed = false;
  Function now = sweep(f, &changed);
  // What a rule appended is seen by the next sweep; every rewrite removes an op or shortens a chain, so few are needed.
  for (int round = 0; changed && round < 8; ++round) {
    changed = false;
    now = sweep(remove_dead(now), &changed);
  }
  return now;
}

}  // namespace burin::passes
