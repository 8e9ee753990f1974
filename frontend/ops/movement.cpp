#include <algorithm>
#include <numeric>

#include <burin/ops.h>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/promote.h"

namespace burin {

using detail::as_dtype;
using detail::emit;
using detail::normal_axes;
using detail::normal_axis;
using detail::OpScope;
using ir::Ints;
using ir::Op;

namespace {

Ints extents(const Shape& shape) { return Ints(shape.begin(), shape.end()); }
Tensor to_shape(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : emit<Op::reshape>({x}, {.shape = extents(shape)}, x.weak());
}
Tensor permute(const Tensor& x, const Ints& permutation) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i) identity &= permutation[i] == static_cast<std::int64_t>(i);
  return identity ? x : emit<Op::transpose>({x}, {.permutation = permutation}, x.weak());
}
Ints counting(std::size_t n) {
  Ints axes(n);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Fills in an extent of -1 and checks the number of elements.
Shape full_shape(const Tensor& x, const IntList& wanted) {
  const auto text = [&] {
    std::string all = "[";
    for (std::size_t i = 0; i < wanted.size(); ++i) all += (i ? "," : "") + std::to_string(wanted[i]);
    return all + "]";
  };
  std::int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1 && unknown < 0) unknown = static_cast<std::int64_t>(i);
    else if (wanted[i] < 0) fail_at(detail::where_text({}), Msg::reshape_two_unknown, text());
    else known *= wanted[i];
  }
  const std::int64_t size = x.size();
  if (unknown >= 0 ? known == 0 || size % known != 0 : size != known)
    fail_at(detail::where_text({}), Msg::reshape_elements, detail::type_text(x), counted(size, "element"), text());
  Ints dims = wanted.values();
  if (unknown >= 0) dims[static_cast<std::size_t>(unknown)] = size / known;
  return detail::checked_shape("reshape", dims, x.dtype());
}

// x with axes of extent 1 at these places of the result.
Tensor with_new_axes(const char* op, const Tensor& x, const IntList& axes) {
  const Shape shape = x.shape();
  const auto rank = static_cast<std::int64_t>(shape.rank() + axes.size());
  std::vector<bool> is_new(static_cast<std::size_t>(rank), false);
  for (std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank)
      fail_at(detail::where_text({}), Msg::new_axis_out_of_range, op, axis, detail::type_text(x), counted(rank, "axis", "axes"));
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    if (is_new[at]) fail_at(detail::where_text({}), Msg::new_axis_twice, op, at, detail::type_text(x));
    is_new[at] = true;
  }
  Ints result;
  std::size_t next = 0;
  for (bool added : is_new) result.push_back(added ? 1 : shape[next++]);
  return to_shape(x, detail::checked_shape(op, result, x.dtype()));
}

Tensor triangle(const char* name, const Operand& x, std::int64_t k, bool lower) {
  OpScope scope(name, x.where);
  const Shape shape = x.tensor.shape();
  if (shape.rank() < 2) fail_at(detail::where_text({}), Msg::needs_matrix, name, detail::type_text(x.tensor));
  const Shape matrix{shape[shape.rank() - 2], shape[shape.rank() - 1]};
  const Tensor row = emit<Op::iota>({}, {.dtype = DType::i32, .shape = extents(matrix), .axis = 0});
  const Tensor column = emit<Op::iota>({}, {.dtype = DType::i32, .shape = extents(matrix), .axis = 1});
  const Tensor diagonal = k == 0 ? row : row + k;
  const Tensor keep = lower ? emit(Op::ge, {diagonal, column}) : emit(Op::le, {diagonal, column});
  const Tensor zero = detail::constant(ir::Type{x.tensor.dtype(), shape}, 0);
  return scope.done(emit(Op::select, {detail::as_shape(keep, shape), detail::as_shape(x.tensor, shape), zero}));
}

}  // namespace

Tensor reshape(const Operand& x, const IntList& shape) {
  OpScope scope(x.where);
  return scope.done(to_shape(x.tensor, full_shape(x.tensor, shape)));
}

Tensor transpose(const Operand& x) {
  OpScope scope(x.where);
  Ints axes = counting(x.tensor.shape().rank());
  std::reverse(axes.begin(), axes.end());
  return scope.done(permute(x.tensor, axes));
}

Tensor transpose(const Operand& x, const IntList& permutation) {
  OpScope scope(x.where);
  const std::size_t rank = x.tensor.shape().rank();
  Ints axes;
  for (std::int64_t axis : permutation)
    axes.push_back(static_cast<std::int64_t>(normal_axis("transpose", axis, rank, x.tensor)));
  Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != counting(rank)) {
    std::string joined;
    for (std::int64_t axis : permutation) joined += (joined.empty() ? "" : ",") + std::to_string(axis);
    fail_at(detail::where_text({}), Msg::not_a_permutation, "[" + joined + "]", detail::type_text(x.tensor),
            counted(rank, "axis", "axes"));
  }
  return scope.done(permute(x.tensor, axes));
}

