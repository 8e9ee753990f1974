#include <algorithm>

#include "passes/simplify/rules.h"

namespace burin::passes::rewrite {
namespace {

Shape without_ones(const Shape& shape) {
  Shape result;
  for (std::int64_t extent : shape)
    if (extent != 1) result.push_back(extent);
  return result;
}

// broadcast(reshape(x)) where the reshape only inserts or drops axes of extent 1 is a broadcast of x without them.
Rewrite broadcast(const Site& s) {
  const auto a = s.attrs<Op::broadcast>();
  const Function& f = s.f();
  const Shape& to = s.results[0].shape;
  if (s.type(0).shape == to) return s.operands[0];
  if (const auto splat = splat_of(f, s.operands[0])) return s.b.constant(Literal::splat(to, *splat));
  if (const OpId inner = s.def(0, Op::broadcast); inner.valid()) {
    Ints dims;
    const Shape& from = f.type(f.operand(inner, 0)).shape;
    const Ints inner_dims = f.attrs<Op::broadcast>(inner).dims;
    bool plain = true;
    for (std::size_t i = 0; i < inner_dims.size(); ++i) {
      const auto axis = static_cast<std::size_t>(inner_dims[i]);
      dims.push_back(a.dims[axis]);
      // An axis stretched by both keeps meaning the same only when its extent is 1 at the start or final in the middle.
      plain = plain && (from[i] == 1 || from[i] == to[static_cast<std::size_t>(a.dims[axis])]);
    }
    if (plain) return s.b.broadcast(f.operand(inner, 0), to, dims);
  }
  if (const OpId inner = s.def(0, Op::reshape); inner.valid()) {
    const ValueId x = f.operand(inner, 0);
    const Shape &from = f.type(x).shape, &middle = s.type(0).shape;
    if (!(without_ones(from) == without_ones(middle))) return {};
    // The axes of x that are not 1, in order, are those of the middle; axes of 1 vanish by a reshape that is free.
    Ints dims;
    for (std::size_t i = 0; i < middle.rank(); ++i)
      if (middle[i] != 1) dims.push_back(a.dims[i]);
    const Shape squeezed = without_ones(from);
    if (squeezed == from) return s.b.broadcast(x, to, dims);
    if (squeezed == middle) return {};
    return s.b.broadcast(s.b.reshape(x, squeezed), to, dims);
  }
  return {};
}

}  // namespace

Rewrite movement(const Site& s) {
  const Function& f = s.f();
  switch (s.op) {
    case Op::reshape: {
      if (s.type(0).shape == s.results[0].shape) return s.operands[0];
      if (const auto splat = splat_of(f, s.operands[0])) return s.b.constant(Literal::splat(s.results[0].shape, *splat));
      if (const OpId inner = s.def(0, Op::reshape); inner.valid())
        return s.b.reshape(f.operand(inner, 0), s.results[0].shape);
      return {};
    }
    case Op::transpose: {
      const Ints permutation = s.attrs<Op::transpose>().permutation;
      if (std::is_sorted(permutation.begin(), permutation.end())) return s.operands[0];
      if (const auto splat = splat_of(f, s.operands[0])) return s.b.constant(Literal::splat(s.results[0].shape, *splat));
      if (const OpId inner = s.def(0, Op::transpose); inner.valid()) {
        const Ints first = f.attrs<Op::transpose>(inner).permutation;
        Ints both;
        for (std::int64_t axis : permutation) both.push_back(first[static_cast<std::size_t>(axis)]);
        return s.b.transpose(f.operand(inner, 0), both);
      }
      return {};
    }
    case Op::broadcast: return broadcast(s);
    case Op::slice: {
      if (s.type(0).shape == s.results[0].shape) return s.operands[0];
      if (const auto splat = splat_of(f, s.operands[0])) return s.b.constant(Literal::splat(s.results[0].shape, *splat));
      return {};
    }
    case Op::pad: {
      const auto a = s.attrs<Op::pad>();
      const auto zeros = [](const Ints& list) { return std::all_of(list.begin(), list.end(), [](auto x) { return x == 0; }); };
      if (zeros(a.low) && zeros(a.high) && zeros(a.interior)) return s.operands[0];
      return {};
    }
    case Op::concatenate:
      if (s.operands.size() == 1) return s.operands[0];
      return {};
    case Op::reverse:
      if (s.attrs<Op::reverse>().axes.empty()) return s.operands[0];
      return {};
    case Op::reduce_sum:
    case Op::reduce_prod:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::reduce_and:
    case Op::reduce_or: {
      // Nothing to combine along axes of extent 1.
      const Ints axes = std::get<Ints>(s.attributes[0]);
      const Shape& from = s.type(0).shape;
      if (std::all_of(axes.begin(), axes.end(), [&](std::int64_t axis) { return from[static_cast<std::size_t>(axis)] == 1; }))
      {
        const ValueId same = s.b.reshape(s.operands[0], s.results[0].shape);
        // A sum starts from +0, which makes +0 of a lone -0.
        const bool from_zero = s.op == Op::reduce_sum && is_float(s.results[0].dtype);
        return from_zero ? s.b.add(same, s.b.full(s.results[0], 0)) : same;
      }
      return {};
    }
    default: return {};
  }
}

}  // namespace burin::passes::rewrite
