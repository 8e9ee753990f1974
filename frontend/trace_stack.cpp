#include "frontend/trace_stack.h"

#include <atomic>

#include "base/check.h"
#include "base/message_ids.h"
#include "frontend/compile.h"

namespace burin::detail {
namespace {

thread_local Trace* top = nullptr;
std::atomic<std::uint64_t> next_id{1};

}  // namespace

Trace* current_trace() { return top; }

bool trace_is_open(std::uint64_t id) {
  for (const Trace* t = top; t; t = t->outer())
    if (t->id() == id) return true;
  return false;
}

Trace::Trace(std::string name) : id_(next_id++), builder_(name), name_(std::move(name)), outer_(top) { top = this; }

Trace::~Trace() {
  if (on_stack_) leave();
}

void Trace::leave() {
  // An exception may leave inner traces behind for a moment: they are gone before their outer ones.
  BURIN_CHECK(top == this, "traces end in the order of their nesting");
  top = outer_;
  on_stack_ = false;
}

Tensor Trace::add_argument(const ir::Type& type, bool weak, const std::string& path) {
  const ir::ValueId value = builder_.add_arg(type, path);
  declared_.push_back(value);
  ++num_declared_;
  Tensor t = wrap(value, weak, {});
  Access::node(t)->note = path;
  return t;
}

Tensor Trace::wrap(ir::ValueId value, bool weak, const std::source_location& where) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::traced;
  node->weak = weak;
  node->type = builder_.type(value);
  node->made_at = caller_place(where);
  node->trace = id_;
  node->value = value;
  return Access::make(std::move(node));
}

ir::ValueId Trace::capture(const Tensor& t) {
  const Node* node = Access::node(t).get();
  const auto [found, added] = captured_.try_emplace(node, ir::ValueId{});
  if (added) {
    found->second = builder_.add_arg(node->type, node->note);
    captured_values_.push_back(found->second);
    captures_.push_back(t);
  }
  return found->second;
}

Tensor Trace::capture_number(const Tensor& number) { return wrap(capture(number), Access::node(number)->weak, {}); }

ir::ValueId Trace::resolve(const Tensor& t, const std::source_location& where) {
  const Node& node = used_node(t, where);
  switch (node.kind) {
    case Node::Kind::number:
      if (numbers_are_arguments_) return capture(t);
      return builder_.constant(number_literal(node, node.type.dtype, where));
    case Node::Kind::traced:
      if (node.trace == id_) return node.value;
      if (!trace_is_open(node.trace)) fail_at(where_text(where), Msg::trace_ended, traced_text(node));
      return capture(t);
    default: return capture(t);
  }
}

ir::Function Trace::finish(std::vector<ir::ValueId> results) {
  leave();
  ir::Function traced = builder_.finish(std::move(results));
  if (captured_values_.empty()) return traced;
  // Arguments first: captured values were found while ops were being appended.
  ir::Builder ordered(name_);
  std::vector<ir::ValueId> arguments;
  for (const auto* group : {&declared_, &captured_values_})
    for (ir::ValueId value : *group) arguments.push_back(ordered.add_arg(traced.type(value), traced.value_name(value)));
  std::vector<ir::ValueId> operands(traced.args().size());
  std::size_t declared = 0, captured = num_declared_;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_declared = declared < num_declared_ && traced.args()[i] == declared_[declared];
    operands[i] = arguments[is_declared ? declared++ : captured++];
  }
  std::vector<ir::ValueId> mapped = ordered.inline_body(traced, operands);
  return ordered.finish(std::move(mapped));
}

Region::Region() {
  if (!top) trace_ = std::make_unique<Trace>("unjitted");
}
Region::~Region() = default;

void Region::done(std::span<Tensor* const> outputs, const std::source_location& where) {
  if (!trace_) return;
  std::vector<ir::ValueId> results;
  std::vector<Tensor*> pending;
  std::unordered_map<std::uint32_t, Tensor> arguments;
  for (std::size_t i = 0; i < trace_->captures().size(); ++i) {
    const Tensor& captured = trace_->captures()[i];
    arguments.emplace(trace_->resolve(captured, where).index, captured);
  }
  for (Tensor* output : outputs) {
    if (!output->traced()) continue;
    const ir::ValueId value = trace_->resolve(*output, where);
    if (const auto found = arguments.find(value.index); found != arguments.end()) {
      *output = found->second;  // nothing to compute
      continue;
    }
    results.push_back(value);
    pending.push_back(output);
  }
  if (results.empty()) {
    trace_.reset();
    return;
  }
  ir::Function f = trace_->finish(std::move(results));
  std::vector<Tensor> inputs = trace_->captures();
  trace_.reset();
  std::vector<Tensor> values = run_unjitted(std::move(f), inputs, where);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Access::node(values[i])->weak = pending[i]->weak();
    *pending[i] = values[i];
  }
}

OpScope::OpScope(const std::source_location& where) : where_(where), outermost_(enter_frame(where, nullptr)) {
  if (region_.opened()) region_.trace()->set_numbers_are_arguments(true);
}
OpScope::OpScope(const char* function, const std::source_location& where)
    : where_(where), outermost_(enter_frame(where, function)) {}
OpScope::~OpScope() {
  if (outermost_) leave_frame();
}

Tensor OpScope::done(Tensor result) {
  Tensor* output = &result;
  region_.done(std::span(&output, 1), where_);
  return result;
}
std::vector<Tensor> OpScope::done(std::vector<Tensor> results) {
  std::vector<Tensor*> outputs;
  for (Tensor& result : results) outputs.push_back(&result);
  region_.done(outputs, where_);
  return results;
}

std::vector<Tensor> emit_all(ir::Op op, std::span<const Tensor> operands, std::vector<ir::AttrValue> attributes,
                             bool weak) {
  Trace& trace = *current_trace();
  std::vector<ir::ValueId> values;
  values.reserve(operands.size());
  for (const Tensor& operand : operands) values.push_back(trace.resolve(operand, {}));
  trace.builder().set_location(make_location({}));
  std::vector<Tensor> results;
  for (ir::ValueId value : trace.builder().call(op, values, std::move(attributes)))
    results.push_back(trace.wrap(value, weak, {}));
  return results;
}

Tensor emit(ir::Op op, std::initializer_list<Tensor> operands, bool weak) {
  return emit_all(op, std::span<const Tensor>(operands.begin(), operands.size()), {}, weak).front();
}

Tensor constant(const ir::Literal& value, bool weak) {
  Trace& trace = *current_trace();
  trace.builder().set_location(make_location({}));
  return trace.wrap(trace.builder().constant(value), weak, {});
}

Tensor constant(const ir::Type& type, double value) {
  return constant(ir::Literal::splat(type.shape, ir::Literal::scalar(type.dtype, value)));
}

std::vector<ir::ValueId> inline_function(const ir::Function& f, std::span<const Tensor> operands) {
  Trace& trace = *current_trace();
  std::vector<ir::ValueId> values;
  for (const Tensor& operand : operands) values.push_back(trace.resolve(operand, {}));
  return trace.builder().inline_body(f, values);
}

std::string type_text(const Tensor& t) { return to_string(used_node(t, {}).type); }

}  // namespace burin::detail
