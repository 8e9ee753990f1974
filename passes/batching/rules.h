// Batching rules, one per op: how to run the op on operands of which some carry a batch as axis 0. Family defaults keep the
// lists short; a missing rule is a compile error at the op's row (batch.cpp goes over ops.def). A rule is asked only when at
// least one operand is batched, and leaves one result value per result of the op, with a flag that says whether it is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/builder.h"

namespace burin::passes::batching {

using namespace ir;

class BatchContext {
 public:
  BatchContext(Builder& builder, const Function& source, OpId op, std::int64_t size, std::span<const ValueId> operands,
               const std::vector<bool>& batched)
      : b(builder), source(source), op(op), size(size), operands_(operands), batched_(batched) {}

  Builder& b;
  const Function& source;
  const OpId op;
  const std::int64_t size;  // extent of the batch axis

  std::size_t num_operands() const { return operands_.size(); }
  bool batched(std::size_t i) const { return batched_[i]; }
  std::span<const ValueId> operands() const { return operands_; }
  const std::vector<bool>& flags() const { return batched_; }
  /// The operand as it is: with a batch axis when batched(i).
  ValueId operand(std::size_t i) const { return operands_[i]; }
  /// The operand with a batch axis, repeated along it when it has none.
  ValueId with_batch(std::size_t i);
  /// The type of one example, without the batch axis.
  const Type& example_type(std::size_t i) const { return source.type(source.operand(op, i)); }
  template <Op kind>
  attrs_of<kind> attrs() const {
    return source.attrs<kind>(op);
  }
  /// The only result, batched.
  void give(ValueId result) { results = {result}, result_batched = {true}; }
  /// The op with its attributes as they are, on other operands; all results batched.
  void give_copy(std::span<const ValueId> operands);

  std::vector<ValueId> results;  // set by the rule
  std::vector<bool> result_batched;

 private:
  std::span<const ValueId> operands_;
  const std::vector<bool>& batched_;
};

/// x in each of `size` examples: behind a batch axis.
ValueId repeat(Builder& b, ValueId x, std::int64_t size);

/// Axes of one example as axes of the batch.
Ints shifted(const Ints& axes);
/// `values` behind `first`.
Ints prepended(std::int64_t first, const Ints& values);
/// first, first + 1, ... (n of them).
Ints ascending(std::int64_t first, std::size_t n);

struct Inlined {
  std::vector<ValueId> results;
  std::vector<bool> batched;
};
/// All of `f` into `b`, on operands of which some are batched.
Inlined inline_batched(Builder& b, const Function& f, std::span<const ValueId> operands, const std::vector<bool>& batched,
                       std::int64_t size);

/// `f` with a batch axis on the flagged args, not finished yet.
struct Opened {
  Builder b;
  Inlined values;
};
Opened open(const Function& f, const std::vector<bool>& batched, std::int64_t size);

// ---- elementwise.cpp -------------------------------------------------------------------------------------------------
void batch_elementwise(BatchContext& c);
template <Op op>
  requires(family_of(op) == Family::elementwise || family_of(op) == Family::compare)
void batch(Tag<op>, BatchContext& c) {
  batch_elementwise(c);
}

// ---- reduce.cpp ------------------------------------------------------------------------------------------------------
template <Op op>
  requires(family_of(op) == Family::reduce)
void batch(Tag<op>, BatchContext& c) {
  attrs_of<op> a = c.attrs<op>();
  if constexpr (op == Op::argmax || op == Op::argmin)
    ++a.axis;
  else
    a.axes = shifted(a.axes);
  c.give(c.b.emit<op>({c.operand(0)}, a));
}

// ---- movement.cpp ----------------------------------------------------------------------------------------------------
void batch(Tag<Op::reshape>, BatchContext& c);
void batch(Tag<Op::transpose>, BatchContext& c);
void batch(Tag<Op::broadcast>, BatchContext& c);
void batch(Tag<Op::slice>, BatchContext& c);
void batch(Tag<Op::pad>, BatchContext& c);
void batch(Tag<Op::concatenate>, BatchContext& c);
void batch(Tag<Op::reverse>, BatchContext& c);

// ---- contract.cpp ----------------------------------------------------------------------------------------------------
void batch(Tag<Op::dot_general>, BatchContext& c);

// ---- index.cpp -------------------------------------------------------------------------------------------------------
void batch(Tag<Op::constant>, BatchContext& c);
void batch(Tag<Op::iota>, BatchContext& c);
void batch(Tag<Op::gather>, BatchContext& c);
void batch(Tag<Op::scatter>, BatchContext& c);
void batch(Tag<Op::dynamic_slice>, BatchContext& c);
void batch(Tag<Op::dynamic_update_slice>, BatchContext& c);

// ---- structure.cpp ---------------------------------------------------------------------------------------------------
void batch(Tag<Op::call>, BatchContext& c);
void batch(Tag<Op::composite>, BatchContext& c);
void batch(Tag<Op::custom_jvp>, BatchContext& c);
void batch(Tag<Op::custom_vjp>, BatchContext& c);
void batch(Tag<Op::checkpoint>, BatchContext& c);
void batch(Tag<Op::optimization_barrier>, BatchContext& c);
void batch(Tag<Op::fusion>, BatchContext& c);

}  // namespace burin::passes::batching
