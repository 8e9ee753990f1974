// Movement ops: where each element of the result comes from, stated a second time.
#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

/// Where an element comes from: operand and position, or nowhere.
struct Source {
  std::size_t operand;
  Ints at;
};
using From = std::function<Source(const Ints& at)>;

Expected taken(const Shape& result, From from) {
  return [=](const std::vector<Literal>& args) {
    Reals elements;
    for_each_index(result, [&](const Ints& at) {
      const Source source = from(at);
      elements.push_back(element(args[source.operand], position(args[source.operand].shape(), source.at)));
    });
    return elements;
  };
}

/// The case for every dtype, smooth for f64; of a 3x5 operand also with extremes.
void add(Entry& entry, Op op, const std::vector<Shape>& shapes, const std::vector<AttrValue>& attributes, From from,
         const std::string& note = "") {
  for (DType dtype : all_dtypes)
    for (bool extreme : {false, true}) {
      if (extreme && shapes[0] != Shape{3, 5}) continue;
      std::vector<Arg> args;
      for (const Shape& shape : shapes) {
        const Type type{dtype, shape};
        args.push_back(extreme ? repeated_extremes(type, 7 * static_cast<Int>(args.size())) : within(type, -100, 100));
      }
      OpCase made = make_case(op, args, attributes, note + (extreme ? " extremes" : ""));
      made.expected = taken(made.function.type(made.function.results()[0]).shape, from);
      made.smooth = dtype == f64 && !extreme;
      entry.cases.push_back(std::move(made));
    }
}

Entry reshape_entry() {
  Entry entry;
  const auto flat = [&](const Shape& from, const Shape& to) {
    add(entry, Op::reshape, {from}, {Ints(to.begin(), to.end())},
        [=](const Ints& at) {
          Source source{0, Ints(from.rank())};
          for (std::int64_t rest = position(to, at), i = static_cast<std::int64_t>(from.rank()); i-- > 0;) {
            source.at[static_cast<std::size_t>(i)] = rest % from[static_cast<std::size_t>(i)];
            rest /= from[static_cast<std::size_t>(i)];
          }
          return source;
        },
        "to " + to_string(to));
  };
  flat({3, 5}, {5, 3});
  flat({3, 5}, {15});
  flat({2, 3, 4}, {6, 2, 2});
  flat({1}, {});
  flat({}, {1, 1});
  flat({3, 0}, {0, 7});
  entry.refused = {refuse<Op::reshape>({Type{f32, {3, 5}}}, {.shape = {4, 4}},
                                       "reshape: f32[3,5] has 15 elements, the shape [4,4] has 16")};
  return entry;
}

Entry transpose_entry() {
  Entry entry;
  const auto permuted = [&](const Shape& from, const Ints& permutation) {
    std::string note = "by";
    for (Int axis : permutation) note += " " + std::to_string(axis);
    add(entry, Op::transpose, {from}, {permutation},
        [=](const Ints& at) {
          Source source{0, Ints(from.rank())};
          for (std::size_t i = 0; i < at.size(); ++i) source.at[static_cast<std::size_t>(permutation[i])] = at[i];
          return source;
        },
        note);
  };
  permuted({3, 5}, {1, 0});
  permuted({3, 5}, {0, 1});
  permuted({2, 3, 4}, {2, 0, 1});
  permuted({2, 3, 4}, {1, 2, 0});
  permuted({1, 5}, {1, 0});
  permuted({1}, {0});
  permuted({0, 3}, {1, 0});
  permuted({}, {});
  entry.refused = {refuse<Op::transpose>({Type{f32, {3, 5}}}, {.permutation = {0, 0}},
                                         "transpose: permutation: axis 0 occurs twice"),
                   refuse<Op::transpose>({Type{f32, {3, 5}}}, {.permutation = {0}},
                                         "transpose: permutation has 1 entry, expected one per axis of f32[3,5], which has "
                                         "2 axes")};
  return entry;
}

Entry broadcast_entry() {
  Entry entry;
  const auto repeated = [&](const Shape& from, const Shape& to, const Ints& dims) {
    add(entry, Op::broadcast, {from}, {Ints(to.begin(), to.end()), dims},
        [=](const Ints& at) {
          Source source{0, {}};
          for (std::size_t i = 0; i < dims.size(); ++i)
            source.at.push_back(from[i] == 1 ? 0 : at[static_cast<std::size_t>(dims[i])]);
          return source;
        },
        "to " + to_string(to));
  };
  repeated({}, {3, 5}, {});
  repeated({5}, {3, 5}, {1});
  repeated({3}, {3, 5}, {0});
  repeated({3, 1}, {3, 5}, {0, 1});
  repeated({1}, {4}, {0});
  repeated({3, 5}, {2, 3, 4, 5}, {1, 3});
  repeated({0}, {0, 3}, {0});
  repeated({3}, {0, 3}, {1});
  repeated({1}, {0}, {0});
  entry.refused = {refuse<Op::broadcast>({Type{f32, {3, 5}}}, {.shape = {3, 4}, .dims = {0, 1}},
                                         "broadcast: axis 1 of f32[3,5] is 5, axis 1 of the result f32[3,4] is 4: expected "
                                         "equal extents or 1")};
  return entry;
}

