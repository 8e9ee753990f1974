// Gather and scatter with every kind of dimension number, repeated and out-of-range indices; dynamic slices at starts that
// must be clamped.
#include <algorithm>
#include <cmath>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

Int clamped(Real start, Int extent, Int window) {
  return static_cast<Int>(std::clamp<Real>(start, 0, static_cast<Real>(extent - window)));
}

struct Gather {
  std::string_view note;
  Shape operand, indices;
  std::string_view words;  // the indices
  attrs::gather dims;
  Expected expected;
};

/// Rows of an [n, d] operand by a vector of indices, clamped.
Reals rows(const std::vector<Literal>& args) {
  Reals result;
  const Int n = args[0].shape()[0], d = args[0].shape()[1];
  for (Int i = 0; i < args[1].shape().size(); ++i)
    for (Int j = 0; j < d; ++j) result.push_back(element(args[0], clamped(element(args[1], i), n, 1) * d + j));
  return result;
}

std::vector<Gather> gathers() {
  return {
      {"rows, one repeated", {5, 3}, {4, 1}, "0 4 1 4",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 3}},
       rows},
      {"rows, no index vector axis", {5, 3}, {4}, "2 2 2 0",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 3}},
       rows},
      {"rows out of range, clipped", {5, 3}, {4}, "-2 7 5 -1",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 3},
        .mode = IndexMode::clip},
       rows},
      {"along the last axis, batching", {3, 5}, {3, 2, 1}, "0 4 1 1 3 2",
       {.collapsed_slice_dims = {1}, .operand_batching_dims = {0}, .indices_batching_dims = {0}, .start_index_map = {1},
        .index_vector_dim = 2, .slice_sizes = {1, 1}},
       [](const std::vector<Literal>& args) {
         Reals result;
         for (Int i = 0; i < 6; ++i) result.push_back(element(args[0], i / 2 * 5 + args[1].int_at(i)));
         return result;
       }},
      {"batching axes in another order", {2, 4, 3}, {3, 1, 2}, "0 3 1 2 3 3",
       {.offset_dims = {0}, .collapsed_slice_dims = {}, .operand_batching_dims = {0, 2}, .indices_batching_dims = {2, 0},
        .start_index_map = {1}, .index_vector_dim = 1, .slice_sizes = {1, 2, 1}, .mode = IndexMode::clip},
       [](const std::vector<Literal>& args) {
         Reals result;  // [window 2, indices 3, indices 2]
         for (Int w = 0; w < 2; ++w)
           for (Int i = 0; i < 3; ++i)
             for (Int j = 0; j < 2; ++j)
               result.push_back(element(args[0], (j * 4 + clamped(args[1].at(i * 2 + j), 4, 2) + w) * 3 + i));
         return result;
       }},
      {"windows at two starts, first in the result", {5, 4}, {3, 2}, "0 0 2 1 3 2",
       {.offset_dims = {0, 1}, .start_index_map = {0, 1}, .index_vector_dim = 1, .slice_sizes = {2, 2}},
       [](const std::vector<Literal>& args) {
         Reals result;
         for (Int u = 0; u < 2; ++u)
           for (Int v = 0; v < 2; ++v)
             for (Int i = 0; i < 3; ++i)
               result.push_back(element(args[0], (args[1].int_at(2 * i) + u) * 4 + args[1].int_at(2 * i + 1) + v));
         return result;
       }},
      {"windows clipped, starts exchanged", {5, 4}, {2, 3}, "9 0 1 -3 4 3",
       {.offset_dims = {1, 2}, .start_index_map = {1, 0}, .index_vector_dim = 0, .slice_sizes = {2, 3}, .mode = IndexMode::clip},
       [](const std::vector<Literal>& args) {
         Reals result;
         for (Int i = 0; i < 3; ++i)
           for (Int u = 0; u < 2; ++u)
             for (Int v = 0; v < 3; ++v)
               result.push_back(
                   element(args[0], (clamped(args[1].at(3 + i), 5, 2) + u) * 4 + clamped(args[1].at(i), 4, 3) + v));
         return result;
       }},
      {"no indices", {5, 3}, {0}, "",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 3}},
       rows},
      {"empty rows", {5, 0}, {2}, "0 3",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 0}},
       rows},
      {"one of one", {1, 1}, {1}, "0",
       {.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1, 1}},
       rows},
  };
}

