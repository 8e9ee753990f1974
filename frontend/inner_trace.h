// The state of a nested function while it is traced and transformed. Inside the frontend only.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <burin/ops.h>
#include <burin/trace.h>

#include "frontend/promote.h"
#include "frontend/trace_stack.h"

namespace burin::detail {

class BindVisitor final : public PathFlattening {
 public:
  void leaf(Tensor& tensor) override;
  InnerTrace::State* state = nullptr;
  std::size_t argument = 0;
  bool only_floats = false;
};

class ResultVisitor final : public PathFlattening {
 public:
  void leaf(Tensor& tensor) override;
  InnerTrace::State* state = nullptr;
  bool may_be_missing = false;
};

/// Gives the leaves it sees the values in order.
class AssignVisitor final : public TreeVisitor {
 public:
  void leaf(Tensor& tensor) override;
  const std::vector<Tensor>* values = nullptr;
  std::size_t next = 0;
};

struct InnerTrace::State {
  State(const char* function, const std::source_location& at);

  /// Ends the trace; operands then hold what to give for its arguments: leaves, then captures.
  ir::Function close();
  Tensor wrap(ir::ValueId value, bool weak);
  void settle(std::vector<std::vector<Tensor>*> groups);
  std::vector<bool> active_flags() const;
  /// Sorts gradients of active leaves into arguments; the others get a note of their name.
  void place_gradients(const std::vector<Tensor>& of_active);
  TreeVisitor& assign_from(const std::vector<Tensor>& values);

  const char* name;
  std::source_location where;
  std::unique_ptr<Region> region;  // before the trace: it is outside
  std::unique_ptr<Trace> trace;

  struct Argument {
    std::size_t index;
    bool active;
    Tensor tensor;  // from outside
    std::string label;
  };
  std::vector<Argument> arguments;   // by leaf
  std::vector<Tensor> operands;      // by argument of the inner function
  std::size_t num_captured = 0;
  std::vector<ir::ValueId> results;  // of the inner function
  std::vector<bool> result_weak;
  std::vector<ir::Type> result_types;

  std::vector<Tensor> outputs, tangents;       // what the surroundings see of the results
  std::vector<std::vector<Tensor>> gradients;  // by argument
  ir::Function pullback;
  std::vector<Tensor> residuals;
  std::shared_ptr<const ir::Function> body;    // finish_body
  std::vector<bool> missing;                   // finish_body: by collected result, true when it had no value

  bool vmapping = false, mapped = false;
  std::int64_t mapped_axis = 0, batch_size = -1;
  std::string batch_label;
  std::vector<std::int64_t> operand_axes;  // by operand: the mapped axis, or -1

  BindVisitor bind;
  ResultVisitor collect;
  AssignVisitor assign;
};

}  // namespace burin::detail
