// The functions being traced on this thread, and the one way in which ops get into them.
#pragma once
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/node.h"
#include "ir/builder.h"

namespace burin::detail {

/// A Function under construction. Values from outside (concrete tensors, values of surrounding traces) become extra
/// arguments behind the declared ones when they are first used.
class Trace {
 public:
  explicit Trace(std::string name);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::uint64_t id() const { return id_; }
  ir::Builder& builder() { return builder_; }
  Trace* outer() const { return outer_; }
  /// Un-jitted single ops: C++ numbers are arguments too, so that x * 2 and x * 3 are one compiled function.
  void set_numbers_are_arguments(bool on) { numbers_are_arguments_ = on; }
  bool numbers_are_arguments() const { return numbers_are_arguments_; }

  /// A declared argument; `path` is its name in IR and messages.
  Tensor add_argument(const ir::Type& type, bool weak, const std::string& path);
  /// The value of a tensor in this trace.
  ir::ValueId resolve(const Tensor& t, const std::source_location& where);
  /// The number as an argument of its own dtype: data, not part of the program.
  Tensor capture_number(const Tensor& number);
  Tensor wrap(ir::ValueId value, bool weak, const std::source_location& where);

  /// Ends tracing: takes the trace off the stack. Arguments: the declared ones, then captures().
  ir::Function finish(std::vector<ir::ValueId> results);
  const std::vector<Tensor>& captures() const { return captures_; }

 private:
  ir::ValueId capture(const Tensor& t);
  void leave();

  std::uint64_t id_;
  ir::Builder builder_;
  std::string name_;
  Trace* outer_;
  bool on_stack_ = true;
  bool numbers_are_arguments_ = false;
  std::size_t num_declared_ = 0;
  std::vector<ir::ValueId> declared_;
  std::vector<ir::ValueId> captured_values_;
  std::vector<Tensor> captures_;
  std::unordered_map<const Node*, ir::ValueId> captured_;
};

/// The innermost trace of this thread, or null.
Trace* current_trace();
/// True when the trace is on this thread's stack.
bool trace_is_open(std::uint64_t id);

/// Opens an un-jitted region when nothing is being traced: what is traced inside is compiled (once per program) and run
/// by done(). Inside a trace it does nothing.
class Region {
 public:
  Region();
  ~Region();
  bool opened() const { return trace_ != nullptr; }
  Trace* trace() { return trace_.get(); }
  /// Runs, and replaces the traced tensors among `outputs` by concrete ones.
  void done(std::span<Tensor* const> outputs, const std::source_location& where);

 private:
  std::unique_ptr<Trace> trace_;
};

/// What every public op opens first: a region, and the caller's place for all ops traced inside.
class OpScope {
 public:
  /// A primitive: un-jitted, the numbers among its operands are data.
  explicit OpScope(const std::source_location& where);
  /// A library function, named in locations: "in softmax".
  OpScope(const char* function, const std::source_location& where);
  ~OpScope();
  Tensor done(Tensor result);
  std::vector<Tensor> done(std::vector<Tensor> results);
  const std::source_location& where() const { return where_; }
  /// True when the ops are compiled at once, one call: indices given as C++ integers are then data.
  bool unjitted() const { return region_.opened(); }

 private:
  std::source_location where_;
  bool outermost_;
  Region region_;
};

/// Makes `where` the place of all ops until leave_frame(), unless there is an outer one: then returns false.
bool enter_frame(const std::source_location& where, const char* function);
void leave_frame();
/// The caller's place that counts: the outermost scope's.
const std::source_location& caller_place(const std::source_location& where);

/// Appends an op to the current trace.
std::vector<Tensor> emit_all(ir::Op op, std::span<const Tensor> operands, std::vector<ir::AttrValue> attributes,
                             bool weak = false);
template <ir::Op op>
Tensor emit(std::initializer_list<Tensor> operands, const ir::attrs_of<op>& a = {}, bool weak = false) {
  std::vector<ir::AttrValue> values;
  ir::visit_attrs(a, [&](std::string_view, const auto& field) { values.emplace_back(field); });
  return emit_all(op, std::span<const Tensor>(operands.begin(), operands.size()), std::move(values), weak).front();
}
template <ir::Op op>
Tensor emit(std::span<const Tensor> operands, const ir::attrs_of<op>& a = {}, bool weak = false) {
  std::vector<ir::AttrValue> values;
  ir::visit_attrs(a, [&](std::string_view, const auto& field) { values.emplace_back(field); });
  return emit_all(op, operands, std::move(values), weak).front();
}
Tensor emit(ir::Op op, std::initializer_list<Tensor> operands, bool weak = false);

/// A constant of the current trace.
Tensor constant(const ir::Literal& value, bool weak = false);
Tensor constant(const ir::Type& type, double value);
/// Appends a finished function's ops to the current trace; operands are tensors of it or of its surroundings.
std::vector<ir::ValueId> inline_function(const ir::Function& f, std::span<const Tensor> operands);
/// The leaves' shapes and dtypes, for messages: "f32[2,3]".
std::string type_text(const Tensor& t);

}  // namespace burin::detail
