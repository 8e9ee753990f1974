// What a pass that walks a Function once and builds a new one keeps: the new function so far, and where each old value went.
#pragma once
#include <vector>

#include "ir/builder.h"

namespace burin::ir {

/// Whether `holds` of some op: a pass that finds nothing to do need not build its function anew.
template <class Holds>
bool any_op(const Function& f, const Holds& holds) {
  for (std::size_t i = 0; i < f.num_ops(); ++i)
    if (holds(OpId{i})) return true;
  return false;
}

class Rewriter {
 public:
  /// Starts with the arguments of `source`, under their names.
  explicit Rewriter(const Function& source) : b(source.name()), source_(source), map_(source.num_values()) {
    for (ValueId arg : source.args()) map_[arg.index] = b.add_arg(source.type(arg), source.value_name(arg));
  }
  Builder b;

  ValueId operator[](ValueId old) const { return map_[old.index]; }
  /// The operands of an op of the source as values of the new function; valid until the next call.
  const std::vector<ValueId>& operands(OpId op) {
    operands_.clear();
    for (ValueId operand : source_.operands(op)) operands_.push_back(map_[operand.index]);
    return operands_;
  }
  void replace(ValueId old, ValueId now) { map_[old.index] = now; }
  /// Results of `op` become `first` and those that follow it.
  void replace_results(OpId op, ValueId first) {
    for (std::size_t r = 0; r < source_.num_results(op); ++r) map_[source_.result(op, r).index] = ValueId{first.index + r};
  }
  /// The op as it is, over the new operands. Returns its first result.
  ValueId copy(OpId op) {
    const ValueId first = b.append_copy(source_, op, operands(op));
    replace_results(op, first);
    return first;
  }
  Function finish() {
    std::vector<ValueId> results;
    for (ValueId result : source_.results()) results.push_back(map_[result.index]);
    return b.finish(std::move(results));
  }

 private:
  const Function& source_;
  std::vector<ValueId> map_, operands_;
};

}  // namespace burin::ir
