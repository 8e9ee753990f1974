// Nested functions: traced on their own, transformed, and inlined into what surrounds them.
#include <burin/transforms.h>

#include <ostream>

#include "base/check.h"
#include "frontend/inner_trace.h"
#include "base/message_ids.h"
#include "ir/printer.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"

namespace burin {
namespace detail {

// ---- visitors ----------------------------------------------------------------------------------------------------------

// Leaves of an argument become arguments of the inner function.
void BindVisitor::leaf(Tensor& tensor) {
  InnerTrace::State& s = *state;
  PathFlattening::leaf(tensor);
  const std::string& path = paths.back();
  const std::string label = path.empty() ? "arg" + std::to_string(argument) : path;
  if (!tensor.defined()) fail_at(where_text(s.where), Msg::argument_without_value, s.name, label);
  const Node& node = used_node(tensor, s.where);
  const bool active = !only_floats || is_float(node.type.dtype);
  s.arguments.push_back({argument, active, tensor, label});
  if (!active) return;
  ir::Type type = node.type;
  Tensor operand = tensor;
  if (s.vmapping && s.mapped) {
    const std::size_t rank = type.rank();
    const std::int64_t axis = s.mapped_axis < 0 ? s.mapped_axis + static_cast<std::int64_t>(rank) : s.mapped_axis;
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank))
      fail_at(where_text(s.where), Msg::vmap_axis, label, to_string(type), s.mapped_axis);
    const std::int64_t extent = type.shape[static_cast<std::size_t>(axis)];
    if (s.batch_size < 0) s.batch_size = extent, s.batch_label = label;
    if (s.batch_size != extent)
      fail_at(where_text(s.where), Msg::vmap_sizes, s.batch_label, s.batch_size, label, extent);
    Shape rest;
    for (std::size_t i = 0; i < rank; ++i)
      if (static_cast<std::int64_t>(i) != axis) rest.push_back(type.shape[i]);
    type.shape = rest;
    s.operand_axes.push_back(axis);
  } else {
    s.operand_axes.push_back(-1);
  }
  s.operands.push_back(operand);
  tensor = s.trace->add_argument(type, node.weak, label);
}

// Results are resolved in the inner function and taken out of the tree.
void ResultVisitor::leaf(Tensor& tensor) {
  PathFlattening::leaf(tensor);
  InnerTrace::State& s = *state;
  if (!tensor.defined() && may_be_missing) {
    s.results.push_back({});
    s.result_weak.push_back(false);
    s.result_types.emplace_back();
    return;
  }
  if (!tensor.defined())
    fail_at(where_text(s.where), Msg::result_without_value, s.name, paths.back().empty() ? "result" : paths.back());
  s.results.push_back(s.trace->resolve(tensor, s.where));
  s.result_weak.push_back(tensor.weak());
  s.result_types.push_back(Access::node(tensor)->type);
}

void AssignVisitor::leaf(Tensor& tensor) {
  BURIN_CHECK(next < values->size(), "more leaves than results");
  tensor = (*values)[next++];
}

InnerTrace::State::State(const char* function, const std::source_location& at) : name(function), where(at) {
  region = std::make_unique<Region>();
  trace = std::make_unique<Trace>(function);
  bind.state = this;
  collect.state = this;
}

InnerTrace::InnerTrace(const char* name, const std::source_location& where)
    : state_(std::make_shared<State>(name, where)) {}

InnerTrace::~InnerTrace() {
  // Whoever shares the state (a pullback) needs no trace any more.
  state_->trace.reset();
  state_->region.reset();
}

TreeVisitor& InnerTrace::argument(std::size_t index, bool only_floats) {
  State& s = *state_;
  s.bind = BindVisitor{};
  s.bind.state = state_.get();
  s.bind.argument = index;
  s.bind.only_floats = only_floats;
  return s.bind;
}

void InnerTrace::check_in_axes(std::size_t named, std::size_t arguments) const {
  if (named > arguments) fail_at(where_text(state_->where), Msg::vmap_in_axes, named, arguments);
}