Tensor swapaxes(const Operand& x, std::int64_t a, std::int64_t b) {
  OpScope scope(x.where);
  const std::size_t rank = x.tensor.shape().rank();
  Ints axes = counting(rank);
  std::swap(axes[normal_axis("swapaxes", a, rank, x.tensor)], axes[normal_axis("swapaxes", b, rank, x.tensor)]);
  return scope.done(permute(x.tensor, axes));
}

Tensor moveaxis(const Operand& x, std::int64_t from, std::int64_t to) {
  OpScope scope(x.where);
  const std::size_t rank = x.tensor.shape().rank();
  const std::size_t source = normal_axis("moveaxis", from, rank, x.tensor);
  const std::size_t target = normal_axis("moveaxis", to, rank, x.tensor);
  Ints axes = counting(rank);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(source));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(target), static_cast<std::int64_t>(source));
  return scope.done(permute(x.tensor, axes));
}

Tensor expand_dims(const Operand& x, const IntList& axes) {
  OpScope scope(x.where);
  return scope.done(with_new_axes("expand_dims", x.tensor, axes));
}

Tensor squeeze(const Operand& x, const Axes& axes) {
  OpScope scope(x.where);
  const Shape shape = x.tensor.shape();
  const Ints which = normal_axes("squeeze", axes, x.tensor);
  Shape result;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const bool named = std::find(which.begin(), which.end(), static_cast<std::int64_t>(i)) != which.end();
    if (named && shape[i] != 1 && !axes.all())
      fail_at(detail::where_text({}), Msg::squeeze_extent, i, detail::type_text(x.tensor), shape[i]);
    if (!named || shape[i] != 1) result.push_back(shape[i]);
  }
  return scope.done(to_shape(x.tensor, result));
}

Tensor broadcast_to(const Operand& x, const IntList& dims) {
  OpScope scope(x.where);
  const Shape shape = detail::checked_shape("broadcast_to", dims, x.tensor.dtype());
  const Shape from = x.tensor.shape();
  bool fits = from.rank() <= shape.rank();
  for (std::size_t i = 0; fits && i < from.rank(); ++i)
    fits = from[i] == 1 || from[i] == shape[shape.rank() - from.rank() + i];
  if (!fits) fail_at(detail::where_text({}), Msg::broadcast_to_shape, detail::type_text(x.tensor), to_string(shape));
  return scope.done(detail::as_shape(x.tensor, shape));
}

Tensor concatenate(const std::vector<Tensor>& parts, std::int64_t axis, std::source_location where) {
  OpScope scope(where);
  if (parts.empty()) fail_at(detail::where_text(where), Msg::parts_missing, "concatenate");
  std::vector<Tensor> all = parts;
  detail::Promoted both{all[0].dtype(), all[0].weak()};
  for (const Tensor& part : all) both = detail::promote(both, {part.dtype(), part.weak()});
  for (Tensor& part : all) part = as_dtype(part, both.dtype, both.weak);
  const std::size_t at = normal_axis("concatenate", axis, all[0].shape().rank(), all[0]);
  return scope.done(emit<Op::concatenate>(std::span<const Tensor>(all), {.axis = static_cast<std::int64_t>(at)}, both.weak));
}

Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis, std::source_location where) {
  OpScope scope(where);
  if (parts.empty()) fail_at(detail::where_text(where), Msg::parts_missing, "stack");
  std::vector<Tensor> all;
  for (const Tensor& part : parts) {
    if (part.shape() != parts[0].shape())
      fail_at(detail::where_text(where), Msg::stack_shapes, detail::type_text(parts[0]), all.size(),
                  detail::type_text(part));
    all.push_back(with_new_axes("stack", part, axis));
  }
  return scope.done(concatenate(all, axis, where));
}

std::vector<Tensor> split(const Operand& x, std::int64_t n, std::int64_t axis) {
  OpScope scope(x.where);
  const Shape shape = x.tensor.shape();
  const std::size_t at = normal_axis("split", axis, shape.rank(), x.tensor);
  if (n <= 0 || shape[at] % n != 0)
    fail_at(detail::where_text({}), Msg::split_uneven, at, detail::type_text(x.tensor), n);
  std::vector<Tensor> parts;
  const std::int64_t width = shape[at] / n;
  for (std::int64_t i = 0; i < n; ++i) {
    Ints start(shape.rank(), 0), limit = extents(shape), stride(shape.rank(), 1);
    start[at] = i * width;
    limit[at] = start[at] + width;
    parts.push_back(emit<Op::slice>({x.tensor}, {.start = start, .limit = limit, .stride = stride}, x.tensor.weak()));
  }
  return scope.done(std::move(parts));
}

