// Reductions over each kind of axes: inner, outer, several, none, of extent 1 and of extent 0.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

struct Axes {
  Shape shape;
  Ints axes;
};
const Axes reductions[] = {{{3, 5}, {0}},    {{3, 5}, {1}},    {{3, 5}, {0, 1}}, {{3, 5}, {1, 0}}, {{3, 5}, {}}, {{2, 3, 4}, {1}},
                           {{2, 3, 4}, {0, 2}}, {{1}, {0}}, {{3, 1}, {1}}, {{3, 0}, {0}}, {{}, {}}};
const Axes empty_reductions[] = {{{0}, {0}}, {{3, 0}, {1}}};

bool contains(const Ints& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<Int>(axis)) != axes.end();
}

/// The extents without those of `axes`, and the place there of an element.
Shape without(const Shape& shape, const Ints& axes) {
  Shape rest;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (!contains(axes, i)) rest.push_back(shape[i]);
  return rest;
}
std::size_t place_without(const Shape& shape, const Ints& axes, const Ints& at) {
  Ints kept;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (!contains(axes, i)) kept.push_back(at[i]);
  return static_cast<std::size_t>(position(without(shape, axes), kept));
}

/// What a reduction gives for nothing, and for one element more.
Real start_of(Op op, DType dtype) {
  const Real inf = std::numeric_limits<Real>::infinity();
  switch (op) {
    case Op::reduce_prod: return 1;
    case Op::reduce_max: return is_float(dtype) ? -inf : lowest_of(dtype);
    case Op::reduce_min: return is_float(dtype) ? inf : highest_of(dtype);
    case Op::reduce_and: return of_word(~std::uint64_t{0}, dtype);
    default: return 0;
  }
}
Real combined(Op op, Real a, Real b, DType dtype) {
  switch (op) {
    case Op::reduce_sum: return sum(a, b, dtype);
    case Op::reduce_prod: return product(a, b, dtype);
    case Op::reduce_max: return larger(a, b);
    case Op::reduce_min: return smaller(a, b);
    case Op::reduce_and: return of_word(word(a) & word(b), dtype);
    default: return of_word(word(a) | word(b), dtype);
  }
}

Expected folded(Op op, const Ints& axes) {
  return [=](const std::vector<Literal>& args) {
    const Literal& x = args[0];
    Reals result(static_cast<std::size_t>(without(x.shape(), axes).size()), start_of(op, x.dtype()));
    for_each_index(x.shape(), [&](const Ints& at) {
      Real& slot = result[place_without(x.shape(), axes, at)];
      slot = combined(op, slot, element(x, position(x.shape(), at)), x.dtype());
    });
    return result;
  };
}

/// The first index of a NaN, or else of the best.
Expected first_best(Op op, Int axis) {
  return [=](const std::vector<Literal>& args) {
    const Literal& x = args[0];
    const auto count = static_cast<std::size_t>(without(x.shape(), {axis}).size());
    Reals result(count, 0), best(count, 0);
    for_each_index(x.shape(), [&](const Ints& at) {
      const Real value = element(x, position(x.shape(), at));
      const Int index = at[static_cast<std::size_t>(axis)];
      const std::size_t slot = place_without(x.shape(), {axis}, at);
      const bool better = op == Op::argmax ? value > best[slot] : value < best[slot];
      if (index != 0 && (std::isnan(best[slot]) || !(better || std::isnan(value)))) return;
      best[slot] = value;
      result[slot] = static_cast<Real>(index);
    });
    return result;
  };
}

Entry fold_entry(Op op) {
  Entry entry;
  for (DType dtype : all_dtypes) {
    if (!takes(op, {Type{dtype, {1}}}, {Ints{0}})) continue;
    const auto add = [&](Arg arg, const Ints& axes, bool smooth, std::string note) {
      for (Int axis : axes) note += (note.empty() ? "over " : ",") + std::to_string(axis);
      OpCase made = make_case(op, {std::move(arg)}, {axes}, note);
      made.expected = folded(op, axes);
      made.smooth = smooth;
      entry.cases.push_back(std::move(made));
    };
    for (const Axes& r : reductions) add(within(Type{dtype, r.shape}, -3, 3), r.axes, dtype == f64, "");
    for (const Axes& r : empty_reductions) add(within(Type{dtype, r.shape}, -3, 3), r.axes, dtype == f64, "");
    add(exactly(extremes(dtype)), {0}, false, "extremes ");
  }
  entry.refused = {refuse(op, {Type{i32, {3, 5}}}, {Ints{2}},
                          std::string(ir::name(op)) + ": axes: axis 2 is out of range for i32[3,5], which has 2 axes"),
                   refuse(op, {Type{i32, {3, 5}}}, {Ints{1, 1}}, std::string(ir::name(op)) + ": axes: axis 1 occurs twice")};
  return entry;
}

Entry arg_entry(Op op) {
  Entry entry;
  const auto add = [&](Arg arg, Int axis, DType dtype, std::string_view note = "") {
    entry.cases.push_back(make_case(op, {std::move(arg)}, {axis, dtype},
                                    "along " + std::to_string(axis) + " as " + std::string(name(dtype)) +
                                        std::string(note)));
    entry.cases.back().expected = first_best(op, axis);
  };
  for (DType from : all_dtypes) {
    if (!takes(op, {Type{from, {1}}}, {Int{0}, DType::i32})) continue;
    add(within(Type{from, {3, 5}}, -3, 3), 0, i32);
    add(within(Type{from, {3, 5}}, -3, 3), 1, i64);
    add(within(Type{from, {2, 3, 4}}, -3, 3), 1, i32);
    add(within(Type{from, {1}}, -3, 3), 0, i32);
    add(within(Type{from, {3, 0}}, -3, 3), 0, i32);
    add(exactly(extremes(from)), 0, i32, " extremes");
  }
  for (DType to : all_dtypes)
    if (is_int(to) && to != i64) add(within(Type{f64, {3, 5}}, -3, 3), 1, to);
  for (OpCase& made : entry.cases)  // constant between jumps: integers, no tangent
    made.smooth = made.name.starts_with("f64") && made.name.find("extremes") == std::string::npos;
  entry.refused = {
      refuse(op, {Type{f32, {3, 0}}}, {Int{1}, DType::i32},
             std::string(ir::name(op)) + ": axis 1 of f32[3,0] is empty, so no index exists"),
      refuse(op, {Type{f32, {3}}}, {Int{0}, DType::f32},
             std::string(ir::name(op)) + ": expected an integer dtype for the indices, found f32"),
      refuse(op, {Type{f32, {300}}}, {Int{0}, DType::u8},
             std::string(ir::name(op)) + ": u8 cannot hold every index of axis 0 of f32[300], whose extent is 300")};
  return entry;
}

}  // namespace

Entry reduce_entry(Op op) { return op == Op::argmax || op == Op::argmin ? arg_entry(op) : fold_entry(op); }

}  // namespace burin::op_cases