Entry gather_entry() {
  Entry entry;
  for (const Gather& g : gathers())
    for (DType dtype : all_dtypes) {
      OpCase made = make_case<Op::gather>({within(Type{dtype, g.operand}, -3, 3), exactly(i32, g.indices, g.words)}, g.dims, g.note);
      made.expected = g.expected;
      made.smooth = dtype == f64;
      entry.cases.push_back(std::move(made));
    }
  const attrs::gather take{.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1,
                           .slice_sizes = {1, 3}, .mode = IndexMode::clip};
  for (DType index : all_dtypes)
    if (is_int(index)) {
      OpCase made = make_case<Op::gather>({within(Type{f64, {5, 3}}, -3, 3), within(Type{index, {4}}, -2, 7)}, take, "random rows");
      made.expected = rows;
      made.smooth = true;
      entry.cases.push_back(std::move(made));
      OpCase far = make_case<Op::gather>({within(Type{f64, {5, 3}}, -3, 3), exactly(extremes(index))}, take, "extreme rows");
      far.expected = rows;
      entry.cases.push_back(std::move(far));
    }
  for (DType dtype : all_dtypes) {
    OpCase made = make_case<Op::gather>({repeated_extremes(Type{dtype, {5, 3}}), exactly(i32, {6}, "4 2 -9 3 1 0")}, take, "extremes");
    made.expected = rows;
    entry.cases.push_back(std::move(made));
  }
  // More rows than the index dtype can count.
  OpCase many = make_case<Op::gather>({within(Type{f64, {300, 3}}, -3, 3), exactly(i8, {4}, "127 -128 100 0")}, take, "many rows");
  many.expected = rows;
  many.smooth = true;
  entry.cases.push_back(std::move(many));
  attrs::gather wrong = take;
  wrong.slice_sizes = {2, 3};
  attrs::gather large = take;
  large.slice_sizes = {1, 4};
  entry.refused = {
      refuse<Op::gather>({Type{f32, {5, 3}}, Type{i32, {4}}}, wrong,
                         "gather: slice_sizes: axis 0 is collapsed or batching, expected 1, found 2"),
      refuse<Op::gather>({Type{f32, {5, 3}}, Type{i32, {4}}}, large, "gather: axis 1: a slice of 4 does not fit f32[5,3]"),
      refuse<Op::gather>({Type{f32, {5, 3}}, Type{f32, {4}}}, take,
                         "gather: indices: expected integers, found f32[4] as operand 1"),
      refuse<Op::gather>({Type{f32, {0, 3}}, Type{i32, {4}}}, take,
                         "gather: axis 0 of f32[0,3] is empty, so nothing can be read for the result f32[4,3]")};
  return entry;
}

struct Scatter {
  std::string_view note;
  Shape operand, indices;
  std::string_view words;
  Shape updates;
  attrs::scatter dims;
  /// The operand position of an update element, -1 when its window is dropped.
  std::function<Int(const Literal& indices, const Ints& at)> target;
};

/// Of an operand [5, 3] (or of fewer elements).
Int row_if_inside(const Literal& indices, const Ints& at) {
  const Real row = element(indices, at[0]);
  return row < 0 || row >= 5 ? -1 : static_cast<Int>(row) * 3 + at[1];
}

