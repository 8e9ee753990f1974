// Derivative rules, one jvp per op and one transpose per op that a jvp rule may put on tangents. Family defaults keep the
// lists short; a missing rule is a compile error at the op's row (jvp.cpp and transpose.cpp go over ops.def).
#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace burin::passes::autodiff {

using namespace ir;

/// Backward functions of custom_vjp calls: by name of the stand-in composite that carries their tangents.
using BackwardTable = std::map<std::string, Body>;

/// One op of the function being differentiated. A tangent that is not there is identically zero.
class JvpContext {
 public:
  JvpContext(Builder& builder, const Function& source, OpId op, std::span<const ValueId> primals,
             std::span<const std::optional<ValueId>> tangents, BackwardTable* backward)
      : b(builder), source(source), op(op), primals_(primals), tangents_(tangents), backward(backward) {}

  Builder& b;
  const Function& source;
  OpId op;

  std::size_t size() const { return primals_.size(); }
  ValueId primal(std::size_t i) const { return primals_[i]; }
  std::span<const ValueId> primals() const { return primals_; }
  const std::optional<ValueId>& tangent(std::size_t i) const { return tangents_[i]; }
  /// The tangent, zeros made explicit.
  ValueId tangent_or_zeros(std::size_t i) {
    return tangents_[i] ? *tangents_[i] : b.full_like(primals_[i], 0);
  }
  /// Appends the op itself on the primals; returns its first result.
  ValueId emit_primal() {
    const ValueId first = b.append_copy(source, op, primals_);
    results.clear();
    for (std::size_t i = 0; i < source.num_results(op); ++i) results.push_back(ValueId{first.index + i});
    return first;
  }
  template <Op kind>
  attrs_of<kind> attrs() const {
    return source.attrs<kind>(op);
  }
  /// Throws: this op has no derivative.
  [[noreturn]] void not_differentiable(std::string_view why) const;
  /// The result `value` plus what is there already.
  void add_tangent(std::size_t result, ValueId value) {
    if (result_tangents.size() <= result) result_tangents.resize(result + 1);
    auto& slot = result_tangents[result];
    slot = slot ? b.add(*slot, value) : value;
  }

  std::vector<ValueId> results;                        // set by emit_primal or the rule
  std::vector<std::optional<ValueId>> result_tangents;  // set by the rule

 private:
  std::span<const ValueId> primals_;
  std::span<const std::optional<ValueId>> tangents_;

 public:
  /// Not null in reverse mode: custom_vjp stores its backward function here.
  BackwardTable* backward;
};

/// One linear op walked backwards.
class TransposeContext {
 public:
  TransposeContext(Builder& builder, const Function& source, OpId op) : b(builder), source(source), op(op) {}

  Builder& b;
  const Function& source;
  OpId op;
  const BackwardTable* backward = nullptr;

  std::vector<std::optional<ValueId>> cotangents;  // by result
  std::vector<bool> linear;                        // by operand: a tangent
  std::vector<ValueId> operands;                   // valid where not linear
  std::vector<std::optional<ValueId>> operand_cotangents;  // set by the rule

  const Type& operand_type(std::size_t i) const { return source.type(source.operand(op, i)); }
  ValueId ct(std::size_t result = 0) {
    return cotangents[result] ? *cotangents[result] : b.full(source.type(source.result(op, result)), 0);
  }
  ValueId zeros(std::size_t operand) { return b.full(operand_type(operand), 0); }
  void give(std::size_t operand, ValueId value) { operand_cotangents[operand] = value; }
  /// All operands but these depend on no tangent, else not_linear().
  void linear_only_in(std::initializer_list<std::size_t> which) const {
    for (std::size_t i = 0; i < linear.size(); ++i)
      if (linear[i] && std::find(which.begin(), which.end(), i) == which.end()) not_linear();
  }
  /// Throws: a custom_jvp rule applies this op to a tangent in a way that is not linear in it.
  [[noreturn]] void not_linear() const;
  template <Op kind>
  attrs_of<kind> attrs() const {
    return source.attrs<kind>(op);
  }
};

// ---- jvp ---------------------------------------------------------------------------------------------------------
/// d(result)/d(x) * tangent of a function of one variable; x and y = f(x) are primals.
ValueId unary_tangent(Op op, JvpContext& c, ValueId x, ValueId y, ValueId t);
void jvp_unary(JvpContext& c);
void jvp_binary(JvpContext& c);
/// The op applied to the tangents, zeros made explicit: for ops linear in all float operands.
void jvp_linear(JvpContext& c);
/// The result is an integer or constant between jumps where the derivative is zero: no tangent.
void jvp_zero(JvpContext& c);

template <Op op>
concept LinearMovement = family_of(op) == Family::movement;

template <Op op>
  requires(family_of(op) == Family::elementwise || family_of(op) == Family::compare)
void jvp(Tag<op>, JvpContext& c) {
  if constexpr (family_of(op) == Family::compare)
    jvp_zero(c);
  else if (info(op).arity == 1)
    jvp_unary(c);
  else
    jvp_binary(c);
}
void jvp(Tag<Op::select>, JvpContext& c);
void jvp(Tag<Op::clamp>, JvpContext& c);
void jvp(Tag<Op::convert>, JvpContext& c);
void jvp(Tag<Op::bitcast>, JvpContext& c);
void jvp(Tag<Op::stop_gradient>, JvpContext& c);

