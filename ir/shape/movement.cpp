#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {

Types infer(Tag<Op::reshape>, const Operands& in, const attrs::reshape& a) {
  const Shape shape = checked_shape(in, "shape", a.shape);
  if (shape.size() != in[0].size())
    in.fail(Msg::reshape_size, to_string(in[0]), counted(static_cast<std::size_t>(in[0].size()), "element", "elements"),
            to_string(shape), shape.size());
  return {Type{in[0].dtype, shape}};
}

Types infer(Tag<Op::transpose>, const Operands& in, const attrs::transpose& a) {
  check_length(in, "permutation", a.permutation, in[0]);
  check_axes(in, "permutation", a.permutation, in[0]);
  Shape shape;
  for (Int axis : a.permutation) shape.push_back(in[0].shape[static_cast<std::size_t>(axis)]);
  return {Type{in[0].dtype, shape}};
}

Types infer(Tag<Op::broadcast>, const Operands& in, const attrs::broadcast& a) {
  const Type result{in[0].dtype, checked_shape(in, "shape", a.shape)};
  check_length(in, "dims", a.dims, in[0]);
  check_axes(in, "dims", a.dims, result, true);
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const Int from = in[0].shape[i], to = result.shape[static_cast<std::size_t>(a.dims[i])];
    if (from != to && from != 1)
      in.fail(Msg::broadcast_extent, i, to_string(in[0]), from, a.dims[i], to_string(result), to);
  }
  return {result};
}

Types infer(Tag<Op::slice>, const Operands& in, const attrs::slice& a) {
  check_length(in, "start", a.start, in[0]);
  check_length(in, "limit", a.limit, in[0]);
  check_length(in, "stride", a.stride, in[0]);
  Shape shape;
  for (std::size_t i = 0; i < in[0].rank(); ++i) {
    const Int extent = in[0].shape[i];
    if (a.start[i] < 0 || a.start[i] > a.limit[i] || a.limit[i] > extent)
      in.fail(Msg::slice_range, i, to_string(in[0]), extent, a.start[i], a.limit[i]);
    if (a.stride[i] < 1) in.fail(Msg::slice_stride, i, a.stride[i]);
    const Int length = a.limit[i] - a.start[i];
    shape.push_back(length == 0 ? 0 : 1 + (length - 1) / a.stride[i]);
  }
  return {Type{in[0].dtype, shape}};
}

Types infer(Tag<Op::pad>, const Operands& in, const attrs::pad& a) {
  check_length(in, "low", a.low, in[0]);
  check_length(in, "high", a.high, in[0]);
  check_length(in, "interior", a.interior, in[0]);
  check_same_dtype(in, 0, 1);
  if (in[1].rank() != 0) in.fail(Msg::expected_scalar, name(in.op), "value", to_string(in[1]), 1);
  Shape shape;
  for (std::size_t i = 0; i < in[0].rank(); ++i) {
    const Int n = in[0].shape[i];
    if (a.interior[i] < 0) in.fail(Msg::pad_interior, i, a.interior[i]);
    Int between = 0, extent = 0;
    const bool overflow = __builtin_mul_overflow(n == 0 ? 0 : n - 1, a.interior[i], &between) ||
                          __builtin_add_overflow(n, between, &extent) ||
                          __builtin_add_overflow(extent, a.low[i], &extent) ||
                          __builtin_add_overflow(extent, a.high[i], &extent);
    if (overflow) in.fail(Msg::pad_overflow, i, to_string(in[0]), a.low[i], a.high[i], a.interior[i]);
    if (extent < 0) in.fail(Msg::pad_extent, i, to_string(in[0]), extent, a.low[i], a.high[i], a.interior[i]);
    shape.push_back(extent);
  }
  return {Type{in[0].dtype, shape}};
}

Types infer(Tag<Op::concatenate>, const Operands& in, const attrs::concatenate& a) {
  if (in.size() == 0) in.fail(Msg::too_few_operands, name(in.op), 1, 0);
  check_axis(in, "axis", a.axis, in[0]);
  const auto axis = static_cast<std::size_t>(a.axis);
  Type result = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) {
    check_same_dtype(in, 0, i);
    check_same_rank(in, 0, i);
    for (std::size_t k = 0; k < result.rank(); ++k)
      if (k != axis && in[i].shape[k] != in[0].shape[k])
        in.fail(Msg::concatenate_extent, k, to_string(in[0]), in[0].shape[k], i, to_string(in[i]), in[i].shape[k]);
    if (__builtin_add_overflow(result.shape[axis], in[i].shape[axis], &result.shape[axis]))
      in.fail(Msg::concatenate_overflow, a.axis);
  }
  return {result};
}

Types infer(Tag<Op::reverse>, const Operands& in, const attrs::reverse& a) {
  check_axes(in, "axes", a.axes, in[0]);
  return {in[0]};
}

}  // namespace burin::ir::shape
