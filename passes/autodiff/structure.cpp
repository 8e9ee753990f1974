// Ops that hold functions. call, composite and fusion are differentiated through their bodies; checkpoint keeps its operands
// and differentiates its body again on the way back; custom rules bring their own derivative.
#include <algorithm>

#include "base/check.h"
#include "base/message_ids.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {
namespace {

constexpr std::string_view backward_prefix = "custom_vjp_tangent:";

std::vector<ValueId> results_of(const Function& f, OpId op, ValueId first) {
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < f.num_results(op); ++i) results.push_back(ValueId{first.index + i});
  return results;
}

/// The body of an op that means exactly a body; null for other ops.
Body plain_body(const Function& f, OpId op) {
  switch (f.kind(op)) {
    case Op::call: return f.attrs<Op::call>(op).body;
    case Op::composite: return f.attrs<Op::composite>(op).body;
    case Op::custom_jvp: return f.attrs<Op::custom_jvp>(op).body;
    case Op::custom_vjp: return f.attrs<Op::custom_vjp>(op).body;
    case Op::checkpoint: return f.attrs<Op::checkpoint>(op).body;
    case Op::fusion: return f.attrs<Op::fusion>(op).body;
    default: return nullptr;
  }
}

/// Appends `rule`, some of whose arguments are tangents. What is done to tangents is spelled out op by op,
/// bodies opened, so that primal and tangent results of one op come apart.
std::vector<ValueId> inline_rule(Builder& b, const Function& rule, std::span<const ValueId> operands,
                                 const std::vector<bool>& tangent) {
  std::vector<ValueId> map(rule.num_values());
  for (std::size_t i = 0; i < operands.size(); ++i) map[rule.args()[i].index] = operands[i];
  const std::vector<bool> linear = depends_on(rule, tangent);
  std::vector<ValueId> mapped;
  std::vector<bool> flags;
  rule.for_each_op([&](OpId op) {
    mapped.clear();
    flags.clear();
    for (ValueId operand : rule.operands(op)) {
      mapped.push_back(map[operand.index]);
      flags.push_back(linear[operand.index]);
    }
    const bool on_tangents = std::find(flags.begin(), flags.end(), true) != flags.end();
    std::vector<ValueId> results;
    if (const Body body = on_tangents ? plain_body(rule, op) : nullptr)
      results = inline_rule(b, *body, mapped, flags);
    else
      results = results_of(rule, op, b.append_copy(rule, op, mapped));
    for (std::size_t r = 0; r < results.size(); ++r) map[rule.result(op, r).index] = results[r];
  });
  std::vector<ValueId> results;
  for (ValueId result : rule.results()) results.push_back(map[result.index]);
  return results;
}

/// The body with each custom_vjp in it, however deep, replaced by its forward function; the body itself when it has none.
Body with_forward(const Body& body) {
  Builder b(body->name());
  bool changed = false;
  std::vector<ValueId> map(body->num_values()), mapped;
  for (ValueId arg : body->args()) map[arg.index] = b.add_arg(body->type(arg), body->value_name(arg));
  body->for_each_op([&](OpId op) {
    mapped.clear();
    for (ValueId operand : body->operands(op)) mapped.push_back(map[operand.index]);
    std::vector<ValueId> results;
    b.set_location(body->location(op));
    if (body->kind(op) == Op::custom_vjp) {
      results = b.inline_body(*body->attrs<Op::custom_vjp>(op).forward, mapped);
      changed = true;
    } else if (const Body inner = plain_body(*body, op)) {
      std::vector<AttrValue> attributes(body->attributes(op).begin(), body->attributes(op).end());
      for (AttrValue& value : attributes)
        if (Body* held = std::get_if<Body>(&value); held && *held == inner) {
          *held = with_forward(inner);
          changed |= *held != inner;
        }
      results = b.call(body->kind(op), mapped, std::move(attributes));
    } else {
      results = results_of(*body, op, b.append_copy(*body, op, mapped));
    }
    for (std::size_t r = 0; r < body->num_results(op); ++r) map[body->result(op, r).index] = results[r];
  });
  if (!changed) return body;
  std::vector<ValueId> results;
  for (ValueId result : body->results()) results.push_back(map[result.index]);
  return std::make_shared<const Function>(b.finish(std::move(results)));
}

}  // namespace

