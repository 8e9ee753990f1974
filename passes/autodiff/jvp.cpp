// The driver of forward mode: one walk over the ops, tangents only where they are not identically zero.
#include "base/check.h"
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/rules.h"
#include "passes/passes.h"

namespace burin::passes {
namespace autodiff {

Inlined inline_jvp(Builder& b, const Function& f, std::span<const ValueId> primals,
                   std::span<const std::optional<ValueId>> tangents, BackwardTable* backward) {
  std::vector<ValueId> values(f.num_values());
  std::vector<std::optional<ValueId>> dots(f.num_values());
  for (std::size_t i = 0; i < f.args().size(); ++i) {
    values[f.args()[i].index] = primals[i];
    dots[f.args()[i].index] = tangents[i];
  }
  std::vector<ValueId> operands;
  std::vector<std::optional<ValueId>> operand_dots;
  const Location outer = b.current_location();
  f.for_each_op([&](OpId op) {
    operands.clear();
    operand_dots.clear();
    bool active = false;
    for (ValueId operand : f.operands(op)) {
      operands.push_back(values[operand.index]);
      operand_dots.push_back(dots[operand.index]);
      active |= operand_dots.back().has_value();
    }
    b.set_location(f.location(op));
    JvpContext c(b, f, op, operands, operand_dots, backward);
    if (active)
      with_tag(f.kind(op), [&](auto tag) { jvp(tag, c); });
    else
      c.emit_primal();
    for (std::size_t r = 0; r < f.num_results(op); ++r) {
      values[f.result(op, r).index] = c.results[r];
      if (r < c.result_tangents.size()) dots[f.result(op, r).index] = c.result_tangents[r];
    }
  });
  b.set_location(outer);
  Inlined done;
  for (ValueId result : f.results()) {
    done.results.push_back(values[result.index]);
    done.tangents.push_back(dots[result.index]);
  }
  return done;
}

}  // namespace autodiff

using namespace autodiff;

Jvp jvp(const Function& f, const std::vector<bool>& active) {
  check_opened_size(f);
  Builder b(f.name() + "_jvp");
  std::vector<ValueId> primals;
  std::vector<std::optional<ValueId>> tangents(f.args().size());
  for (ValueId arg : f.args()) primals.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  for (std::size_t i = 0; i < primals.size(); ++i)
    if (active[i]) {
      BURIN_CHECK(is_float(b.type(primals[i]).dtype));
      tangents[i] = b.add_arg(b.type(primals[i]));
    }
  Inlined done = inline_jvp(b, f, primals, tangents, nullptr);
  Jvp result;
  std::vector<ValueId> results = done.results;
  for (const auto& t : done.tangents) {
    result.result_active.push_back(t.has_value());
    if (t) results.push_back(*t);
  }
  result.function = b.finish(std::move(results));
  return result;
}

}  // namespace burin::passes
