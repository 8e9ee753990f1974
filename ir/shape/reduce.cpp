#include <algorithm>

#include "base/message_ids.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {
namespace {

Shape without(const Shape& shape, const Ints& axes) {
  Shape rest;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<Int>(i)) == axes.end()) rest.push_back(shape[i]);
  return rest;
}

// The largest index that a dtype can hold.
std::uint64_t largest(DType dtype) {
  const auto bits = static_cast<unsigned>(8 * size_of(dtype)) - (is_signed_int(dtype) ? 1 : 0);
  return ~std::uint64_t{0} >> (64 - bits);
}

}  // namespace

Types infer_reduce(const Operands& in, const Ints& axes) {
  check_axes(in, "axes", axes, in[0]);
  if ((in.op == Op::reduce_and || in.op == Op::reduce_or) && is_float(in[0].dtype))
    in.fail(Msg::dtype_not_taken, name(in.op), "integers or bools", to_string(in[0]), 0);
  return {Type{in[0].dtype, without(in[0].shape, axes)}};
}

Types infer_arg_reduce(const Operands& in, Int axis, DType dtype) {
  check_axis(in, "axis", axis, in[0]);
  if (!is_int(dtype)) in.fail(Msg::index_dtype, name(in.op), name(dtype));
  const Int extent = in[0].shape[static_cast<std::size_t>(axis)];
  if (extent == 0) in.fail(Msg::arg_of_empty_axis, name(in.op), axis, to_string(in[0]));
  if (static_cast<std::uint64_t>(extent - 1) > largest(dtype))
    in.fail(Msg::index_dtype_too_small, name(in.op), name(dtype), axis, to_string(in[0]), extent);
  return {Type{dtype, without(in[0].shape, {axis})}};
}

}  // namespace burin::ir::shape
