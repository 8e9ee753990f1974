// Reverse mode: jvp, split at the ops that depend on a tangent, transpose those.
#include "base/check.h"
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/rules.h"
#include "passes/passes.h"

namespace burin::passes {
namespace autodiff {

std::vector<bool> depends_on(const Function& f, const std::vector<bool>& args) {
  std::vector<bool> depends(f.num_values(), false);
  for (std::size_t i = 0; i < args.size(); ++i) depends[f.args()[i].index] = args[i];
  f.for_each_op([&](OpId op) {
    bool any = false;
    for (ValueId operand : f.operands(op)) any = any || depends[operand.index];
    for (std::size_t r = 0; r < f.num_results(op); ++r) depends[f.result(op, r).index] = any;
  });
  return depends;
}

std::vector<std::optional<ValueId>> transpose_ops(Builder& b, const Function& f, const std::vector<bool>& linear_values,
                                                  std::span<const ValueId> values,
                                                  std::span<const std::optional<ValueId>> result_cotangents,
                                                  const BackwardTable& backward) {
  std::vector<std::optional<ValueId>> cotangents(f.num_values());
  const auto accumulate = [&](ValueId value, ValueId ct) {
    auto& slot = cotangents[value.index];
    slot = slot ? b.add(*slot, ct) : ct;
  };
  for (std::size_t i = 0; i < f.results().size(); ++i)
    if (result_cotangents[i] && linear_values[f.results()[i].index]) accumulate(f.results()[i], *result_cotangents[i]);
  const Location outer = b.current_location();
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    const OpId op{i};
    if (f.num_results(op) == 0 || !linear_values[f.result(op).index]) continue;
    TransposeContext c(b, f, op);
    bool any = false;
    for (std::size_t r = 0; r < f.num_results(op); ++r) {
      c.cotangents.push_back(cotangents[f.result(op, r).index]);
      any = any || c.cotangents.back();
    }
    if (!any) continue;
    for (ValueId operand : f.operands(op)) {
      c.linear.push_back(linear_values[operand.index]);
      c.operands.push_back(linear_values[operand.index] ? ValueId{} : values[operand.index]);
    }
    c.operand_cotangents.resize(c.linear.size());
    c.backward = &backward;
    b.set_location(f.location(op));
    with_tag(f.kind(op), [&](auto tag) { transpose(tag, c); });
    for (std::size_t k = 0; k < c.linear.size(); ++k)
      if (c.linear[k] && c.operand_cotangents[k]) accumulate(f.operand(op, k), *c.operand_cotangents[k]);
  }
  b.set_location(outer);
  std::vector<std::optional<ValueId>> done;
  for (ValueId arg : f.args()) done.push_back(cotangents[arg.index]);
  return done;
}

}  // namespace autodiff

using namespace autodiff;

Vjp vjp(const Function& f, const std::vector<bool>& active) {
  check_opened_size(f);
  const std::size_t num_args = f.args().size(), num_results = f.results().size();
  BackwardTable backward;
  // Forward mode first: args, then tangents of the active ones.
  Builder b(f.name() + "_jvp");
  std::vector<ValueId> primals;
  std::vector<std::optional<ValueId>> tangents(num_args);
  for (ValueId arg : f.args()) primals.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  std::vector<bool> is_tangent(num_args, false);
  for (std::size_t i = 0; i < num_args; ++i)
    if (active[i]) {
      BURIN_CHECK(is_float(b.type(primals[i]).dtype));
      tangents[i] = b.add_arg(b.type(primals[i]));
      is_tangent.push_back(true);
    }
  const Inlined inlined = inline_jvp(b, f, primals, tangents, &backward);
  std::vector<ValueId> results = inlined.results;
  for (const auto& t : inlined.tangents)
    if (t) results.push_back(*t);
  const Function both = gather_factors(b.finish(results), is_tangent);
  const std::vector<bool> linear = depends_on(both, is_tangent);

  // Residuals: what linear ops read and is not linear itself, but for constants and the like, which are made again.
  std::vector<ValueId> residuals, remade;
  std::vector<bool> is_residual(both.num_values(), false);
  both.for_each_op([&](OpId op) {
    if (both.num_results(op) == 0 || !linear[both.result(op).index]) return;
    for (ValueId operand : both.operands(op))
      if (!linear[operand.index] && !is_residual[operand.index]) {
        is_residual[operand.index] = true;
        const Op kind = both.is_arg(operand) ? Op::add : both.kind(both.def(operand));
        const bool anew = kind == Op::constant || kind == Op::iota;
        (anew ? remade : residuals).push_back(operand);
      }
  });

  Vjp done;
  Builder forward(f.name() + "_forward");
  std::vector<ValueId> map(both.num_values());
  for (std::size_t i = 0; i < num_args; ++i)
    map[both.args()[i].index] = forward.add_arg(both.type(both.args()[i]), both.value_name(both.args()[i]));
  std::vector<ValueId> operands;
  both.for_each_op([&](OpId op) {
    if (both.num_results(op) > 0 && linear[both.result(op).index]) return;
    operands.clear();
    for (ValueId operand : both.operands(op)) operands.push_back(map[operand.index]);
    const ValueId first = forward.append_copy(both, op, operands);
    for (std::size_t r = 0; r < both.num_results(op); ++r) map[both.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> forward_results;
  for (std::size_t i = 0; i < num_results; ++i) forward_results.push_back(map[both.results()[i].index]);
  for (ValueId residual : residuals) forward_results.push_back(map[residual.index]);
  done.num_residuals = residuals.size();
  done.forward = forward.finish(std::move(forward_results));

  Builder pullback(f.name() + "_pullback");
  std::vector<ValueId> values(both.num_values());
  for (ValueId residual : residuals) values[residual.index] = pullback.add_arg(both.type(residual));
  for (ValueId value : remade) values[value.index] = pullback.append_copy(both, both.def(value), {});
  std::vector<std::optional<ValueId>> cotangents(num_results);  // primal results first, then tangents
  for (std::size_t i = 0; i < num_results; ++i)
    if (const Type& type = both.type(both.results()[i]); is_float(type.dtype)) {
      const ValueId ct = pullback.add_arg(type);
      if (inlined.tangents[i]) cotangents.push_back(ct);
    } else if (inlined.tangents[i]) {
      BURIN_CHECK(false, "an integer result has a tangent");
    }
  const auto arg_cotangents = transpose_ops(pullback, both, linear, values, cotangents, backward);
  std::vector<ValueId> pullback_results;
  for (std::size_t i = 0, next = num_args; i < num_args; ++i) {
    if (!active[i]) continue;
    const auto& ct = arg_cotangents[next++];
    pullback_results.push_back(ct ? *ct : pullback.full(f.type(f.args()[i]), 0));
  }
  done.pullback = pullback.finish(std::move(pullback_results));
  return done;
}

}  // namespace burin::passes