void jvp_inlined(JvpContext& c, const Body& body) {
  std::vector<std::optional<ValueId>> tangents;
  for (std::size_t i = 0; i < c.size(); ++i) tangents.push_back(c.tangent(i));
  Inlined done = inline_jvp(c.b, *body, c.primals(), tangents, c.backward);
  c.results = std::move(done.results);
  c.result_tangents = std::move(done.tangents);
}

void jvp(Tag<Op::custom_jvp>, JvpContext& c) {
  const attrs::custom_jvp a = c.attrs<Op::custom_jvp>();
  std::vector<ValueId> operands(c.primals().begin(), c.primals().end());
  std::vector<bool> tangent(c.size(), false);
  for (std::size_t i = 0; i < c.size(); ++i)
    if (is_float(c.b.type(c.primal(i)).dtype)) {
      operands.push_back(c.tangent_or_zeros(i));
      tangent.push_back(true);
    }
  const Location outer = c.b.current_location();
  const std::vector<ValueId> all = inline_rule(c.b, *a.jvp, operands, tangent);
  c.b.set_location(outer);
  const std::size_t n = c.source.num_results(c.op);
  c.results.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
  std::size_t next = n;
  for (std::size_t i = 0; i < n; ++i)
    if (is_float(c.b.type(c.results[i]).dtype)) c.add_tangent(i, all[next++]);
}

// In reverse mode the results come from `forward`; their tangents from a stand-in that only its transpose, `backward`, gives a
// meaning. Under plain jvp nobody knows the tangent.
void jvp(Tag<Op::custom_vjp>, JvpContext& c) {
  const attrs::custom_vjp a = c.attrs<Op::custom_vjp>();
  if (c.backward == nullptr)
    fail_at(to_string(c.source.location(c.op)), Msg::custom_vjp_under_jvp, a.body->name());
  const std::vector<ValueId> all = c.b.inline_body(*a.forward, c.primals());
  const std::size_t n = c.source.num_results(c.op);
  c.results.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));

  const auto has_tangent = [&](ValueId result) { return is_float(c.b.type(result).dtype); };
  if (std::none_of(c.results.begin(), c.results.end(), has_tangent)) return;

  const std::string key = std::string(backward_prefix) + std::to_string(c.backward->size());
  c.backward->emplace(key, a.backward);
  std::vector<ValueId> operands(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());  // residuals, then tangents
  for (std::size_t i = 0; i < c.size(); ++i)
    if (is_float(c.b.type(c.primal(i)).dtype)) operands.push_back(c.tangent_or_zeros(i));
  Builder stand_in(key);
  std::vector<ValueId> zeros;
  for (ValueId operand : operands) stand_in.add_arg(c.b.type(operand));
  std::vector<std::size_t> float_results;
  for (std::size_t i = 0; i < n; ++i)
    if (is_float(c.b.type(c.results[i]).dtype)) {
      zeros.push_back(stand_in.full(c.b.type(c.results[i]), 0));
      float_results.push_back(i);
    }
  const Body body = std::make_shared<const Function>(stand_in.finish(zeros));
  const std::vector<ValueId> tangents = c.b.call(Op::composite, operands, {Str(key), body});
  for (std::size_t i = 0; i < float_results.size(); ++i) c.add_tangent(float_results[i], tangents[i]);
}

void transpose(Tag<Op::composite>, TransposeContext& c) {
  const attrs::composite a = c.attrs<Op::composite>();
  const auto found = c.backward->find(a.name);
  BURIN_CHECK(found != c.backward->end(), "no transpose of composite " + a.name);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.linear.size(); ++i)
    if (!c.linear[i]) operands.push_back(c.operands[i]);
  // Zero tangents made explicit are not linear: they sit behind the residuals and are not passed on.
  const std::size_t num_residuals = found->second->args().size() - c.cotangents.size();
  operands.resize(num_residuals);
  for (std::size_t r = 0; r < c.cotangents.size(); ++r) operands.push_back(c.ct(r));
  const std::vector<ValueId> cotangents = c.b.inline_body(*found->second, operands);
  // One cotangent per float operand of the call, in order; those operands are the last of the stand-in.
  const std::size_t first = c.linear.size() - cotangents.size();
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    if (c.linear[first + i]) c.give(first + i, cotangents[i]);
}