std::vector<Scatter> scatters() {
  const attrs::scatter by_row{.update_window_dims = {1}, .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0},
                              .index_vector_dim = 1};
  const auto to_row = row_if_inside;
  attrs::scatter drop = by_row;
  drop.mode = IndexMode::clip;
  return {
      {"rows, two alike", {5, 3}, {4}, "0 4 1 4", {4, 3}, by_row, to_row},
      {"rows out of range, dropped", {5, 3}, {5}, "-1 2 5 2 99", {5, 3}, drop, to_row},
      {"windows, one partly out", {5, 4}, {3, 2}, "0 0 1 1 4 1", {3, 2, 2},
       {.update_window_dims = {1, 2}, .scatter_dims_to_operand_dims = {0, 1}, .index_vector_dim = 1, .mode = IndexMode::clip},
       [](const Literal& indices, const Ints& at) {
         const Int row = indices.int_at(2 * at[0]), column = indices.int_at(2 * at[0] + 1);
         return row < 0 || row > 3 || column < 0 || column > 2 ? -1 : (row + at[1]) * 4 + column + at[2];
       }},
      {"along the last axis, batching", {3, 5}, {3, 2, 1}, "0 4 1 1 3 2", {3, 2},
       {.inserted_window_dims = {1}, .operand_batching_dims = {0}, .indices_batching_dims = {0},
        .scatter_dims_to_operand_dims = {1}, .index_vector_dim = 2},
       [](const Literal& indices, const Ints& at) { return at[0] * 5 + indices.int_at(at[0] * 2 + at[1]); }},
      {"window first in the updates, starts exchanged", {4, 5}, {2, 3}, "4 0 1 0 3 3", {2, 3},
       {.update_window_dims = {0}, .inserted_window_dims = {1}, .scatter_dims_to_operand_dims = {1, 0}, .index_vector_dim = 0,
        .mode = IndexMode::clip},
       [](const Literal& indices, const Ints& at) {
         const Int column = indices.int_at(at[1]), row = indices.int_at(3 + at[1]);
         return row < 0 || row > 2 ? -1 : (row + at[0]) * 5 + column;
       }},
      {"no updates", {5, 3}, {0}, "", {0, 3}, by_row, to_row},
      {"one of one", {1, 1}, {1}, "0", {1, 1}, by_row, to_row},
      {"empty rows", {5, 0}, {2}, "0 3", {2, 0}, by_row, to_row},
  };
}

Real combined(Combine combine, Real a, Real b, DType dtype) {
  switch (combine) {
    case Combine::add: return sum(a, b, dtype);
    case Combine::mul: return product(a, b, dtype);
    case Combine::min: return smaller(a, b);
    case Combine::max: return larger(a, b);
    case Combine::set: break;
  }
  return b;
}

Expected scattered(Combine combine, std::function<Int(const Literal& indices, const Ints& at)> target) {
  return [=](const std::vector<Literal>& args) {
    Reals result = elements(args[0]);
    for_each_index(args[2].shape(), [&](const Ints& at) {
      const Int to = target(args[1], at);
      if (to < 0) return;
      Real& slot = result[static_cast<std::size_t>(to)];
      slot = combined(combine, slot, element(args[2], position(args[2].shape(), at)), args[0].dtype());
    });
    return result;
  };
}