Entry slice_entry() {
  Entry entry;
  const auto cut = [&](const Shape& from, const Ints& start, const Ints& limit, const Ints& stride) {
    add(entry, Op::slice, {from}, {start, limit, stride}, [=](const Ints& at) {
      Source source{0, {}};
      for (std::size_t i = 0; i < at.size(); ++i) source.at.push_back(start[i] + at[i] * stride[i]);
      return source;
    }, "slice " + std::to_string(entry.cases.size()));
  };
  cut({3, 5}, {1, 0}, {3, 4}, {1, 1});
  cut({3, 5}, {0, 0}, {3, 5}, {2, 3});
  cut({7}, {1}, {6}, {2});
  cut({3, 5}, {1, 2}, {1, 5}, {1, 1});
  cut({1}, {0}, {1}, {1});
  cut({1}, {0}, {1}, {5});
  cut({0}, {0}, {0}, {1});
  cut({}, {}, {}, {});
  entry.refused = {refuse<Op::slice>({Type{f32, {3}}}, {.start = {2}, .limit = {4}, .stride = {1}},
                                     "slice: axis 0 of f32[3]: expected 0 <= start <= limit <= 3, found start 2 and limit 4"),
                   refuse<Op::slice>({Type{f32, {3}}}, {.start = {0}, .limit = {3}, .stride = {0}},
                                     "slice: axis 0: expected a stride of at least 1, found 0")};
  return entry;
}

Entry pad_entry() {
  Entry entry;
  const auto padded = [&](const Shape& from, const Ints& low, const Ints& high, const Ints& interior) {
    add(entry, Op::pad, {from, {}}, {low, high, interior}, [=](const Ints& at) {
      Source source{0, {}};
      for (std::size_t i = 0; i < at.size(); ++i) {
        const Int place = at[i] - low[i], step = interior[i] + 1;
        if (place < 0 || place % step != 0 || place / step >= from[i]) return Source{1, {}};
        source.at.push_back(place / step);
      }
      return source;
    }, "pad " + std::to_string(entry.cases.size()));
  };
  padded({3, 5}, {1, 0}, {0, 2}, {0, 0});
  padded({3, 5}, {0, 2}, {1, 0}, {1, 2});
  padded({5}, {-1}, {-2}, {0});
  padded({5}, {-2}, {3}, {1});
  padded({3, 5}, {-1, 2}, {1, -3}, {2, 0});
  padded({5}, {-3}, {-2}, {0});
  padded({1}, {1}, {1}, {3});
  padded({0}, {2}, {1}, {2});
  padded({}, {}, {}, {});
  entry.refused = {refuse<Op::pad>({Type{f32, {3}}, Type{f32, {}}}, {.low = {-2}, .high = {-2}, .interior = {0}},
                                   "pad: axis 0 of f32[3] would have the extent -1 (low -2, high -2, interior 0)"),
                   refuse<Op::pad>({Type{f32, {3}}, Type{f32, {}}}, {.low = {0}, .high = {0}, .interior = {-1}},
                                   "pad: axis 0: expected interior >= 0, found -1")};
  return entry;
}

Entry concatenate_entry() {
  Entry entry;
  const auto joined = [&](const std::vector<Shape>& parts, Int axis) {
    add(entry, Op::concatenate, parts, {axis}, [=](const Ints& at) {
      Source source{0, at};
      const auto a = static_cast<std::size_t>(axis);
      while (source.at[a] >= parts[source.operand][a]) source.at[a] -= parts[source.operand++][a];
      return source;
    }, "along " + std::to_string(axis));
  };
  joined({{3, 5}, {2, 5}}, 0);
  joined({{3, 5}, {3, 1}, {3, 4}}, 1);
  joined({{3, 5}, {0, 5}, {1, 5}}, 0);
  joined({{1}}, 0);
  joined({{0}, {0}}, 0);
  joined({{2, 0, 3}, {2, 0, 3}}, 2);
  entry.refused = {refuse<Op::concatenate>({Type{f32, {3, 5}}, Type{f32, {3, 4}}}, {.axis = 0},
                                           "concatenate: axis 1 differs: operand 0, f32[3,5], has 5, operand 1, f32[3,4], "
                                           "has 4"),
                   refuse<Op::concatenate>({}, {.axis = 0}, "concatenate: expected at least 1 operand(s), found 0")};
  return entry;
}

Entry reverse_entry() {
  Entry entry;
  const auto turned = [&](const Shape& from, const Ints& axes) {
    std::string note = "along";
    for (Int axis : axes) note += " " + std::to_string(axis);
    add(entry, Op::reverse, {from}, {axes}, [=](const Ints& at) {
      Source source{0, at};
      for (Int axis : axes) {
        const auto a = static_cast<std::size_t>(axis);
        source.at[a] = from[a] - 1 - at[a];
      }
      return source;
    }, note);
  };
  turned({3, 5}, {0});
  turned({3, 5}, {1, 0});
  turned({2, 3, 4}, {1});
  turned({3, 5}, {});
  turned({1}, {0});
  turned({0}, {0});
  turned({}, {});
  entry.refused = {refuse<Op::reverse>({Type{f32, {3}}}, {.axes = {1}},
                                       "reverse: axes: axis 1 is out of range for f32[3], which has 1 axis")};
  return entry;
}

}  // namespace

Entry movement_entry(Op op) {
  switch (op) {
    case Op::reshape: return reshape_entry();
    case Op::transpose: return transpose_entry();
    case Op::broadcast: return broadcast_entry();
    case Op::slice: return slice_entry();
    case Op::pad: return pad_entry();
    case Op::concatenate: return concatenate_entry();
    case Op::reverse: return reverse_entry();
    default: return {};
  }
}

}  // namespace burin::op_cases