// Forward: the body runs as it is and its tangents are one checkpoint op over (operands, tangents), so that reverse mode finds
// nothing to keep but the operands.
void jvp(Tag<Op::checkpoint>, JvpContext& c) {
  const Body body = c.attrs<Op::checkpoint>().body;
  c.results = c.b.call(Op::checkpoint, c.primals(), {c.backward ? with_forward(body) : body});
  Builder inner(body->name() + "_tangents");
  std::vector<ValueId> primals;
  std::vector<std::optional<ValueId>> tangents(c.size());
  std::vector<ValueId> operands(c.primals().begin(), c.primals().end());
  for (std::size_t i = 0; i < c.size(); ++i) primals.push_back(inner.add_arg(c.b.type(c.primal(i))));
  for (std::size_t i = 0; i < c.size(); ++i)
    if (c.tangent(i)) {
      tangents[i] = inner.add_arg(c.b.type(c.primal(i)));
      operands.push_back(*c.tangent(i));
    }
  const Inlined done = inline_jvp(inner, *body, primals, tangents, c.backward);
  std::vector<ValueId> results;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < done.tangents.size(); ++i)
    if (done.tangents[i]) {
      results.push_back(*done.tangents[i]);
      which.push_back(i);
    }
  if (results.empty()) return;
  const Body tangent_body = std::make_shared<const Function>(inner.finish(results));
  const std::vector<ValueId> outs = c.b.call(Op::checkpoint, operands, {tangent_body});
  for (std::size_t i = 0; i < which.size(); ++i) c.add_tangent(which[i], outs[i]);
}

void transpose(Tag<Op::checkpoint>, TransposeContext& c) {
  Builder& b = c.b;
  const Body body = c.attrs<Op::checkpoint>().body;
  std::vector<bool> linear_args(c.linear.begin(), c.linear.end());
  const std::vector<bool> linear = depends_on(*body, linear_args);
  // The recomputation starts from the operands as they leave a barrier that the incoming cotangents enter too: it cannot
  // be merged with the forward computation nor moved before the cotangents are there.
  std::vector<ValueId> through;
  for (std::size_t i = 0; i < c.linear.size(); ++i)
    if (!c.linear[i]) through.push_back(c.operands[i]);
  const std::size_t num_operands = through.size();
  for (std::size_t r = 0; r < c.cotangents.size(); ++r) through.push_back(c.ct(r));
  const std::vector<ValueId> out = b.call(Op::optimization_barrier, through, {});
  std::vector<ValueId> values(body->num_values());
  std::size_t next = 0;
  for (std::size_t i = 0; i < c.linear.size(); ++i)
    if (!c.linear[i]) values[body->args()[i].index] = out[next++];
  std::vector<ValueId> operands;
  body->for_each_op([&](OpId op) {
    if (body->num_results(op) > 0 && linear[body->result(op).index]) return;
    operands.clear();
    for (ValueId operand : body->operands(op)) operands.push_back(values[operand.index]);
    const std::vector<ValueId> results = results_of(*body, op, b.append_copy(*body, op, operands));
    for (std::size_t r = 0; r < results.size(); ++r) values[body->result(op, r).index] = results[r];
  });
  std::vector<std::optional<ValueId>> cotangents;
  for (std::size_t r = 0; r < c.cotangents.size(); ++r) cotangents.push_back(out[num_operands + r]);
  const auto given = transpose_ops(b, *body, linear, values, cotangents, *c.backward);
  for (std::size_t i = 0; i < c.linear.size(); ++i)
    if (c.linear[i] && given[i]) c.give(i, *given[i]);
}

void jvp(Tag<Op::optimization_barrier>, JvpContext& c) {
  c.emit_primal();
  std::vector<ValueId> tangents;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < c.size(); ++i)
    if (c.tangent(i)) {
      tangents.push_back(*c.tangent(i));
      which.push_back(i);
    }
  const std::vector<ValueId> outs = c.b.call(Op::optimization_barrier, tangents, {});
  for (std::size_t i = 0; i < which.size(); ++i) c.add_tangent(which[i], outs[i]);
}

void transpose(Tag<Op::optimization_barrier>, TransposeContext& c) {
  std::vector<ValueId> cotangents;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < c.linear.size(); ++i)
    if (c.linear[i] && c.cotangents[i]) {
      cotangents.push_back(*c.cotangents[i]);
      which.push_back(i);
    }
  const std::vector<ValueId> outs = c.b.call(Op::optimization_barrier, cotangents, {});
  for (std::size_t i = 0; i < which.size(); ++i) c.give(which[i], outs[i]);
}

}  // namespace burin::passes::autodiff
