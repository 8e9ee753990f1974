// Movement ops are linear: jvp applies them to the tangent, transpose moves the cotangent back.
#include "base/check.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {

void transpose(Tag<Op::reshape>, TransposeContext& c) { c.give(0, c.b.reshape(c.ct(), c.operand_type(0).shape)); }

void transpose(Tag<Op::transpose>, TransposeContext& c) {
  const Ints permutation = c.attrs<Op::transpose>().permutation;
  Ints inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  c.give(0, c.b.transpose(c.ct(), inverse));
}

void transpose(Tag<Op::broadcast>, TransposeContext& c) {
  const Ints dims = c.attrs<Op::broadcast>().dims;
  const Shape& from = c.operand_type(0).shape;
  const Shape to = c.source.type(c.source.result(c.op)).shape;
  Ints summed;
  for (std::size_t axis = 0, next = 0; axis < to.rank(); ++axis) {
    if (next < dims.size() && dims[next] == static_cast<std::int64_t>(axis)) {
      if (from[next] != to[axis]) summed.push_back(static_cast<std::int64_t>(axis));  // an extent of 1 that was stretched
      ++next;
    } else {
      summed.push_back(static_cast<std::int64_t>(axis));
    }
  }
  const ValueId sum = summed.empty() ? c.ct() : c.b.reduce(Op::reduce_sum, c.ct(), summed);
  c.give(0, c.b.reshape(sum, from));
}

void transpose(Tag<Op::slice>, TransposeContext& c) {
  const attrs::slice a = c.attrs<Op::slice>();
  const Shape& from = c.operand_type(0).shape;
  const Shape& to = c.source.type(c.source.result(c.op)).shape;
  attrs::pad p;
  for (std::size_t i = 0; i < from.rank(); ++i) {
    const std::int64_t reach = to[i] == 0 ? 0 : a.start[i] + (to[i] - 1) * a.stride[i] + 1;
    p.low.push_back(to[i] == 0 ? from[i] : a.start[i]);
    p.high.push_back(to[i] == 0 ? 0 : from[i] - reach);
    p.interior.push_back(to[i] == 0 ? 0 : a.stride[i] - 1);
  }
  const ValueId zero = c.b.full(Type{c.operand_type(0).dtype, {}}, 0);
  c.give(0, c.b.emit<Op::pad>({c.ct(), zero}, p));
}

void transpose(Tag<Op::pad>, TransposeContext& c) {
  Builder& b = c.b;
  const attrs::pad a = c.attrs<Op::pad>();
  const Type& type = c.operand_type(0);
  if (c.linear[1]) {
    // The value went to the elements that are padding, which the attributes alone tell.
    const ValueId where = b.emit<Op::pad>(
        {b.full(Type{DType::bool_, type.shape}, 0), b.full(Type{DType::bool_, {}}, 1)}, a);
    Ints all;
    for (std::size_t i = 0; i < type.rank(); ++i) all.push_back(static_cast<std::int64_t>(i));
    const ValueId padding = b.select(where, c.ct(), b.full_like(c.ct(), 0));
    c.give(1, b.reduce(Op::reduce_sum, padding, all));
  }
  if (!c.linear[0]) return;
  // Undo the edges, then take every (interior + 1)th element.
  attrs::pad crop;
  attrs::slice pick;
  for (std::size_t i = 0; i < type.rank(); ++i) {
    crop.low.push_back(-a.low[i]);
    crop.high.push_back(-a.high[i]);
    crop.interior.push_back(0);
    pick.start.push_back(0);
    pick.stride.push_back(a.interior[i] + 1);
  }
  const ValueId zero = b.full(Type{type.dtype, {}}, 0);
  const ValueId cropped = b.emit<Op::pad>({c.ct(), zero}, crop);
  for (std::int64_t extent : b.type(cropped).shape) pick.limit.push_back(extent);
  c.give(0, b.emit<Op::slice>({cropped}, pick));
}

void transpose(Tag<Op::concatenate>, TransposeContext& c) {
  const auto axis = static_cast<std::size_t>(c.attrs<Op::concatenate>().axis);
  const Shape to = c.source.type(c.source.result(c.op)).shape;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < c.linear.size(); ++i) {
    const std::int64_t extent = c.operand_type(i).shape[axis];
    if (c.linear[i]) {
      attrs::slice a{.start = Ints(to.rank(), 0), .limit = Ints(to.begin(), to.end()), .stride = Ints(to.rank(), 1)};
      a.start[axis] = offset;
      a.limit[axis] = offset + extent;
      c.give(i, c.b.emit<Op::slice>({c.ct()}, a));
    }
    offset += extent;
  }
}

void transpose(Tag<Op::reverse>, TransposeContext& c) {
  c.give(0, c.b.emit<Op::reverse>({c.ct()}, c.attrs<Op::reverse>()));
}

}  // namespace burin::passes::autodiff