void jvp(Tag<Op::reduce_sum>, JvpContext& c);
void jvp(Tag<Op::reduce_prod>, JvpContext& c);
void jvp_extremum(JvpContext& c, const Ints& axes);
inline void jvp(Tag<Op::reduce_max>, JvpContext& c) { jvp_extremum(c, c.attrs<Op::reduce_max>().axes); }
inline void jvp(Tag<Op::reduce_min>, JvpContext& c) { jvp_extremum(c, c.attrs<Op::reduce_min>().axes); }
inline void jvp(Tag<Op::reduce_and>, JvpContext& c) { jvp_zero(c); }
inline void jvp(Tag<Op::reduce_or>, JvpContext& c) { jvp_zero(c); }
inline void jvp(Tag<Op::argmax>, JvpContext& c) { jvp_zero(c); }
inline void jvp(Tag<Op::argmin>, JvpContext& c) { jvp_zero(c); }

template <Op op>
  requires(family_of(op) == Family::movement)
void jvp(Tag<op>, JvpContext& c) {
  jvp_linear(c);
}
void jvp(Tag<Op::dot_general>, JvpContext& c);

inline void jvp(Tag<Op::constant>, JvpContext& c) { jvp_zero(c); }
inline void jvp(Tag<Op::iota>, JvpContext& c) { jvp_zero(c); }
void jvp(Tag<Op::gather>, JvpContext& c);
void jvp(Tag<Op::scatter>, JvpContext& c);
void jvp(Tag<Op::dynamic_slice>, JvpContext& c);
void jvp(Tag<Op::dynamic_update_slice>, JvpContext& c);

void jvp_inlined(JvpContext& c, const Body& body);
inline void jvp(Tag<Op::call>, JvpContext& c) { jvp_inlined(c, c.attrs<Op::call>().body); }
inline void jvp(Tag<Op::composite>, JvpContext& c) { jvp_inlined(c, c.attrs<Op::composite>().body); }
inline void jvp(Tag<Op::fusion>, JvpContext& c) { jvp_inlined(c, c.attrs<Op::fusion>().body); }
void jvp(Tag<Op::custom_jvp>, JvpContext& c);
void jvp(Tag<Op::custom_vjp>, JvpContext& c);
void jvp(Tag<Op::checkpoint>, JvpContext& c);
void jvp(Tag<Op::optimization_barrier>, JvpContext& c);

/// Differentiates all of `f` into `b`: values of the results and their tangents, given those of the args.
struct Inlined {
  std::vector<ValueId> results;
  std::vector<std::optional<ValueId>> tangents;
};
Inlined inline_jvp(Builder& b, const Function& f, std::span<const ValueId> primals,
                   std::span<const std::optional<ValueId>> tangents, BackwardTable* backward);

// ---- transpose ------------------------------------------------------------------------------------------------------
/// Ops that no jvp rule of Burin's puts on tangents end here: a custom_jvp rule did.
template <Op op>
void transpose(Tag<op>, TransposeContext& c) {
  c.not_linear();
}
void transpose(Tag<Op::neg>, TransposeContext& c);
void transpose(Tag<Op::add>, TransposeContext& c);
void transpose(Tag<Op::sub>, TransposeContext& c);
void transpose(Tag<Op::mul>, TransposeContext& c);
void transpose(Tag<Op::div>, TransposeContext& c);
void transpose(Tag<Op::select>, TransposeContext& c);
void transpose(Tag<Op::convert>, TransposeContext& c);
void transpose(Tag<Op::reduce_sum>, TransposeContext& c);
void transpose(Tag<Op::reshape>, TransposeContext& c);
void transpose(Tag<Op::transpose>, TransposeContext& c);
void transpose(Tag<Op::broadcast>, TransposeContext& c);
void transpose(Tag<Op::slice>, TransposeContext& c);
void transpose(Tag<Op::pad>, TransposeContext& c);
void transpose(Tag<Op::concatenate>, TransposeContext& c);
void transpose(Tag<Op::reverse>, TransposeContext& c);
void transpose(Tag<Op::dot_general>, TransposeContext& c);
void transpose(Tag<Op::gather>, TransposeContext& c);
void transpose(Tag<Op::scatter>, TransposeContext& c);
void transpose(Tag<Op::dynamic_slice>, TransposeContext& c);
void transpose(Tag<Op::dynamic_update_slice>, TransposeContext& c);
void transpose(Tag<Op::composite>, TransposeContext& c);
void transpose(Tag<Op::checkpoint>, TransposeContext& c);
void transpose(Tag<Op::optimization_barrier>, TransposeContext& c);

/// Walks the ops of `f` that depend on the args marked linear backwards, emitting into `b`. `values` maps every value of
/// f that the linear ops read and that is not linear itself. Returns a cotangent per arg (only linear ones are filled).
std::vector<std::optional<ValueId>> transpose_ops(Builder& b, const Function& f, const std::vector<bool>& linear_values,
                                                  std::span<const ValueId> values,
                                                  std::span<const std::optional<ValueId>> result_cotangents,
                                                  const BackwardTable& backward);
/// By value: depends on one of the marked args.
std::vector<bool> depends_on(const Function& f, const std::vector<bool>& args);
/// Where ways of multiplying one tangent meet again, one product with the sum of what they multiply with; what is then dead is gone.
/// `tangents` says which arguments are tangents.
Function gather_factors(const Function& f, const std::vector<bool>& tangents);

}  // namespace burin::passes::autodiff
