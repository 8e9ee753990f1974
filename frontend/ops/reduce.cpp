#include <burin/ops.h>

#include <algorithm>

#include "base/message_ids.h"
#include "frontend/promote.h"

namespace burin {

using detail::as_dtype;
using detail::constant;
using detail::emit;
using detail::normal_axes;
using detail::OpScope;
using ir::Ints;
using ir::Op;

namespace {

// The reduced tensor with its axes back in, of extent 1.
Tensor with_kept_axes(const Tensor& reduced, const Tensor& x, const Ints& axes) {
  Shape shape = x.shape();
  for (std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
  return emit<Op::reshape>({reduced}, {.shape = Ints(shape.begin(), shape.end())}, reduced.weak());
}

template <Op op>
Tensor reduce(const Tensor& x, const Ints& axes, KeepDims keep) {
  const Tensor reduced = emit<op>({x}, {.axes = axes}, x.weak());
  return keep.value ? with_kept_axes(reduced, x, axes) : reduced;
}

// A per-row value spread over the rows of x again.
Tensor spread(const Tensor& kept, const Tensor& x) { return detail::as_shape(kept, x.shape()); }

// Sums and products of small integers are made in 32 bits, as in jax.numpy.
Tensor widened(const Tensor& x) {
  const DType d = x.dtype();
  if (d == DType::bool_ || d == DType::i8 || d == DType::i16) return as_dtype(x, DType::i32);
  if (d == DType::u8 || d == DType::u16) return as_dtype(x, DType::u32);
  return x;
}

void check_not_empty(const char* op, const Tensor& x, const Ints& axes) {
  for (std::int64_t axis : axes)
    if (x.shape()[static_cast<std::size_t>(axis)] == 0)
      fail_at(detail::where_text({}), Msg::reduction_of_nothing, op, axis, detail::type_text(x));
}

std::int64_t elements(const Tensor& x, const Ints& axes) {
  std::int64_t n = 1;
  for (std::int64_t axis : axes) n *= x.shape()[static_cast<std::size_t>(axis)];
  return n;
}

// Statistics of half types are made in f32.
Tensor in_f32(const Tensor& x) { return is_half(x.dtype()) ? as_dtype(x, DType::f32) : x; }

Tensor number(const Tensor& like, double value) { return constant(ir::Type{like.dtype(), like.shape()}, value); }

Tensor mean_of(const Tensor& x, const Ints& axes, KeepDims keep) {
  const Tensor total = reduce<Op::reduce_sum>(x, axes, keep);
  return emit(Op::div, {total, number(total, static_cast<double>(elements(x, axes)))}, x.weak());
}

template <Op op>
Tensor extreme(const char* name, const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Ints which = normal_axes(name, axes, x.tensor);
  check_not_empty(name, x.tensor, which);
  return scope.done(reduce<op>(x.tensor, which, keep));
}

template <Op op>
Tensor arg_extreme(const char* name, const Operand& x, std::optional<std::int64_t> axis, KeepDims keep) {
  OpScope scope(x.where);
  Tensor t = x.tensor;
  const std::size_t rank = t.shape().rank();
  std::int64_t which = 0;
  if (axis) which = static_cast<std::int64_t>(detail::normal_axis(name, *axis, rank, t));
  else t = emit<Op::reshape>({t}, {.shape = {t.size()}});
  check_not_empty(name, t, {which});
  Tensor index = emit<op>({t}, {.axis = which, .dtype = DType::i32});
  if (keep.value) {
    Shape shape = x.tensor.shape();
    for (std::size_t i = 0; i < rank; ++i)
      if (!axis || static_cast<std::int64_t>(i) == which) shape[i] = 1;
    index = emit<Op::reshape>({index}, {.shape = Ints(shape.begin(), shape.end())});
  }
  return scope.done(index);
}

Tensor as_flag(const Tensor& x) {
  if (x.dtype() == DType::bool_) return x;
  return emit(Op::ne, {x, number(x, 0)});
}

}  // namespace

Tensor sum(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Tensor t = widened(x.tensor);
  return scope.done(reduce<Op::reduce_sum>(t, normal_axes("sum", axes, t), keep));
}

Tensor prod(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Tensor t = widened(x.tensor);
  return scope.done(reduce<Op::reduce_prod>(t, normal_axes("prod", axes, t), keep));
}

Tensor mean(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Tensor t = detail::as_float(x.tensor);
  const Tensor result = mean_of(in_f32(t), normal_axes("mean", axes, t), keep);
  return scope.done(as_dtype(result, t.dtype(), t.weak()));
}

Tensor var(const Operand& x, const Axes& axes, KeepDims keep, std::int64_t ddof) {
  OpScope scope("var", x.where);
  const Tensor t = detail::as_float(x.tensor), wide = in_f32(t);
  const Ints which = normal_axes("var", axes, t);
  const Tensor centred = emit(Op::sub, {wide, spread(mean_of(wide, which, keepdims), wide)});
  const Tensor total = reduce<Op::reduce_sum>(emit(Op::mul, {centred, centred}), which, keep);
  const auto n = static_cast<double>(elements(t, which) - ddof);
  return scope.done(as_dtype(emit(Op::div, {total, number(total, n)}, t.weak()), t.dtype(), t.weak()));
}

Tensor stddev(const Operand& x, const Axes& axes, KeepDims keep, std::int64_t ddof) {
  OpScope scope("stddev", x.where);
  return scope.done(sqrt(var(x, axes, keep, ddof)));
}

Tensor max(const Operand& x, const Axes& axes, KeepDims keep) { return extreme<Op::reduce_max>("max", x, axes, keep); }
Tensor min(const Operand& x, const Axes& axes, KeepDims keep) { return extreme<Op::reduce_min>("min", x, axes, keep); }

Tensor all_of(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Tensor t = as_flag(x.tensor);
  return scope.done(reduce<Op::reduce_and>(t, normal_axes("all_of", axes, t), keep));
}
Tensor any_of(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope(x.where);
  const Tensor t = as_flag(x.tensor);
  return scope.done(reduce<Op::reduce_or>(t, normal_axes("any_of", axes, t), keep));
}

Tensor argmax(const Operand& x, std::optional<std::int64_t> axis, KeepDims keep) {
  return arg_extreme<Op::argmax>("argmax", x, axis, keep);
}
Tensor argmin(const Operand& x, std::optional<std::int64_t> axis, KeepDims keep) {
  return arg_extreme<Op::argmin>("argmin", x, axis, keep);
}

// The shift takes part in no derivative: softmax and its kin do not depend on it.
Tensor logsumexp(const Operand& x, const Axes& axes, KeepDims keep) {
  OpScope scope("logsumexp", x.where);
  const Tensor t = detail::as_float(x.tensor), wide = in_f32(t);
  const Ints which = normal_axes("logsumexp", axes, t);
  check_not_empty("logsumexp", t, which);
  const Tensor top = emit(Op::stop_gradient, {reduce<Op::reduce_max>(wide, which, keepdims)});
  const Tensor dead = emit(Op::eq, {top, number(top, -inf)});
  const Tensor shift = emit(Op::select, {emit(Op::is_finite, {top}), top, number(top, 0)});
  const Tensor total =
      reduce<Op::reduce_sum>(emit(Op::exp, {emit(Op::sub, {wide, spread(shift, wide)})}), which, keepdims);
  const Tensor safe = emit(Op::select, {dead, number(total, 1), total});
  const Tensor logs = emit(Op::add, {emit(Op::log, {safe}), shift});
  Tensor result = emit(Op::select, {dead, number(logs, -inf), logs});
  if (!keep.value) {
    Shape shape;
    for (std::size_t i = 0; i < t.shape().rank(); ++i)
      if (std::find(which.begin(), which.end(), static_cast<std::int64_t>(i)) == which.end())
        shape.push_back(t.shape()[i]);
    result = emit<Op::reshape>({result}, {.shape = Ints(shape.begin(), shape.end())});
  }
  return scope.done(as_dtype(result, t.dtype(), t.weak()));
}

Tensor softmax(const Operand& x, std::int64_t axis) {
  OpScope scope("softmax", x.where);
  const Tensor t = detail::as_float(x.tensor), wide = in_f32(t);
  const Ints which = normal_axes("softmax", axis, t);
  if (t.size() == 0) return t;
  const Tensor top = emit(Op::stop_gradient, {reduce<Op::reduce_max>(wide, which, keepdims)});
  const Tensor dead = emit(Op::eq, {top, number(top, -inf)});
  const Tensor shift = emit(Op::select, {dead, number(top, 0), top});
  const Tensor e = emit(Op::exp, {emit(Op::sub, {wide, spread(shift, wide)})});
  const Tensor total = reduce<Op::reduce_sum>(e, which, keepdims);
  const Tensor safe = emit(Op::select, {dead, number(total, 1), total});
  return scope.done(as_dtype(emit(Op::div, {e, spread(safe, e)}, t.weak()), t.dtype(), t.weak()));
}

Tensor log_softmax(const Operand& x, std::int64_t axis) {
  OpScope scope("log_softmax", x.where);
  const Tensor t = detail::as_float(x.tensor), wide = in_f32(t);
  const Ints which = normal_axes("log_softmax", axis, t);
  if (t.size() == 0) return t;
  const Tensor top = emit(Op::stop_gradient, {reduce<Op::reduce_max>(wide, which, keepdims)});
  const Tensor dead = emit(Op::eq, {top, number(top, -inf)});
  const Tensor shift = emit(Op::select, {dead, number(top, 0), top});
  const Tensor shifted = emit(Op::sub, {wide, spread(shift, wide)});
  const Tensor total = reduce<Op::reduce_sum>(emit(Op::exp, {shifted}), which, keepdims);
  const Tensor logs = emit(Op::log, {emit(Op::select, {dead, number(total, 1), total})});
  const Tensor result = emit(Op::sub, {shifted, spread(logs, shifted)});
  const Tensor guarded = emit(Op::select, {spread(dead, result), number(result, -inf), result}, t.weak());
  return scope.done(as_dtype(guarded, t.dtype(), t.weak()));
}

bool array_equal(const Operand& a, const Operand& b) {
  if (a.tensor.shape() != b.tensor.shape()) return false;
  return all_of(Operand(a == b, a.where)).item<bool>(a.where);
}

Tensor Tensor::sum(const Axes& axes, KeepDims keep, Where where) const { return burin::sum({*this, where}, axes, keep); }
Tensor Tensor::mean(const Axes& axes, KeepDims keep, Where where) const { return burin::mean({*this, where}, axes, keep); }
Tensor Tensor::max(const Axes& axes, KeepDims keep, Where where) const { return burin::max({*this, where}, axes, keep); }
Tensor Tensor::min(const Axes& axes, KeepDims keep, Where where) const { return burin::min({*this, where}, axes, keep); }
Tensor Tensor::prod(const Axes& axes, KeepDims keep, Where where) const { return burin::prod({*this, where}, axes, keep); }

}  // namespace burin
