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

/// Folds the elements that meet in each element of the result, in f64.
std::vector<double> fold(const Literal& x, const Ints& axes, double start, double (*combine)(double, double)) {
  Shape rest;
  for (std::size_t i = 0; i < x.shape().rank(); ++i)
    if (!contains(axes, i)) rest.push_back(x.shape()[i]);
  std::vector<double> result(static_cast<std::size_t>(rest.size()), start);
  for_each_index(x.shape(), [&](const Ints& at) {
    Ints kept;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (!contains(axes, i)) kept.push_back(at[i]);
    double& slot = result[static_cast<std::size_t>(position(rest, kept))];
    slot = combine(slot, x.at(position(x.shape(), at)));
  });
  return result;
}

struct Fold {
  double start;
  double (*combine)(double, double);
};
Fold reference(Op op) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case Op::reduce_sum: return {0, [](double a, double b) { return a + b; }};
    case Op::reduce_prod: return {1, [](double a, double b) { return a * b; }};
    case Op::reduce_max: return {-inf, [](double a, double b) { return std::isnan(a) || a > b ? a : b; }};
    case Op::reduce_min: return {inf, [](double a, double b) { return std::isnan(a) || a < b ? a : b; }};
    default: return {0, nullptr};
  }
}

Entry fold_entry(Op op) {
  Entry entry;
  const Fold row = reference(op);
  for (DType dtype : all_dtypes) {
    if (!takes(op, {Type{dtype, {1}}}, {Ints{0}})) continue;
    const auto add = [&](Arg arg, const Ints& axes, bool smooth, std::string note) {
      for (Int axis : axes) note += (note.empty() ? "over " : ",") + std::to_string(axis);
      OpCase made = make_case(op, {std::move(arg)}, {axes}, note);
      if (is_float(dtype) && row.combine)
        made.expected = [row, axes](const std::vector<Literal>& args) { return fold(args[0], axes, row.start, row.combine); };
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
