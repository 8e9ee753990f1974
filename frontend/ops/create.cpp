#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <burin/ops.h>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/promote.h"

namespace burin {

using detail::constant;
using detail::emit;
using detail::Node;
using detail::OpScope;
using ir::Ints;
using ir::Op;

namespace {

Ints extents(const Shape& shape) { return Ints(shape.begin(), shape.end()); }

bool fits(std::int64_t value, DType dtype) {
  if (is_unsigned_int(dtype) && value < 0) return false;
  return ir::Literal::scalar_int(dtype, value).int_at(0) == value;
}

// Un-jitted makers write their elements at once: there is nothing to compile.
Tensor filled(const char* op, const IntList& dims, const ir::Literal& element, const std::source_location& where) {
  OpScope scope(where);
  const ir::Literal all = ir::Literal::splat(detail::checked_shape(op, dims, element.dtype(), where), element);
  return scope.unjitted() ? detail::make_concrete(all, detail::allocate_for(op, all.type(), where)) : constant(all);
}

}  // namespace

Tensor zeros(const IntList& shape, DType dtype, std::source_location where) {
  return filled("zeros", shape, ir::Literal::scalar(dtype, 0), where);
}
Tensor ones(const IntList& shape, DType dtype, std::source_location where) {
  return filled("ones", shape, ir::Literal::scalar(dtype, 1), where);
}

Tensor full(const IntList& dims, const Operand& value, std::optional<DType> dtype) {
  const Node& node = detail::used_node(value.tensor, value.where);
  const DType result = dtype.value_or(node.type.dtype);
  if (node.kind == Node::Kind::number)
    return filled("full", dims, detail::number_literal(node, result, value.where), value.where);
  OpScope scope(value.where);
  const Shape shape = detail::checked_shape("full", dims, result, value.where);
  if (node.type.rank() != 0)
    return scope.done(broadcast_to({detail::as_dtype(value.tensor, result), value.where}, shape));
  return scope.done(detail::as_shape(detail::as_dtype(value.tensor, result), shape));
}

Tensor zeros_like(const Operand& x) { return zeros(x.tensor.shape(x.where), x.tensor.dtype(x.where), x.where); }
Tensor ones_like(const Operand& x) { return ones(x.tensor.shape(x.where), x.tensor.dtype(x.where), x.where); }
Tensor full_like(const Operand& x, const Operand& value) {
  return full(x.tensor.shape(x.where), value, x.tensor.dtype(x.where));
}

Tensor iota(const IntList& dims, std::int64_t axis, DType dtype, std::source_location where) {
  OpScope scope(where);
  const Shape shape = detail::checked_shape("iota", dims, dtype, where);
  const auto n = static_cast<std::int64_t>(shape.rank());
  if (axis < -n || axis >= n)
    fail_at(detail::where_text(where), Msg::no_such_axis, "iota", axis, to_string(ir::Type{dtype, shape}), counted(n, "axis", "axes"));
  return scope.done(
      emit<Op::iota>({}, {.dtype = dtype, .shape = extents(shape), .axis = axis < 0 ? axis + n : axis}));
}

Tensor arange(std::int64_t stop, DType dtype, std::source_location where) { return arange(0, stop, 1, dtype, where); }

Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype, std::source_location where) {
  OpScope scope(where);
  if (step == 0) fail_at(detail::where_text(where), Msg::arange_step);
  // Wider than the numbers, whose differences need not fit 64 bits.
  __extension__ using Wide = __int128;
  const Wide span = step > 0 ? Wide{stop} - start : Wide{start} - stop, width = step > 0 ? Wide{step} : -Wide{step};
  const Wide elements = span <= 0 ? 0 : (span + width - 1) / width;
  const auto n = static_cast<std::int64_t>(std::min<Wide>(elements, std::numeric_limits<std::int64_t>::max()));
  const Shape shape = detail::checked_shape("arange", n, dtype, where);
  if (is_int(dtype) && n > 0)
    for (const std::int64_t end : {start, static_cast<std::int64_t>(start + (elements - 1) * step)})
      if (!fits(end, dtype)) fail_at(detail::where_text(where), Msg::number_does_not_fit, end, name(dtype));
  if (scope.unjitted()) {
    auto buffer = detail::allocate_for("arange", ir::Type{dtype, shape}, where);
    ir::Literal all(ir::Type{dtype, shape});
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_float(dtype)) all.set(i, static_cast<double>(start + i * step));
      else all.set_int(i, start + i * step);
    }
    return detail::make_concrete(all, std::move(buffer));
  }
  Tensor index = emit<Op::iota>({}, {.dtype = dtype, .shape = {n}, .axis = 0});
  // Integers of 64 bits are not all doubles.
  const auto same = [&](std::int64_t value) {
    if (is_float(dtype)) return constant(ir::Type{dtype, shape}, static_cast<double>(value));
    return constant(ir::Literal::splat(shape, ir::Literal::scalar_int(dtype, value)));
  };
  if (step != 1) index = emit(Op::mul, {index, same(step)});
  if (start != 0) index = emit(Op::add, {index, same(start)});
  return index;
}

Tensor linspace(double start, double stop, std::int64_t n, DType dtype, std::source_location where) {
  OpScope scope(where);
  if (n < 0) fail_at(detail::where_text(where), Msg::negative_count, "linspace", "elements", n);
  const ir::Type type{dtype, detail::checked_shape("linspace", n, dtype, where)};
  auto buffer = scope.unjitted() ? detail::allocate_for("linspace", type, where) : nullptr;
  ir::Literal all(type);
  for (std::int64_t i = 0; i < n; ++i) {
    const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0;
    all.set(i, i + 1 == n && n > 1 ? stop : start + share * (stop - start));
  }
  return scope.unjitted() ? detail::make_concrete(all, std::move(buffer)) : constant(all);
}

Tensor eye(std::int64_t n, DType dtype, std::source_location where) {
  OpScope scope("eye", where);
  if (n < 0) fail_at(detail::where_text(where), Msg::negative_count, "eye", "rows", n);
  const Shape shape = detail::checked_shape("eye", {n, n}, i32, where);
  const Tensor row = iota(shape, 0, i32, where), column = iota(shape, 1, i32, where);
  return scope.done(astype({row == column, where}, dtype));
}

Tensor one_hot(const Operand& ids, std::int64_t classes, DType dtype) {
  OpScope scope("one_hot", ids.where);
  if (classes < 0) fail_at(detail::where_text(ids.where), Msg::negative_count, "one_hot", "classes", classes);
  Ints dims = extents(ids.tensor.shape());
  dims.push_back(classes);
  const Shape shape = detail::checked_shape("one_hot", dims, dtype);
  const auto axis = static_cast<std::int64_t>(shape.rank()) - 1;
  const Tensor index = emit<Op::iota>({}, {.dtype = ids.tensor.dtype(), .shape = extents(shape), .axis = axis});
  return scope.done(astype(expand_dims(ids, {-1}) == index, dtype));
}

}  // namespace burin
