// Builder: the only way to make a Function. Infers result types, reports shape errors with the current location.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/function.h"

namespace burin::ir {

class Builder {
 public:
  explicit Builder(std::string name = "main");

  ValueId add_arg(const Type& type, std::string_view name = "");
  /// Appends an op, inferring the types of its results. Throws Error for operands that the op does not take.
  /// Returns the first result; the others follow consecutively.
  ValueId append(Op op, std::span<const ValueId> operands, std::vector<AttrValue> attributes);
  /// Appends a copy of `op` of `source` (which may be this builder's function) with other operands.
  ValueId append_copy(const Function& source, OpId op, std::span<const ValueId> operands);

  /// Typed form: b.emit<Op::slice>({x}, {.start = {0}, .limit = {2}, .stride = {1}}).
  template <Op op>
  ValueId emit(std::initializer_list<ValueId> operands, const attrs_of<op>& a = {}) {
    return emit<op>(std::span<const ValueId>(operands.begin(), operands.size()), a);
  }
  template <Op op>
  ValueId emit(std::span<const ValueId> operands, const attrs_of<op>& a = {}) {
    std::vector<AttrValue> values;
    visit_attrs(a, [&](std::string_view, const auto& field) { values.emplace_back(field); });
    return append(op, operands, std::move(values));
  }

  // Shorthands used by every rule. Elementwise operands must already agree in shape and dtype.
#define OP(name, family, arity, results, effect, attributes, meaning) BURIN_SHORTHAND_##family(name, arity)
#define BURIN_SHORTHAND_elementwise(op, arity)                 \
  template <class... V>                                        \
    requires(sizeof...(V) == arity && (std::is_same_v<V, ValueId> && ...) && std::is_empty_v<attrs::op>) \
  ValueId op(V... operands) {                                  \
    return emit<Op::op>({operands...});                        \
  }
#define BURIN_SHORTHAND_compare(op, arity) BURIN_SHORTHAND_elementwise(op, arity)
#define BURIN_SHORTHAND_reduce(op, arity)
#define BURIN_SHORTHAND_movement(op, arity)
#define BURIN_SHORTHAND_contract(op, arity)
#define BURIN_SHORTHAND_index(op, arity)
#define BURIN_SHORTHAND_structure(op, arity)
#include "ir/ops.def"
#undef OP
#undef BURIN_SHORTHAND_elementwise
#undef BURIN_SHORTHAND_compare
#undef BURIN_SHORTHAND_reduce
#undef BURIN_SHORTHAND_movement
#undef BURIN_SHORTHAND_contract
#undef BURIN_SHORTHAND_index
#undef BURIN_SHORTHAND_structure

  /// x in `dtype`; x itself when it already has it.
  ValueId convert(ValueId x, DType dtype);
  ValueId constant(const Literal& value);
  /// `value` in every element of `shape`.
  ValueId full(const Type& type, double value);
  ValueId full_like(ValueId x, double value) { return full(type(x), value); }
  /// x itself when the shape is the same already.
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const Ints& permutation);
  ValueId broadcast(ValueId x, const Shape& shape, const Ints& dims);
  /// Any reduce op with an `axes` attribute.
  ValueId reduce(Op op, ValueId x, const Ints& axes);
  ValueId iota(DType dtype, const Shape& shape, std::int64_t axis);
  std::vector<ValueId> call(Op op, std::span<const ValueId> operands, std::vector<AttrValue> attributes);
  /// Appends the ops of `body` with its arguments replaced; returns the values of its results.
  std::vector<ValueId> inline_body(const Function& body, std::span<const ValueId> operands);

  const Type& type(ValueId value) const { return function_.type(value); }
  const Function& function() const { return function_; }

  /// Ops appended from here on carry this location.
  void set_location(const Location& location);
  const Location& current_location() const { return function_.locations_[location_.index]; }
  void set_value_name(ValueId value, std::string_view name);
  void set_name(std::string name) { function_.name_ = std::move(name); }

  /// Ends building; the builder is empty afterwards.
  Function finish(std::vector<ValueId> results);

 private:
  TypeId intern(const Type& type);
  ValueId new_value(const Type& type, OpId def);

  Function function_;
  LocationId location_{std::size_t{0}};
  std::unordered_map<Hash128, TypeId> type_ids_;
  std::unordered_map<Hash128, LocationId> location_ids_;
};

/// The result types of an op. `where`, if not null, goes to the end of error messages. Throws Error.
std::vector<Type> infer_types(Op op, std::span<const Type> operands, std::span<const AttrValue> attributes, const Location* where = nullptr);

}  // namespace burin::ir
