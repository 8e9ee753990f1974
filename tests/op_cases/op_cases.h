// The op-case table: for every op of ops.def functions that hold just that op, with arguments, and programs that the op
// refuses. The evaluator, differentiation, batching and the text form are driven from it (op_cases_test.cpp), and whatever
// else executes functions can be (execute.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/function.h"
#include "ir/literal.h"
#include "tests/op_cases/reference.h"

namespace burin::op_cases {

using namespace ir;

using Expected = std::function<Reals(const std::vector<Literal>& args)>;

struct OpCase {
  std::string name;  // unique in its entry: types of the operands and what is special
  Function function;
  /// The arguments of example i; example 0 is the case itself, the others are for batching.
  std::function<std::vector<Literal>(std::size_t example)> args;
  /// The elements of the results, one result after another, worked out from the arguments by the definition alone.
  Expected expected;
  /// All float args are f64 and the op is smooth for 1e-3 around them: derivatives agree with finite differences.
  bool smooth = false;
};

/// A program that the op must refuse, with the exact message.
struct Refused {
  std::string name;
  std::function<void()> build;
  std::string message;
};

struct Entry {
  std::vector<OpCase> cases;
  std::vector<Refused> refused;
  /// The reason in the error of jvp when the op has no derivative ("" when it has one, or has none to have).
  std::string no_derivative;
};

/// The entry of an op; empty when somebody forgot it, which the suite reports.
Entry entry(Op op);

// By family, in the file of that name.
Entry elementwise_entry(Op op);
Entry compare_entry(Op op);
Entry reduce_entry(Op op);
Entry movement_entry(Op op);
Entry contract_entry(Op op);
Entry index_entry(Op op);
Entry structure_entry(Op op);

// ---- making cases ----------------------------------------------------------------------------------------------------

/// How to fill an argument: the values of example `seed`.
struct Arg {
  Type type;
  std::function<Literal(std::uint64_t seed)> fill;
};
/// Different values spread over (low, high); integers and bools uniform, with the bounds cut to what the dtype holds.
Arg within(const Type& type, double low, double high);
/// The same literal in every example, and by words: exactly(i32, {4}, "0 2 2 1").
Arg exactly(const Literal& value);
Arg exactly(DType dtype, const Shape& shape, std::string_view words);
/// The extremes of a dtype (zeros, largest, smallest, infinities, NaN) as rank 1.
Literal extremes(DType dtype);
/// An argument of them again and again, row-major, from the `first` on.
Arg repeated_extremes(const Type& type, std::int64_t first = 0);

/// A case of one op on args.
OpCase make_case(Op op, std::vector<Arg> args, std::vector<AttrValue> attributes, std::string_view note = "");
template <Op op>
OpCase make_case(std::vector<Arg> args, const attrs_of<op>& a, std::string_view note = "") {
  std::vector<AttrValue> attributes;
  visit_attrs(a, [&](std::string_view, const auto& field) { attributes.emplace_back(field); });
  return make_case(op, std::move(args), std::move(attributes), note);
}
/// A case that refuses: operand types and attributes.
Refused refuse(Op op, std::vector<Type> types, std::vector<AttrValue> attributes, std::string message);
template <Op op>
Refused refuse(std::vector<Type> types, const attrs_of<op>& a, std::string message) {
  std::vector<AttrValue> attributes;
  visit_attrs(a, [&](std::string_view, const auto& field) { attributes.emplace_back(field); });
  return refuse(op, std::move(types), std::move(attributes), std::move(message));
}

std::vector<Op> all_ops();
inline constexpr DType all_dtypes[] = {f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64, bool_};
/// Whether the type rule of the op takes these.
bool takes(Op op, const std::vector<Type>& types, const std::vector<AttrValue>& attributes);

/// Visits the coordinates of a shape in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Ints&)>& f);
/// Row-major position.
std::int64_t position(const Shape& shape, const Ints& index);

}  // namespace burin::op_cases
