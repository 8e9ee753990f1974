// Ops whose derivative the user wrote: the bodies of such an op get one common list of arguments.
#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/inner_trace.h"

namespace burin::detail {
namespace {

using ir::Builder;
using ir::Function;
using ir::ValueId;

// Concrete tensors captured by any of the bodies, each once.
class Captures {
 public:
  std::size_t add(const Tensor& t) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (Access::node(all_[i]) == Access::node(t)) return i;
    all_.push_back(t);
    return all_.size() - 1;
  }
  const std::vector<Tensor>& all() const { return all_; }

 private:
  std::vector<Tensor> all_;
};

std::vector<Tensor> captures_of(InnerTrace::State& s) {
  return {s.operands.end() - static_cast<std::ptrdiff_t>(s.num_captured), s.operands.end()};
}

// Arguments for the leaves of `s`, then one for each captured tensor of any body.
std::vector<ValueId> add_arguments(Builder& b, const Function& body, std::size_t num_leaves, const Captures& captures) {
  std::vector<ValueId> args;
  for (std::size_t i = 0; i < num_leaves; ++i)
    args.push_back(b.add_arg(body.type(body.args()[i]), body.value_name(body.args()[i])));
  for (const Tensor& t : captures.all()) args.push_back(b.add_arg(used_node(t, {}).type));
  return args;
}

std::vector<ValueId> operands_of(InnerTrace::State& s, const std::vector<ValueId>& args, std::size_t num_leaves,
                                 Captures& captures) {
  std::vector<ValueId> operands(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(num_leaves));
  for (const Tensor& t : captures_of(s)) operands.push_back(args[num_leaves + captures.add(t)]);
  return operands;
}

std::shared_ptr<const Function> share(Function f) { return std::make_shared<const Function>(std::move(f)); }

bool is_float_leaf(const InnerTrace::State::Argument& a) { return is_float(used_node(a.tensor, {}).type.dtype); }

}  // namespace

