// Type rules: the result types of an op from its operand types and attributes, one overload per op, with a default for
// a family where all its ops agree. A missing rule is a compile error at the op's row (infer.cpp goes over ops.def).
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "ir/function.h"

namespace burin::ir::shape {

using Types = std::vector<Type>;

/// What a rule may see. `where` is the user's location for messages, or null.
struct Operands {
  Op op;
  std::span<const Type> types;
  const Location* where;

  const Type& operator[](std::size_t i) const { return types[i]; }
  std::size_t size() const { return types.size(); }
  template <class... Args>
  [[noreturn]] void fail(Msg id, const Args&... args) const {
    fail_at(where != nullptr ? to_string(*where) : "", id, args...);
  }
};

template <Op op>
concept Elementwise = family_of(op) == Family::elementwise;
template <Op op>
concept Compare = family_of(op) == Family::compare;

// elementwise.cpp
Types infer_elementwise(const Operands& in);
Types infer_compare(const Operands& in);
template <Op op>
  requires Elementwise<op>
Types infer(Tag<op>, const Operands& in, const attrs_of<op>&) {
  return infer_elementwise(in);
}
template <Op op>
  requires Compare<op>
Types infer(Tag<op>, const Operands& in, const attrs_of<op>&) {
  return infer_compare(in);
}
Types infer(Tag<Op::select>, const Operands& in, const attrs::select& a);
Types infer(Tag<Op::convert>, const Operands& in, const attrs::convert& a);
Types infer(Tag<Op::bitcast>, const Operands& in, const attrs::bitcast& a);
Types infer(Tag<Op::is_finite>, const Operands& in, const attrs::is_finite& a);

// reduce.cpp
Types infer_reduce(const Operands& in, const Ints& axes);
Types infer_arg_reduce(const Operands& in, Int axis, DType dtype);
template <Op op>
  requires(family_of(op) == Family::reduce)
Types infer(Tag<op>, const Operands& in, const attrs_of<op>& a) {
  if constexpr (op == Op::argmax || op == Op::argmin)
    return infer_arg_reduce(in, a.axis, a.dtype);
  else
    return infer_reduce(in, a.axes);
}

// movement.cpp
Types infer(Tag<Op::reshape>, const Operands& in, const attrs::reshape& a);
Types infer(Tag<Op::transpose>, const Operands& in, const attrs::transpose& a);
Types infer(Tag<Op::broadcast>, const Operands& in, const attrs::broadcast& a);
Types infer(Tag<Op::slice>, const Operands& in, const attrs::slice& a);
Types infer(Tag<Op::pad>, const Operands& in, const attrs::pad& a);
Types infer(Tag<Op::concatenate>, const Operands& in, const attrs::concatenate& a);
Types infer(Tag<Op::reverse>, const Operands& in, const attrs::reverse& a);

// contract.cpp
Types infer(Tag<Op::dot_general>, const Operands& in, const attrs::dot_general& a);

// index.cpp
Types infer(Tag<Op::constant>, const Operands& in, const attrs::constant& a);
Types infer(Tag<Op::iota>, const Operands& in, const attrs::iota& a);
Types infer(Tag<Op::gather>, const Operands& in, const attrs::gather& a);
Types infer(Tag<Op::scatter>, const Operands& in, const attrs::scatter& a);
Types infer(Tag<Op::dynamic_slice>, const Operands& in, const attrs::dynamic_slice& a);
Types infer(Tag<Op::dynamic_update_slice>, const Operands& in, const attrs::dynamic_update_slice& a);

// structure.cpp
Types infer_body(const Operands& in, const Body& body);
Types infer(Tag<Op::call>, const Operands& in, const attrs::call& a);
Types infer(Tag<Op::composite>, const Operands& in, const attrs::composite& a);
Types infer(Tag<Op::custom_jvp>, const Operands& in, const attrs::custom_jvp& a);
Types infer(Tag<Op::custom_vjp>, const Operands& in, const attrs::custom_vjp& a);
Types infer(Tag<Op::checkpoint>, const Operands& in, const attrs::checkpoint& a);
Types infer(Tag<Op::optimization_barrier>, const Operands& in, const attrs::optimization_barrier& a);
Types infer(Tag<Op::fusion>, const Operands& in, const attrs::fusion& a);

}  // namespace burin::ir::shape
