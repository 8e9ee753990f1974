// Evaluation rules: the results of one op from the values of its operands, one overload per op, with a default for a
// family where all its ops agree. A missing rule is a compile error at the op's row (evaluate.cpp goes over ops.def).
// Operands and attributes have passed the type rules; a rule checks nothing but indices under mode `error`.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "ir/literal.h"
#include "ir/op.h"

namespace burin::ir::eval {

using Literals = std::vector<Literal>;

/// What a rule may see. `where` is the user's location for messages.
struct Operands {
  Op op;
  std::span<const Literal> literals;
  std::span<const Type> result_types;
  std::string_view where;

  const Literal& operator[](std::size_t i) const { return literals[i]; }
  std::size_t size() const { return literals.size(); }
  /// Operand i with all its elements stored; rules that read data() ask for it in this form.
  Literal expanded(std::size_t i) const {
    Literal copy = literals[i];
    copy.expand();
    return copy;
  }
  template <class... Args>
  [[noreturn]] void fail(Msg id, const Args&... args) const {
    fail_at(where, id, args...);
  }
};

// elementwise.cpp, element by element through element_function (scalar.h)
Literals evaluate_elementwise(const Operands& in);
template <Op op>
  requires(family_of(op) == Family::elementwise || family_of(op) == Family::compare)
Literals evaluate(Tag<op>, const Operands& in, const attrs_of<op>&) {
  return evaluate_elementwise(in);
}

// reduce.cpp
Literals evaluate(Tag<Op::reduce_sum>, const Operands& in, const attrs::reduce_sum& a);
Literals evaluate(Tag<Op::reduce_prod>, const Operands& in, const attrs::reduce_prod& a);
Literals evaluate(Tag<Op::reduce_max>, const Operands& in, const attrs::reduce_max& a);
Literals evaluate(Tag<Op::reduce_min>, const Operands& in, const attrs::reduce_min& a);
Literals evaluate(Tag<Op::reduce_and>, const Operands& in, const attrs::reduce_and& a);
Literals evaluate(Tag<Op::reduce_or>, const Operands& in, const attrs::reduce_or& a);
Literals evaluate(Tag<Op::argmax>, const Operands& in, const attrs::argmax& a);
Literals evaluate(Tag<Op::argmin>, const Operands& in, const attrs::argmin& a);

// movement.cpp
Literals evaluate(Tag<Op::reshape>, const Operands& in, const attrs::reshape& a);
Literals evaluate(Tag<Op::transpose>, const Operands& in, const attrs::transpose& a);
Literals evaluate(Tag<Op::broadcast>, const Operands& in, const attrs::broadcast& a);
Literals evaluate(Tag<Op::slice>, const Operands& in, const attrs::slice& a);
Literals evaluate(Tag<Op::pad>, const Operands& in, const attrs::pad& a);
Literals evaluate(Tag<Op::concatenate>, const Operands& in, const attrs::concatenate& a);
Literals evaluate(Tag<Op::reverse>, const Operands& in, const attrs::reverse& a);

// contract.cpp
Literals evaluate(Tag<Op::dot_general>, const Operands& in, const attrs::dot_general& a);

// index.cpp
Literals evaluate(Tag<Op::constant>, const Operands& in, const attrs::constant& a);
Literals evaluate(Tag<Op::iota>, const Operands& in, const attrs::iota& a);
Literals evaluate(Tag<Op::gather>, const Operands& in, const attrs::gather& a);
Literals evaluate(Tag<Op::scatter>, const Operands& in, const attrs::scatter& a);
Literals evaluate(Tag<Op::dynamic_slice>, const Operands& in, const attrs::dynamic_slice& a);
Literals evaluate(Tag<Op::dynamic_update_slice>, const Operands& in, const attrs::dynamic_update_slice& a);

// structure.cpp: an op with a body means its body
Literals evaluate(Tag<Op::call>, const Operands& in, const attrs::call& a);
Literals evaluate(Tag<Op::composite>, const Operands& in, const attrs::composite& a);
Literals evaluate(Tag<Op::custom_jvp>, const Operands& in, const attrs::custom_jvp& a);
Literals evaluate(Tag<Op::custom_vjp>, const Operands& in, const attrs::custom_vjp& a);
Literals evaluate(Tag<Op::checkpoint>, const Operands& in, const attrs::checkpoint& a);
Literals evaluate(Tag<Op::optimization_barrier>, const Operands& in, const attrs::optimization_barrier& a);
Literals evaluate(Tag<Op::fusion>, const Operands& in, const attrs::fusion& a);

}  // namespace burin::ir::eval