void emit_custom_vjp(InnerTrace& body_trace, InnerTrace& forward_trace, InnerTrace& backward_trace,
                     std::size_t num_results) {
  InnerTrace::State &body = body_trace.state(), &forward = forward_trace.state(), &backward = backward_trace.state();
  Captures captures;
  for (InnerTrace::State* s : {&body, &forward, &backward})
    for (const Tensor& t : captures_of(*s)) captures.add(t);
  const std::size_t n = body.arguments.size();

  Builder b("custom_vjp");
  std::vector<ValueId> args = add_arguments(b, *body.body, n, captures);
  const auto new_body = share([&] {
    auto results = b.inline_body(*body.body, operands_of(body, args, n, captures));
    return b.finish(std::move(results));
  }());

  // Forward also hands backward what backward captured.
  Builder f("custom_vjp_forward");
  args = add_arguments(f, *forward.body, n, captures);
  std::vector<ValueId> results = f.inline_body(*forward.body, operands_of(forward, args, n, captures));
  const std::size_t num_residuals = results.size() - num_results;
  for (const Tensor& t : captures_of(backward)) results.push_back(args[n + captures.add(t)]);
  const auto new_forward = share(f.finish(std::move(results)));

  // Backward: residuals, captured, cotangents -> a cotangent for each float leaf and each float captured tensor.
  Builder w("custom_vjp_backward");
  const Function& old = *backward.body;
  const std::size_t num_captured = captures_of(backward).size(), num_cotangents = old.args().size() - num_residuals - num_captured;
  std::vector<ValueId> residuals, captured, cotangents;
  const auto argument = [&](std::size_t i) { return w.add_arg(old.type(old.args()[i]), old.value_name(old.args()[i])); };
  for (std::size_t i = 0; i < num_residuals; ++i) residuals.push_back(argument(i));
  for (std::size_t i = 0; i < num_captured; ++i) captured.push_back(argument(num_residuals + num_cotangents + i));
  for (std::size_t i = 0; i < num_cotangents; ++i) cotangents.push_back(argument(num_residuals + i));
  std::vector<ValueId> operands = residuals;
  operands.insert(operands.end(), cotangents.begin(), cotangents.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  const std::vector<ValueId> found = w.inline_body(old, operands);
  if (backward.missing.size() != n)
    fail_at(where_text(body.where), Msg::custom_vjp_cotangents, counted(n, "cotangent"), backward.missing.size());
  std::vector<ValueId> out;
  for (std::size_t i = 0, next = 0; i < n; ++i) {
    const ir::Type& type = used_node(body.arguments[i].tensor, {}).type;
    const bool missing = backward.missing[i];
    if (is_float_leaf(body.arguments[i])) {
      if (missing) fail_at(where_text(body.where), Msg::custom_vjp_no_cotangent, body.arguments[i].label, to_string(type));
      const ir::Type& given = w.type(found[next]);
      if (given.shape != type.shape)
        fail_at(where_text(body.where), Msg::custom_rule_type, "custom_vjp: backward", body.arguments[i].label,
                    to_string(type), to_string(given));
      out.push_back(w.convert(found[next], type.dtype));
    }
    if (!missing) ++next;
  }
  for (const Tensor& t : captures.all())
    if (const ir::Type& type = used_node(t, {}).type; is_float(type.dtype)) out.push_back(w.full(type, 0));
  const auto new_backward = share(w.finish(std::move(out)));

  std::vector<Tensor> op_operands(body.operands.begin(), body.operands.begin() + static_cast<std::ptrdiff_t>(n));
  op_operands.insert(op_operands.end(), captures.all().begin(), captures.all().end());
  body.outputs = emit_all(ir::Op::custom_vjp, op_operands, {ir::Body(new_body), ir::Body(new_forward), ir::Body(new_backward)});
  body.settle({&body.outputs});
}

void emit_custom_jvp(InnerTrace& body_trace, InnerTrace& rule_trace) {
  InnerTrace::State &body = body_trace.state(), &rule = rule_trace.state();
  Captures captures;
  for (InnerTrace::State* s : {&body, &rule})
    for (const Tensor& t : captures_of(*s)) captures.add(t);
  const std::size_t n = body.arguments.size();

  Builder b("custom_jvp");
  std::vector<ValueId> args = add_arguments(b, *body.body, n, captures);
  auto results = b.inline_body(*body.body, operands_of(body, args, n, captures));
  const auto new_body = share(b.finish(std::move(results)));

  // Rule: leaves, captured, then a tangent for each float among them -> results, a tangent for each float result.
  Builder r("custom_jvp_rule");
  const Function& old = *rule.body;
  args = add_arguments(r, *body.body, n, captures);
  std::vector<ValueId> operands(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = 0, next = n; i < n; ++i)
    if (is_float_leaf(body.arguments[i])) operands.push_back(r.add_arg(old.type(old.args()[next++])));
  for (const Tensor& t : captures.all())
    if (const ir::Type& type = used_node(t, {}).type; is_float(type.dtype)) r.add_arg(type);
  for (const Tensor& t : captures_of(rule)) operands.push_back(args[n + captures.add(t)]);
  const std::vector<ValueId> found = r.inline_body(old, operands);
  const std::size_t num_results = found.size() / 2;
  std::vector<ValueId> out;
  const std::vector<ir::Type> expected = new_body->result_types();
  BURIN_CHECK(expected.size() == num_results);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ir::Type& type = expected[i % num_results];
    if (i >= num_results && !is_float(type.dtype)) continue;
    if (r.type(found[i]).shape != type.shape)
      fail_at(where_text(body.where), Msg::custom_rule_type, "custom_jvp: rule",
                  "result " + std::to_string(i % num_results), to_string(type), to_string(r.type(found[i])));
    out.push_back(r.convert(found[i], type.dtype));
  }
  const auto new_rule = share(r.finish(std::move(out)));

  std::vector<Tensor> op_operands(body.operands.begin(), body.operands.begin() + static_cast<std::ptrdiff_t>(n));
  op_operands.insert(op_operands.end(), captures.all().begin(), captures.all().end());
  body.outputs = emit_all(ir::Op::custom_jvp, op_operands, {ir::Body(new_body), ir::Body(new_rule)});
  body.settle({&body.outputs});
}

}  // namespace burin::detail