Entry scatter_entry() {
  Entry entry;
  for (const Scatter& s : scatters())
    for (Combine combine : {Combine::add, Combine::mul, Combine::min, Combine::max, Combine::set})
      for (DType dtype : all_dtypes) {
        attrs::scatter dims = s.dims;
        dims.combine = combine;
        OpCase made = make_case<Op::scatter>({within(Type{dtype, s.operand}, -3, 3), exactly(i32, s.indices, s.words),
                                              within(Type{dtype, s.updates}, -3, 3)},
                                             dims, std::string(s.note) + ", " + std::string(ir::name(combine)));
        made.expected = scattered(combine, s.target);
        made.smooth = dtype == f64 && (combine == Combine::add || combine == Combine::set);
        entry.cases.push_back(std::move(made));
      }
  for (DType index : all_dtypes)
    if (is_int(index)) {
      const attrs::scatter dims{.update_window_dims = {1}, .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0},
                                .index_vector_dim = 1, .combine = Combine::set, .mode = IndexMode::clip};
      OpCase made = make_case<Op::scatter>({within(Type{f64, {5, 3}}, -3, 3), within(Type{index, {6}}, -2, 7),
                                            within(Type{f64, {6, 3}}, -3, 3)}, dims, "random rows");
      made.expected = scattered(Combine::set, row_if_inside);
      made.smooth = true;
      entry.cases.push_back(std::move(made));
      const Literal far = extremes(index);
      made = make_case<Op::scatter>({within(Type{f64, {5, 3}}, -3, 3), exactly(far),
                                     within(Type{f64, {far.shape()[0], 3}}, -3, 3)}, dims, "extreme rows");
      made.expected = scattered(Combine::set, row_if_inside);
      entry.cases.push_back(std::move(made));
    }
  attrs::scatter by_row{.update_window_dims = {1}, .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0},
                        .index_vector_dim = 1};
  for (Combine combine : {Combine::add, Combine::mul, Combine::min, Combine::max, Combine::set})
    for (DType dtype : all_dtypes) {
      by_row.combine = combine;
      OpCase made = make_case<Op::scatter>({repeated_extremes(Type{dtype, {5, 3}}), exactly(i32, {4}, "0 4 1 4"),
                                            repeated_extremes(Type{dtype, {4, 3}}, 1)},
                                           by_row, "extremes, " + std::string(ir::name(combine)));
      made.expected = scattered(combine, row_if_inside);
      entry.cases.push_back(std::move(made));
    }
  entry.refused = {
      refuse<Op::scatter>({Type{f32, {5, 3}}, Type{i32, {4}}, Type{f32, {3, 3}}}, by_row,
                          "scatter: axis 0 of the updates f32[3,3] is 3, expected 4 as in the indices i32[4]"),
      refuse<Op::scatter>({Type{f32, {5, 3}}, Type{i32, {4}}, Type{f32, {4, 4}}}, by_row,
                          "scatter: axis 1 of the updates f32[4,4] is 4, more than axis 1 of the operand f32[5,3], which is 3"),
      refuse<Op::scatter>({Type{f32, {5, 3}}, Type{i32, {4}}, Type{f64, {4, 3}}}, by_row,
                          "scatter: dtypes differ: operand 0 is f32[5,3], operand 2 is f64[4,3]")};
  return entry;
}

