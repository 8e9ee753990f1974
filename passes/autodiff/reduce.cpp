#include <algorithm>

#include "base/check.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {
namespace {

// Axes of the operand that a reduction keeps, in order: where its result goes when it is broadcast back.
Ints kept_axes(std::size_t rank, const Ints& axes) {
  Ints kept;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(rank); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(axis);
  return kept;
}

ValueId broadcast_back(Builder& b, ValueId reduced, const Shape& shape, const Ints& axes) {
  return b.emit<Op::broadcast>({reduced}, {.shape = Ints(shape.begin(), shape.end()), .dims = kept_axes(shape.rank(), axes)});
}

}  // namespace

void jvp(Tag<Op::reduce_sum>, JvpContext& c) {
  c.emit_primal();
  c.add_tangent(0, c.b.reduce(Op::reduce_sum, *c.tangent(0), c.attrs<Op::reduce_sum>().axes));
}

// The elements that equal the extremum share its derivative equally. Where the extremum is NaN, so are all derivatives, in
// either mode: there every element counts as one that hits, and their number is NaN.
void jvp_extremum(JvpContext& c, const Ints& axes) {
  Builder& b = c.b;
  const ValueId x = c.primal(0), y = c.emit_primal(), t = *c.tangent(0);
  if (b.type(x).size() == 0) return;  // the extremum of nothing is constant
  const ValueId zero = b.full_like(x, 0), all = broadcast_back(b, y, b.type(x).shape, axes);
  const ValueId hit = b.bit_not(c.source.kind(c.op) == Op::reduce_max ? b.lt(x, all) : b.gt(x, all));
  const ValueId hits = b.reduce(Op::reduce_sum, b.select(hit, b.full_like(x, 1), zero), axes);
  const ValueId count = b.select(b.eq(y, y), hits, y);
  c.add_tangent(0, b.div(b.reduce(Op::reduce_sum, b.select(hit, t, zero), axes), count));
}

// A balanced tree of products, each with the product rule: right to every order, zeros or not. Half types multiply in f32,
// as the op does.
void jvp(Tag<Op::reduce_prod>, JvpContext& c) {
  Builder& b = c.b;
  const Ints axes = c.attrs<Op::reduce_prod>().axes;
  const Type type = b.type(c.primal(0));
  const ValueId result = c.emit_primal();
  // The reduced axes go to the front as one axis of n elements.
  Ints order = axes;
  const Ints kept = kept_axes(type.rank(), axes);
  order.insert(order.end(), kept.begin(), kept.end());
  Shape flat{1};
  for (std::int64_t axis : axes) flat[0] *= type.shape[static_cast<std::size_t>(axis)];
  for (std::int64_t axis : kept) flat.push_back(type.shape[static_cast<std::size_t>(axis)]);
  std::int64_t n = flat[0];
  if (n == 0) return;  // an empty product is constant
  const auto front = [&](ValueId v) { return b.reshape(b.transpose(v, order), flat); };
  const DType compute = is_half(type.dtype) ? DType::f32 : type.dtype;
  ValueId x = front(b.convert(c.primal(0), compute)), t = front(b.convert(*c.tangent(0), compute));
  const auto part = [&](ValueId v, std::int64_t from, std::int64_t to) {
    Ints start(flat.rank(), 0), limit(flat.begin(), flat.end()), stride(flat.rank(), 1);
    start[0] = from;
    limit[0] = to;
    return b.emit<Op::slice>({v}, {.start = start, .limit = limit, .stride = stride});
  };
  while (n > 1) {
    const std::int64_t half = n / 2, rest = n - 2 * half;
    const ValueId x0 = part(x, 0, half), x1 = part(x, half, 2 * half), t0 = part(t, 0, half), t1 = part(t, half, 2 * half);
    ValueId product = b.mul(x0, x1), tangent = b.emit<Op::add>({b.mul(t0, x1), b.mul(t1, x0)});
    if (rest > 0) {
      product = b.emit<Op::concatenate>({product, part(x, n - 1, n)}, {.axis = 0});
      tangent = b.emit<Op::concatenate>({tangent, part(t, n - 1, n)}, {.axis = 0});
    }
    x = product;
    t = tangent;
    n = half + rest;
    flat[0] = n;
  }
  c.add_tangent(0, b.convert(b.reshape(t, b.type(result).shape), type.dtype));
}

void transpose(Tag<Op::reduce_sum>, TransposeContext& c) {
  c.give(0, broadcast_back(c.b, c.ct(), c.operand_type(0).shape, c.attrs<Op::reduce_sum>().axes));
}

}  // namespace burin::passes::autodiff