Tensor pad(const Operand& x, const IntList& low, const IntList& high, const Operand& value) {
  OpScope scope(x.where);
  const std::size_t rank = x.tensor.shape().rank();
  const auto per_axis = [&](const IntList& given) {
    if (given.size() == 1) return Ints(rank, given[0]);
    if (given.size() != rank)
      fail_at(detail::where_text({}), Msg::pad_count, counted(given.size(), "number"), detail::type_text(x.tensor), counted(rank, "axis", "axes"));
    return given.values();
  };
  const Tensor fill = as_dtype(value.tensor, x.tensor.dtype());
  return scope.done(emit<Op::pad>({x.tensor, fill}, {.low = per_axis(low), .high = per_axis(high), .interior = Ints(rank, 0)}));
}

Tensor flip(const Operand& x, const Axes& axes) {
  OpScope scope(x.where);
  return scope.done(emit<Op::reverse>({x.tensor}, {.axes = normal_axes("flip", axes, x.tensor)}, x.tensor.weak()));
}

Tensor roll(const Operand& x, std::int64_t shift, std::int64_t axis) {
  OpScope scope("roll", x.where);
  const Shape shape = x.tensor.shape();
  const std::size_t at = normal_axis("roll", axis, shape.rank(), x.tensor);
  const std::int64_t n = shape[at], by = n == 0 ? 0 : ((shift % n) + n) % n;
  if (by == 0) return x.tensor;
  const auto part = [&](std::int64_t from, std::int64_t to) {
    Ints start(shape.rank(), 0), limit = extents(shape);
    start[at] = from;
    limit[at] = to;
    return emit<Op::slice>({x.tensor}, {.start = start, .limit = limit, .stride = Ints(shape.rank(), 1)});
  };
  return scope.done(emit<Op::concatenate>({part(n - by, n), part(0, n - by)}, {.axis = static_cast<std::int64_t>(at)}));
}

Tensor repeat(const Operand& x, std::int64_t n, std::int64_t axis) {
  OpScope scope("repeat", x.where);
  const Shape shape = x.tensor.shape();
  const std::size_t at = normal_axis("repeat", axis, shape.rank(), x.tensor);
  if (n < 0) fail_at(detail::where_text({}), Msg::negative_count, "repeat", "times", n);
  Ints merged = extents(shape);
  if (__builtin_mul_overflow(merged[at], n, &merged[at]))
    fail_at(detail::where_text({}), Msg::repeat_overflow, n, at, detail::type_text(x.tensor));
  const Shape result = detail::checked_shape("repeat", merged, x.tensor.dtype());
  Ints apart = extents(shape), dims = counting(shape.rank());
  Tensor rows = x.tensor;
  std::size_t place = at + 1;  // of the axis of copies
  if (shape.rank() == Shape::max_rank) {  // no room for one more: as [axes up to this one, axes behind]
    apart = {1, 1};
    for (std::size_t i = 0; i < shape.rank(); ++i) apart[i <= at ? 0 : 1] *= shape[i];
    rows = to_shape(rows, Shape(apart));
    dims = {0, 2};
    place = 1;
  } else {
    for (std::size_t i = place; i < dims.size(); ++i) ++dims[i];
  }
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(place), n);
  const Tensor wide = emit<Op::broadcast>({rows}, {.shape = apart, .dims = dims});
  return scope.done(to_shape(wide, result));
}

Tensor tril(const Operand& x, std::int64_t k) { return triangle("tril", x, k, true); }
Tensor triu(const Operand& x, std::int64_t k) { return triangle("triu", x, k, false); }

std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& values, std::source_location where) {
  OpScope scope(where);
  return scope.done(detail::emit_all(Op::optimization_barrier, values, {}));
}

Tensor Tensor::reshape(const IntList& shape, Where where) const { return burin::reshape({*this, where}, shape); }
Tensor Tensor::transpose(const IntList& p, Where where) const { return burin::transpose({*this, where}, p); }
Tensor Tensor::transpose(Where where) const { return burin::transpose({*this, where}); }
Tensor Tensor::swapaxes(std::int64_t a, std::int64_t b, Where where) const { return burin::swapaxes({*this, where}, a, b); }
Tensor Tensor::squeeze(const Axes& axes, Where where) const { return burin::squeeze({*this, where}, axes); }
Tensor Tensor::flatten(Where where) const { return burin::reshape({*this, where}, {-1}); }

}  // namespace burin