Entry dynamic_slice_entry() {
  Entry entry;
  const auto add_with = [&](std::vector<Arg> args, const Ints& sizes, std::string_view note, bool smooth) {
    const Shape operand = args[0].type.shape;
    OpCase made = make_case<Op::dynamic_slice>(std::move(args), {.sizes = sizes}, note);
    made.expected = [=](const std::vector<Literal>& args) {
      Reals result;
      for_each_index(Shape(sizes), [&](const Ints& at) {
        Ints from = at;
        for (std::size_t i = 0; i < at.size(); ++i) from[i] += clamped(element(args[1 + i], 0), operand[i], sizes[i]);
        result.push_back(element(args[0], position(operand, from)));
      });
      return result;
    };
    made.smooth = smooth;
    entry.cases.push_back(std::move(made));
  };
  const auto add = [&](DType dtype, DType index, const Shape& operand, const Ints& sizes, std::string_view note) {
    std::vector<Arg> args = {within(Type{dtype, operand}, -3, 3)};
    for (std::size_t i = 0; i < operand.rank(); ++i) args.push_back(within(Type{index, {}}, -2, 6));
    add_with(std::move(args), sizes, note, dtype == f64);
  };
  for (DType dtype : all_dtypes) {
    add(dtype, i32, {3, 5}, {2, 3}, "part");
    add(dtype, i32, {1}, {1}, "one");
    add(dtype, i32, {0}, {0}, "empty");
    const auto start = [](const char* word) { return exactly(i32, {}, word); };
    add_with({repeated_extremes(Type{dtype, {3, 5}}), start("1"), start("0")}, {2, 5}, "extremes", false);
  }
  for (DType index : all_dtypes)
    if (is_int(index) && index != i32) add(f64, index, {3, 5}, {2, 3}, "part");
  add(f64, i32, {3, 5}, {3, 5}, "all");
  add(f64, i32, {3, 5}, {0, 2}, "nothing");
  add(f64, i8, {300}, {2}, "a start that cannot reach the end");
  add(f64, i32, {}, {}, "rank 0");
  const Arg operand = within(Type{f64, {3, 5}}, -3, 3);
  add_with({operand, within(Type{u64, {}}, 0, 6), within(Type{i8, {}}, -2, 6)}, {2, 3}, "starts of two dtypes", true);
  add_with({operand, exactly(u64, {}, "0xffffffffffffffff"), exactly(i64, {}, "-9223372036854775808")}, {2, 3},
           "extreme starts", false);
  entry.refused = {refuse<Op::dynamic_slice>({Type{f32, {3}}, Type{i32, {}}}, {.sizes = {4}},
                                             "dynamic_slice: axis 0: a slice of 4 does not fit f32[3]"),
                   refuse<Op::dynamic_slice>({Type{f32, {3}}, Type{i32, {1}}}, {.sizes = {2}},
                                             "dynamic_slice: start: expected rank 0, found i32[1] as operand 1"),
                   refuse<Op::dynamic_slice>({Type{f32, {3}}}, {.sizes = {2}},
                                             "dynamic_slice: 0 start(s), expected one per axis of f32[3], which has 1 axis")};
  return entry;
}

Entry dynamic_update_slice_entry() {
  Entry entry;
  const auto add_with = [&](std::vector<Arg> args, std::string_view note, bool smooth) {
    const Shape operand = args[0].type.shape, update = args[1].type.shape;
    OpCase made = make_case<Op::dynamic_update_slice>(std::move(args), {}, note);
    made.expected = [=](const std::vector<Literal>& args) {
      Reals result = elements(args[0]);
      for_each_index(update, [&](const Ints& at) {
        Ints to = at;
        for (std::size_t i = 0; i < at.size(); ++i) to[i] += clamped(element(args[2 + i], 0), operand[i], update[i]);
        result[static_cast<std::size_t>(position(operand, to))] = element(args[1], position(update, at));
      });
      return result;
    };
    made.smooth = smooth;
    entry.cases.push_back(std::move(made));
  };
  const auto add = [&](DType dtype, DType index, const Shape& operand, const Shape& update, std::string_view note) {
    std::vector<Arg> args = {within(Type{dtype, operand}, -3, 3), within(Type{dtype, update}, -3, 3)};
    for (std::size_t i = 0; i < operand.rank(); ++i) args.push_back(within(Type{index, {}}, -2, 6));
    add_with(std::move(args), note, dtype == f64);
  };
  for (DType dtype : all_dtypes) {
    add(dtype, i32, {3, 5}, {2, 3}, "part");
    add(dtype, i32, {1}, {1}, "one");
    add(dtype, i32, {0}, {0}, "empty");
    const auto start = [](const char* word) { return exactly(i32, {}, word); };
    add_with({repeated_extremes(Type{dtype, {3, 5}}), repeated_extremes(Type{dtype, {2, 3}}, 5), start("1"), start("1")},
             "extremes", false);
  }
  for (DType index : all_dtypes)
    if (is_int(index) && index != i32) add(f64, index, {3, 5}, {2, 3}, "part");
  add(f64, i32, {3, 5}, {3, 5}, "all");
  add(f64, i32, {3, 5}, {0, 2}, "nothing");
  add(f64, i8, {300}, {2}, "a start that cannot reach the end");
  add(f64, i32, {}, {}, "rank 0");
  const Arg operand = within(Type{f64, {3, 5}}, -3, 3), update = within(Type{f64, {2, 3}}, -3, 3);
  add_with({operand, update, within(Type{u64, {}}, 0, 6), within(Type{i8, {}}, -2, 6)}, "starts of two dtypes", true);
  add_with({operand, update, exactly(u64, {}, "0xffffffffffffffff"), exactly(i64, {}, "-9223372036854775808")},
           "extreme starts", false);
  entry.refused = {refuse<Op::dynamic_update_slice>({Type{f32, {3}}, Type{f32, {4}}, Type{i32, {}}}, {},
                                                    "dynamic_update_slice: axis 0: the update f32[4] does not fit f32[3]"),
                   refuse<Op::dynamic_update_slice>({Type{f32, {3}}, Type{f64, {2}}, Type{i32, {}}}, {},
                                                    "dynamic_update_slice: dtypes differ: operand 0 is f32[3], operand 1 is "
                                                    "f64[2]")};
  return entry;
}