void InnerTrace::set_mapped_axis(bool mapped, std::int64_t axis) {
  state_->vmapping = true;
  state_->mapped = mapped;
  state_->mapped_axis = axis;
}

TreeVisitor& InnerTrace::result() { return state_->collect; }
TreeVisitor& InnerTrace::cotangent_result() {
  state_->collect.may_be_missing = true;
  return state_->collect;
}

void InnerTrace::loss(const Tensor& value) {
  const State& s = *state_;
  if (!value.defined()) fail_at(where_text(s.where), Msg::result_without_value, s.name, "result");
  const Node& node = used_node(value, s.where);
  if (node.type.rank() != 0 || !is_float(node.type.dtype))
    fail_at(where_text(s.where), Msg::loss_not_scalar, s.name, to_string(node.type));
}

ir::Function InnerTrace::State::close() {
  ir::Function f = trace->finish(results);
  for (const Tensor& captured : trace->captures()) operands.push_back(captured);
  num_captured = trace->captures().size();
  return f;
}

Tensor InnerTrace::State::wrap(ir::ValueId value, bool weak) { return current_trace()->wrap(value, weak, where); }

// Runs the surrounding region when this opened it.
void InnerTrace::State::settle(std::vector<std::vector<Tensor>*> groups) {
  std::vector<Tensor*> outputs;
  for (std::vector<Tensor>* group : groups)
    for (Tensor& t : *group)
      if (t.defined() && t.traced()) outputs.push_back(&t);
  region->done(outputs, where);
}

std::vector<bool> InnerTrace::State::active_flags() const {
  std::vector<bool> active(operands.size(), true);
  for (std::size_t i = operands.size() - num_captured; i < operands.size(); ++i) active[i] = false;
  return active;
}

namespace {

// A tangent or cotangent of a value of that type. A number adapts its dtype; all else must be like the value.
Tensor as_derivative(const Tensor& given, const ir::Type& type, Msg id, const std::string& leaf,
                     const std::source_location& where) {
  if (!given.defined()) fail_at(where_text(where), id, leaf, to_string(type), "no value");
  const Node& node = used_node(given, where);
  if (node.type.shape != type.shape || (node.type.dtype != type.dtype && !node.weak))
    fail_at(where_text(where), id, leaf, to_string(type), to_string(node.type));
  return as_dtype(given, type.dtype);
}

}  // namespace

// ---- gradients ------------------------------------------------------------------------------------------------------------

void InnerTrace::State::place_gradients(const std::vector<Tensor>& of_active) {
  gradients.clear();
  std::size_t next = 0;
  for (const Argument& a : arguments) {
    if (gradients.size() <= a.index) gradients.resize(a.index + 1);
    if (a.active) {
      gradients[a.index].push_back(of_active[next++]);
    } else {
      auto none = std::make_shared<Node>();
      none->kind = Node::Kind::no_gradient;
      none->type = Access::node(a.tensor)->type;
      none->note = a.label;
      gradients[a.index].push_back(Access::make(std::move(none)));
    }
  }
}

void InnerTrace::finish_grad() {
  State& s = *state_;
  const ir::Function f = s.close();
  const std::vector<bool> active = s.active_flags();
  if (std::find(active.begin(), active.end(), true) == active.end()) {
    const std::string leaf = s.arguments.empty()
                                 ? "argument " + std::to_string(s.bind.argument) + " holds no tensor"
                                 : "`" + s.arguments[0].label + "` is " + type_text(s.arguments[0].tensor);
    fail_at(where_text(s.where), Msg::nothing_to_differentiate, s.name, leaf);
  }
  const passes::Vjp vjp = passes::vjp(f, active);
  Trace& outer = *current_trace();
  outer.builder().set_location(make_location(s.where));
  const std::vector<ir::ValueId> forward = inline_function(vjp.forward, s.operands);
  const std::size_t n = s.results.size();
  for (std::size_t i = 0; i < n; ++i) s.outputs.push_back(s.wrap(forward[i], s.result_weak[i]));
  // The loss is the first result; nothing comes back through the others.
  std::vector<ir::ValueId> operands(forward.begin() + static_cast<std::ptrdiff_t>(n), forward.end());
  for (std::size_t i = 0; i < n; ++i)
    if (is_float(s.result_types[i].dtype))
      operands.push_back(outer.builder().full(s.result_types[i], i == 0 ? 1 : 0));
  std::vector<Tensor> of_active;
  for (ir::ValueId value : outer.builder().inline_body(vjp.pullback, operands)) of_active.push_back(s.wrap(value, false));
  s.settle({&s.outputs, &of_active});
  s.place_gradients(of_active);
}

