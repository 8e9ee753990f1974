#include "frontend/promote.h"

#include <algorithm>

#include "base/counted.h"
#include "base/message_ids.h"

namespace burin::detail {
namespace {

int category(DType d) { return d == DType::bool_ ? 0 : is_int(d) ? 1 : 2; }
std::size_t width(DType d) { return size_of(d); }

DType signed_of_width(std::size_t bytes) {
  return bytes == 1 ? DType::i8 : bytes == 2 ? DType::i16 : bytes == 4 ? DType::i32 : DType::i64;
}

Promoted promote_integers(DType a, DType b) {
  if (is_signed_int(a) == is_signed_int(b)) return {width(a) >= width(b) ? a : b, false};
  const DType with_sign = is_signed_int(a) ? a : b, without = is_signed_int(a) ? b : a;
  if (width(with_sign) > width(without)) return {with_sign, false};
  if (width(without) < 8) return {signed_of_width(2 * width(without)), false};
  return {DType::f32, true};  // nothing holds both u64 and a signed type
}

}  // namespace

Promoted promote(Promoted a, Promoted b) {
  if (a.dtype == b.dtype) return {a.dtype, a.weak && b.weak};
  const int ca = category(a.dtype), cb = category(b.dtype);
  if (a.weak != b.weak) {
    const Promoted &soft = a.weak ? a : b, &firm = a.weak ? b : a;
    if (category(soft.dtype) <= category(firm.dtype)) return {firm.dtype, false};
    return {soft.dtype, true};  // a weak float meets integers, a weak integer meets bools
  }
  if (ca != cb) return ca > cb ? a : b;
  if (ca == 1) {
    const Promoted both = promote_integers(a.dtype, b.dtype);
    return {both.dtype, both.weak || a.weak};
  }
  if (is_half(a.dtype) && is_half(b.dtype)) return {DType::f32, a.weak};
  return width(a.dtype) >= width(b.dtype) ? a : b;
}

Tensor as_dtype(const Tensor& x, DType dtype, bool weak) {
  const Node& node = used_node(x, {});
  if (node.type.dtype == dtype) return x;
  if (node.kind == Node::Kind::number) {
    auto number = std::make_shared<Node>(node);
    const ir::Literal value = number_literal(node, dtype, {});
    number->type.dtype = dtype;
    number->weak = weak;
    number->integral = !is_float(dtype);
    if (is_float(dtype)) number->floating = node.integral ? static_cast<double>(node.integer) : node.floating;
    else number->integer = value.int_at(0);
    std::copy(value.raw().begin(), value.raw().end(), number->inline_bytes);
    return Access::make(std::move(number));
  }
  return emit<ir::Op::convert>({x}, {.dtype = dtype}, weak);
}

Tensor as_shape(const Tensor& x, const Shape& shape) {
  const Node& node = used_node(x, {});
  if (node.type.shape == shape) return x;
  if (node.kind == Node::Kind::number && !current_trace()->numbers_are_arguments())
    return constant(ir::Literal::splat(shape, number_literal(node, node.type.dtype, {})), node.weak);
  const std::size_t rank = node.type.rank(), offset = shape.rank() - rank;
  ir::Ints dims;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(static_cast<std::int64_t>(i + offset));
  return emit<ir::Op::broadcast>({x}, {.shape = ir::Ints(shape.begin(), shape.end()), .dims = dims}, node.weak);
}

Shape broadcast_shapes(const char* op, const std::vector<Tensor>& operands) {
  Shape result;
  std::size_t rank = 0;
  for (const Tensor& t : operands) rank = std::max(rank, t.shape().rank());
  std::vector<std::int64_t> extents(rank, 1);
  std::vector<std::size_t> from(rank, operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Shape shape = operands[k].shape();
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      const std::size_t axis = rank - shape.rank() + i;
      if (shape[i] == 1 || shape[i] == extents[axis]) continue;
      if (extents[axis] != 1)
        fail_at(where_text({}), Msg::shapes_do_not_broadcast, op, type_text(operands[from[axis]]),
                    type_text(operands[k]), static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(rank),
                    extents[axis], shape[i]);
      extents[axis] = shape[i];
      from[axis] = k;
    }
  }
  for (std::int64_t extent : extents) result.push_back(extent);
  return result;
}

Shape checked_shape(const char* op, const IntList& extents, DType dtype, const std::source_location& where) {
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (extents[i] < 0) fail_at(where_text(where), Msg::negative_extent, op, i, extents[i]);
  if (extents.size() > Shape::max_rank)
    fail_at(where_text(where), Msg::result_rank, op, extents.size(), Shape::max_rank);
  const Shape shape(std::span<const std::int64_t>(extents.values()));
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool overflow = false;
  for (std::int64_t extent : shape) {
    if (extent == 0) return shape;
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (overflow) fail_at(where_text(where), Msg::result_too_large, op, to_string(ir::Type{dtype, shape}));
  return shape;
}

Tensor as_float(const Tensor& x) {
  const Node& node = used_node(x, {});
  return is_float(node.type.dtype) ? x : as_dtype(x, DType::f32, node.weak);
}

Matched match(const char* op, std::vector<Tensor> operands, bool only_floats) {
  const Shape shape = broadcast_shapes(op, operands);
  Promoted both{operands[0].dtype(), operands[0].weak()};
  for (std::size_t i = 1; i < operands.size(); ++i) both = promote(both, {operands[i].dtype(), operands[i].weak()});
  if (only_floats && !is_float(both.dtype)) both.dtype = DType::f32;
  for (Tensor& t : operands) t = as_shape(as_dtype(t, both.dtype, both.weak), shape);
  return {std::move(operands), both.weak};
}

std::size_t normal_axis(const char* op, std::int64_t axis, std::size_t rank, const Tensor& x) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n) fail_at(where_text({}), Msg::no_such_axis, op, axis, type_text(x), counted(n, "axis", "axes"));
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

std::vector<std::int64_t> normal_axes(const char* op, const Axes& axes, const Tensor& x) {
  const std::size_t rank = x.shape().rank();
  std::vector<std::int64_t> result;
  if (axes.all()) {
    for (std::size_t i = 0; i < rank; ++i) result.push_back(static_cast<std::int64_t>(i));
    return result;
  }
  for (std::int64_t axis : axes.list()) result.push_back(static_cast<std::int64_t>(normal_axis(op, axis, rank, x)));
  std::sort(result.begin(), result.end());
  if (const auto twice = std::adjacent_find(result.begin(), result.end()); twice != result.end())
    fail_at(where_text({}), Msg::axis_named_twice, op, *twice, type_text(x));
  return result;
}

}  // namespace burin::detail