Entry iota_entry() {
  Entry entry;
  for (DType dtype : all_dtypes) {
    if (!takes(Op::iota, {}, {dtype, Ints{3}, Int{0}})) continue;
    const auto add = [&](const Shape& shape, Int axis) {
      OpCase made = make_case<Op::iota>({}, {.dtype = dtype, .shape = Ints(shape.begin(), shape.end()), .axis = axis},
                                        to_string(Type{dtype, shape}) + " along " + std::to_string(axis));
      made.expected = [=](const std::vector<Literal>&) {
        Reals result;
        for_each_index(shape, [&](const Ints& at) { result.push_back(static_cast<Real>(at[static_cast<std::size_t>(axis)])); });
        return result;
      };
      entry.cases.push_back(std::move(made));
    };
    add({3, 5}, 0);
    add({3, 5}, 1);
    add({1}, 0);
    add({0}, 0);
    add({2, 0, 3}, 2);
  }
  entry.refused = {refuse<Op::iota>({}, {.dtype = bool_, .shape = {3}, .axis = 0}, "iota: expected a number dtype, found bool"),
                   refuse<Op::iota>({}, {.dtype = i32, .shape = {3}, .axis = 1},
                                    "iota: axis: axis 1 is out of range for i32[3], which has 1 axis")};
  return entry;
}

Entry constant_entry() {
  Entry entry;
  for (DType dtype : all_dtypes) {
    const auto add = [&](const Literal& value, std::string_view note) {
      entry.cases.push_back(make_case<Op::constant>({}, {.value = value}, to_string(value.type()) + " " + std::string(note)));
      Literal expected = value;
      expected.expand();
      entry.cases.back().expected = [expected](const std::vector<Literal>&) { return elements(expected); };
    };
    add(within(Type{dtype, {3, 5}}, -3, 3).fill(0), "random");
    add(extremes(dtype), "extremes");
    add(Literal::splat({3, 5}, Literal::scalar(dtype, 1)), "splat");
    add(Literal::scalar(dtype, 1), "scalar");
    add(within(Type{dtype, {1}}, -3, 3).fill(0), "one");
    add(Literal(Type{dtype, {0, 3}}), "empty");
  }
  entry.refused = {refuse<Op::constant>({Type{f32, {}}}, {.value = Literal::scalar(f32, 1)},
                                        "constant: expected 0 operands, found 1")};
  return entry;
}

}  // namespace

Entry index_entry(Op op) {
  switch (op) {
    case Op::constant: return constant_entry();
    case Op::iota: return iota_entry();
    case Op::gather: return gather_entry();
    case Op::scatter: return scatter_entry();
    case Op::dynamic_slice: return dynamic_slice_entry();
    case Op::dynamic_update_slice: return dynamic_update_slice_entry();
    default: return {};
  }
}

}  // namespace burin::op_cases
