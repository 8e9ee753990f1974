// One sweep: operands are simplified before their users, and what a rule builds goes through the rules again, so that the sweep
// ends at a fixpoint.
#include <fmt/format.h>

#include "base/check.h"
#include "ir/rewriter.h"
#include "passes/passes.h"
#include "passes/simplify/rules.h"

namespace burin::passes {
namespace {

using namespace ir;
using rewrite::Rewrite;
using rewrite::Site;

std::string_view rules_of(Op op) {
  switch (family_of(op)) {
    case Family::elementwise: return "arithmetic";
    case Family::index: return "index";
    default: return "movement";
  }
}

std::string description(const Function& f, OpId op, const Builder& b, ValueId now) {
  const std::string where = to_string(f.location(op));
  const OpId def = b.function().def(now);
  return fmt::format("{}: {}{} becomes {}", rules_of(f.kind(op)), name(f.kind(op)), where.empty() ? "" : " (" + where + ")",
                     def.valid() ? name(b.function().kind(def)) : "an argument");
}

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

Function sweep(const Function& f, const MayRewrite& may_rewrite, bool* changed) {
  Rewriter rewriter(f);
  Builder& b = rewriter.b;
  f.for_each_op([&](OpId op) {
    if (f.num_results(op) == 1) {
      b.set_location(f.location(op));
      const std::vector<Type> types = {f.type(f.result(op))};
      const Rewrite value = rewrite_one({b, f.kind(op), rewriter.operands(op), f.attributes(op), types});
      if (value && (!may_rewrite || may_rewrite(description(f, op, b, *value)))) {
        BURIN_CHECK(b.type(*value) == types[0], "a rewrite of another type");
        rewriter.replace(f.result(op), *value);
        *changed = true;
        return;
      }
    }
    rewriter.copy(op);
  });
  return rewriter.finish();
}

}  // namespace

ir::Function simplify(const ir::Function& f, const MayRewrite& may_rewrite) {
  bool changed = false;
  Function now = sweep(f, may_rewrite, &changed);
  // What a rule appended is seen by the next sweep; every rewrite removes an op or shortens a chain, so few are needed.
  for (int round = 0; changed && round < 8; ++round) {
    changed = false;
    now = sweep(remove_dead(now), may_rewrite, &changed);
  }
  return now;
}

}  // namespace burin::passes