TreeVisitor& InnerTrace::assign_results() { return state_->assign_from(state_->outputs); }
TreeVisitor& InnerTrace::assign_result_tangents() { return state_->assign_from(state_->tangents); }
TreeVisitor& InnerTrace::assign_gradients(std::size_t index) { return state_->assign_from(state_->gradients.at(index)); }

TreeVisitor& InnerTrace::State::assign_from(const std::vector<Tensor>& values) {
  assign.values = &values;
  assign.next = 0;
  return assign;
}

void InnerTrace::finish_vjp() {
  State& s = *state_;
  const ir::Function f = s.close();
  passes::Vjp vjp = passes::vjp(f, s.active_flags());
  const std::vector<ir::ValueId> forward = inline_function(vjp.forward, s.operands);
  const std::size_t n = s.results.size();
  for (std::size_t i = 0; i < n; ++i) s.outputs.push_back(s.wrap(forward[i], s.result_weak[i]));
  for (std::size_t i = n; i < forward.size(); ++i) s.residuals.push_back(s.wrap(forward[i], false));
  s.pullback = std::move(vjp.pullback);
  s.settle({&s.outputs, &s.residuals});
}

void InnerTrace::finish_jvp(const std::vector<Tensor*>& tangents) {
  State& s = *state_;
  const ir::Function f = s.close();
  const passes::Jvp jvp = passes::jvp(f, s.active_flags());
  std::vector<Tensor> operands = s.operands;
  for (std::size_t i = 0; i < s.arguments.size(); ++i) {
    if (!s.arguments[i].active) continue;
    const ir::Type& type = Access::node(s.arguments[i].tensor)->type;
    operands.push_back(as_derivative(*tangents.at(i), type, Msg::tangent_type, s.arguments[i].label, s.where));
  }
  const std::vector<ir::ValueId> values = inline_function(jvp.function, operands);
  const std::size_t n = s.results.size();
  std::size_t next = n;
  for (std::size_t i = 0; i < n; ++i) s.outputs.push_back(s.wrap(values[i], s.result_weak[i]));
  for (std::size_t i = 0; i < n; ++i)
    s.tangents.push_back(jvp.result_active[i] ? s.wrap(values[next++], false) : constant(s.result_types[i], 0));
  s.settle({&s.outputs, &s.tangents});
}

// ---- vmap -----------------------------------------------------------------------------------------------------------------

void InnerTrace::finish_vmap(std::int64_t out_axis) {
  State& s = *state_;
  const ir::Function f = s.close();
  if (s.batch_size < 0) fail_at(where_text(s.where), Msg::vmap_nothing_mapped);
  std::vector<bool> batched(s.operands.size(), false);
  std::vector<Tensor> operands = s.operands;
  for (std::size_t i = 0; i < s.operand_axes.size(); ++i) {
    batched[i] = s.operand_axes[i] >= 0;
    if (batched[i]) operands[i] = moveaxis({operands[i], s.where}, s.operand_axes[i], 0);
  }
  const passes::Batched result = passes::batch(f, batched, s.batch_size);
  const std::vector<ir::ValueId> values = inline_function(result.function, operands);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Tensor t = s.wrap(values[i], s.result_weak[i]);
    if (!result.result_batched[i]) {
      const ir::Type& type = s.result_types[i];
      ir::Ints extents{s.batch_size};
      extents.insert(extents.end(), type.shape.begin(), type.shape.end());
      t = as_shape(t, checked_shape("vmap", extents, type.dtype, s.where));
    }
    const auto rank = static_cast<std::int64_t>(t.shape().rank());
    if (out_axis < -rank || out_axis >= rank) {
      const std::string& path = s.collect.paths[i];
      fail_at(where_text(s.where), Msg::vmap_out_axis, out_axis, path.empty() ? "result" : path, type_text(t));
    }
    if (out_axis != 0) t = moveaxis({t, s.where}, 0, out_axis);
    s.outputs.push_back(t);
  }
  s.settle({&s.outputs});
}

// ---- structure ops --------------------------------------------------------------------------------------------------------

void InnerTrace::finish_checkpoint() {
  State& s = *state_;
  auto body = std::make_shared<const ir::Function>(s.close());
  s.outputs = emit_all(ir::Op::checkpoint, s.operands, {ir::Body(body)});
  s.settle({&s.outputs});
}

void InnerTrace::finish_body() {
  State& s = *state_;
  for (const Tensor& t : s.trace->captures())
    if (t.traced()) fail_at(where_text(s.where), Msg::custom_rule_captures, s.name, traced_text(*Access::node(t)));
  // A missing cotangent (of an integer argument) is none of the body's results.
  std::vector<ir::ValueId> all;
  s.missing.clear();
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    s.missing.push_back(!s.results[i].valid());
    if (!s.results[i].valid()) continue;
    all.push_back(s.results[i]);
  }
  s.results = std::move(all);
  s.body = std::make_shared<const ir::Function>(s.close());
}

std::string trace_text(InnerTrace& trace) { return print(trace.state().close()); }

// ---- vjp's second half ------------------------------------------------------------------------------------------------------

struct PullbackState::State {
  std::shared_ptr<InnerTrace::State> forward;
  PathFlattening cotangents;
  AssignVisitor assign;
};

PullbackState::PullbackState(InnerTrace& trace) : state_(std::make_shared<State>()) { state_->forward = trace.share(); }

TreeVisitor& PullbackState::cotangent() {
  state_->cotangents = PathFlattening{};
  return state_->cotangents;
}

void PullbackState::run(const std::source_location& where) {
  InnerTrace::State& f = *state_->forward;
  if (f.collect.structure != state_->cotangents.structure)
    fail_tree_mismatch("vjp", f.collect, "the result", state_->cotangents, "the cotangent", where);
  Region region;
  std::vector<Tensor> operands = f.residuals;
  for (std::size_t i = 0; i < f.result_types.size(); ++i) {
    const ir::Type& type = f.result_types[i];
    if (!is_float(type.dtype)) continue;
    const std::string& path = state_->cotangents.paths[i];
    operands.push_back(as_derivative(*state_->cotangents.leaves[i], type, Msg::cotangent_type,
                                     path.empty() ? "result" : path, where));
  }
  std::vector<Tensor> of_active;
  std::vector<Tensor*> outputs;
  for (ir::ValueId value : inline_function(f.pullback, operands)) of_active.push_back(current_trace()->wrap(value, false, where));
  for (Tensor& t : of_active) outputs.push_back(&t);
  region.done(outputs, where);
  f.place_gradients(of_active);
}

TreeVisitor& PullbackState::assign_gradients(std::size_t index) {
  InnerTrace::State& f = *state_->forward;
  static const std::vector<Tensor> none;
  state_->assign.values = index < f.gradients.size() ? &f.gradients[index] : &none;
  state_->assign.next = 0;
  return state_->assign;
}

// ---- custom derivatives -----------------------------------------------------------------------------------------------------

void check_same_results(const char* function, const PathFlattening& expected, const PathFlattening& found,
                        std::source_location where) {
  if (expected.structure != found.structure) fail_tree_mismatch(function, expected, "the function's result", found, "that of forward", where);
  for (std::size_t i = 0; i < expected.leaves.size(); ++i)
    if (type_text(*expected.leaves[i]) != type_text(*found.leaves[i]))
      fail_at(where_text(where), Msg::custom_rule_type, function, expected.paths[i].empty() ? "result" : expected.paths[i],
                  type_text(*expected.leaves[i]), type_text(*found.leaves[i]));
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const TraceText& t) { return out << t.text(); }

}  // namespace burin
