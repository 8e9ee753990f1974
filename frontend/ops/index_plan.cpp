#include "frontend/ops/index_plan.h"

#include <algorithm>

#include "base/counted.h"
#include "base/message_ids.h"

namespace burin::detail {

using ir::Ints;
using ir::Op;

Ints extents(const Shape& shape) { return Ints(shape.begin(), shape.end()); }
Tensor to_shape(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : emit<Op::reshape>({x}, {.shape = extents(shape)}, x.weak());
}

// What an error calls a tensor: its type, and its name when it is an argument.
std::string described(const Tensor& x) {
  const Node& node = used_node(x, {});
  return node.note.empty() ? to_string(node.type) : to_string(node.type) + ", " + node.note;
}

Tensor number_like(const Tensor& like, double value) { return constant(ir::Type{like.dtype(), like.shape()}, value); }

// Ids wide enough for every index; counted from the end when negative and wanted.
Tensor normal_ids(const char* op, const Tensor& ids, std::int64_t extent, bool from_end) {
  const DType dtype = ids.dtype();
  if (dtype == DType::bool_) fail_at(where_text({}), Msg::index_bool, op, type_text(ids));
  if (!is_int(dtype)) fail_at(where_text({}), Msg::index_not_integer, op, type_text(ids));
  Tensor wide = ids;
  if (size_of(dtype) < 4) wide = as_dtype(ids, DType::i32);
  if (!from_end || is_unsigned_int(wide.dtype())) return wide;
  // An index too far before the start stays what the user wrote, which is what the error then names.
  const Tensor negative = emit(Op::bit_and, {emit(Op::lt, {wide, number_like(wide, 0)}),
                                             emit(Op::ge, {wide, number_like(wide, -static_cast<double>(extent))})});
  return emit(Op::select, {negative, emit(Op::add, {wide, number_like(wide, static_cast<double>(extent))}), wide});
}

Tensor as_vectors(const Tensor& ids) {
  Ints column = extents(ids.shape());
  column.push_back(1);
  return column.size() <= Shape::max_rank ? to_shape(ids, Shape(column)) : ids;
}

Tensor fill_value(const Tensor& like) {
  const DType d = like.dtype();
  if (is_float(d)) return number_like(like, nan);
  if (d == DType::bool_) return number_like(like, 1);
  const int bits = static_cast<int>(8 * size_of(d));
  const std::int64_t value = is_unsigned_int(d) ? -1 : static_cast<std::int64_t>(std::uint64_t{1} << (bits - 1));
  return constant(ir::Literal::splat(like.shape(), ir::Literal::scalar_int(d, value)));
}

ir::IndexMode ir_mode(Mode mode) {
  return mode == Mode::error || mode == Mode::strict ? ir::IndexMode::error : ir::IndexMode::clip;
}

Tensor in_range(const Tensor& ids, std::int64_t extent) {
  const Tensor above = emit(Op::ge, {ids, number_like(ids, 0)});
  const Tensor below = emit(Op::lt, {ids, number_like(ids, static_cast<double>(extent))});
  return emit(Op::bit_and, {above, below});
}

namespace {

void plan_slice(Plan& plan, const Tensor& x, std::size_t axis, const Slice& s) {
  const std::int64_t n = x.shape()[axis];
  if (s.step == 0) fail_at(where_text({}), Msg::slice_step_zero, axis, described(x));
  const auto from_end = [&](std::int64_t i) { return i < 0 ? i + n : i; };
  if (s.step > 0) {
    const std::int64_t start = from_end(s.start.value_or(0)), stop = from_end(s.stop.value_or(n));
    if (stop > n || stop < 0) fail_at(where_text({}), Msg::slice_past_end, "stop", *s.stop, axis, described(x));
    if (start > n || start < 0) fail_at(where_text({}), Msg::slice_past_end, "start", *s.start, axis, described(x));
    plan.start[axis] = std::min(start, stop);
    plan.limit[axis] = stop;
    plan.stride[axis] = s.step;
    return;
  }
  // Backwards: the same elements forwards, then reversed.
  const std::int64_t start = from_end(s.start.value_or(n - 1)), stop = s.stop ? from_end(*s.stop) : -1;
  if (start >= n || (start < 0 && n > 0)) fail_at(where_text({}), Msg::slice_past_end, "start", s.start.value_or(n - 1), axis, described(x));
  const std::int64_t count = start > stop ? (start - stop - s.step - 1) / -s.step : 0;
  plan.stride[axis] = -s.step;
  plan.start[axis] = count ? start + (count - 1) * s.step : 0;
  plan.limit[axis] = count ? start + 1 : 0;
  plan.reversed.push_back(static_cast<std::int64_t>(axis));
}

}  // namespace

Plan make_plan(const Tensor& x, const std::vector<Index>& indices) {
  using Kind = Index::Kind;
  const std::size_t rank = x.shape().rank();
  std::size_t used = 0, ellipses = 0;
  bool any_tensor = false;
  for (const Index& i : indices) {
    ellipses += i.kind == Kind::rest;
    used += i.kind != Kind::rest && i.kind != Kind::new_axis;
    any_tensor |= i.kind == Kind::tensor;
  }
  if (ellipses > 1) fail_at(where_text({}), Msg::two_ellipses);
  if (used > rank) fail_at(where_text({}), Msg::too_many_indices, counted(used, "index", "indices"), described(x), counted(rank, "axis", "axes"));
  Plan plan;
  plan.start.assign(rank, 0);
  plan.limit = extents(x.shape());
  plan.stride.assign(rank, 1);
  std::size_t axis = 0;
  const auto whole_axes = [&](std::size_t n) {
    for (; n > 0; --n) plan.axes.push_back({Plan::Axis::Kind::kept, axis++, 0});
  };
  for (const Index& i : indices) {
    if (i.kind == Kind::rest) {
      whole_axes(rank - used);
    } else if (i.kind == Kind::new_axis) {
      plan.axes.push_back({Plan::Axis::Kind::added, 0, 0});
    } else if (i.kind == Kind::range) {
      plan_slice(plan, x, axis, i.range);
      whole_axes(1);
    } else if (i.kind == Kind::tensor) {
      plan.tensors.push_back(i.tensor);
      plan.axes.push_back({Plan::Axis::Kind::gathered, axis++, plan.tensors.size() - 1});
    } else {
      const std::int64_t n = x.shape()[axis], at = i.integer < 0 ? i.integer + n : i.integer;
      if (at < 0 || at >= n) fail_at(where_text({}), Msg::integer_index, i.integer, axis, described(x),
                                      n > 0 ? fmt::format("{} to {}", -n, n - 1) : index_bounds(n));
      if (any_tensor) {  // beside index tensors an integer is one of them, as in NumPy
        plan.tensors.push_back(constant(ir::Literal::scalar_int(DType::i32, at)));
        plan.axes.push_back({Plan::Axis::Kind::gathered, axis++, plan.tensors.size() - 1});
        continue;
      }
      plan.start[axis] = at;
      plan.limit[axis] = at + 1;
      plan.integer_axes.push_back(axis);
      plan.integers.push_back(at);
      plan.axes.push_back({Plan::Axis::Kind::dropped, axis++, 0});
    }
  }
  if (ellipses == 0) whole_axes(rank - used);
  for (std::size_t a = 0; a < rank; ++a)
    plan.sliced.push_back((plan.limit[a] - plan.start[a] + plan.stride[a] - 1) / plan.stride[a]);
  return plan;
}

Tensor apply_slices(const Tensor& x, const Plan& plan, bool integers_are_data) {
  Tensor result = x;
  Ints start = plan.start, limit = plan.limit;
  if (integers_are_data && !plan.integer_axes.empty()) {
    // Un-jitted, x[0] and x[1] are one compiled function.
    std::vector<Tensor> operands{x};
    Ints sizes = extents(x.shape());
    for (std::size_t a = 0, k = 0; a < x.shape().rank(); ++a) {
      const bool is_integer = k < plan.integer_axes.size() && plan.integer_axes[k] == a;
      operands.push_back(is_integer ? Tensor(static_cast<std::int64_t>(plan.integers[k])) : Tensor(0));
      if (is_integer) {
        sizes[a] = 1;
        start[a] = 0;
        limit[a] = 1;
        ++k;
      }
    }
    for (std::size_t i = 1; i < operands.size(); ++i)
      operands[i] = current_trace()->capture_number(as_dtype(operands[i], DType::i64, true));
    result = emit<Op::dynamic_slice>(std::span<const Tensor>(operands), {.sizes = sizes}, x.weak());
  }
  if (start != Ints(start.size(), 0) || limit != extents(result.shape()) || plan.stride != Ints(start.size(), 1))
    result = emit<Op::slice>({result}, {.start = start, .limit = limit, .stride = plan.stride}, x.weak());
  if (!plan.reversed.empty()) result = emit<Op::reverse>({result}, {.axes = plan.reversed}, x.weak());
  return result;
}

Gather make_gather(const Tensor& x, const Plan& plan, Mode mode) {
  Gather g;
  g.index_shape = broadcast_shapes("index", plan.tensors);
  std::vector<Tensor> columns;
  Ints column = extents(g.index_shape);
  column.push_back(1);
  DType dtype = DType::i32;
  for (const Tensor& t : plan.tensors)
    if (size_of(t.dtype()) == 8) dtype = DType::i64;
  bool adjacent = true, seen = false, ended = false;
  std::size_t kept = 0;
  for (const Plan::Axis& axis : plan.axes) {
    if (axis.kind == Plan::Axis::Kind::gathered) {
      adjacent &= !ended;
      if (!seen) g.at = kept;
      seen = true;
      g.axes.push_back(static_cast<std::int64_t>(axis.axis));
      const std::int64_t extent = x.shape()[axis.axis];
      Tensor ids = normal_ids("index", plan.tensors[axis.tensor], extent, mode != Mode::strict);
      ids = as_shape(as_dtype(ids, dtype), g.index_shape);
      if (mode == Mode::fill) {
        const Tensor fits = in_range(ids, extent);
        g.valid = g.valid.defined() ? emit(Op::bit_and, {g.valid, fits}) : fits;
      }
      columns.push_back(plan.tensors.size() == 1 ? as_vectors(ids) : to_shape(ids, checked_shape("index", column, dtype)));
    } else {
      ended |= seen;
      kept += axis.kind == Plan::Axis::Kind::kept;
    }
  }
  if (!adjacent) g.at = 0;
  g.indices = columns.size() == 1
                  ? columns[0]
                  : emit<Op::concatenate>(std::span<const Tensor>(columns),
                                          {.axis = static_cast<std::int64_t>(g.index_shape.rank())});
  return g;
}

Ints Gather::window_dims(std::size_t kept) const {
  Ints dims;
  for (std::size_t i = 0; i < kept; ++i)
    dims.push_back(static_cast<std::int64_t>(i < at ? i : i + index_shape.rank()));
  return dims;
}

Shape Plan::with_new_axes(const Shape& plain, std::size_t gather_at, std::size_t gather_rank) const {
  Ints result;
  std::size_t next = 0;
  bool gathered = false;
  const auto copy_gathered = [&] {
    for (std::size_t i = 0; i < gather_rank; ++i) result.push_back(plain[next++]);
    gathered = true;
  };
  if (has_tensor() && gather_at == 0) copy_gathered();
  for (const Axis& axis : axes) {
    if (axis.kind == Axis::Kind::added) result.push_back(1);
    else if (axis.kind == Axis::Kind::kept) result.push_back(plain[next++]);
    else if (axis.kind == Axis::Kind::gathered && !gathered) copy_gathered();
  }
  return checked_shape("index", result, DType::bool_);
}

Shape Plan::without_dropped() const {
  Shape shape;
  for (std::size_t a = 0; a < sliced.rank(); ++a)
    if (std::find(integer_axes.begin(), integer_axes.end(), a) == integer_axes.end()) shape.push_back(sliced[a]);
  return shape;
}

bool Plan::has_new_axis() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.kind == Axis::Kind::added; });
}

bool Plan::contiguous() const { return stride == Ints(stride.size(), 1) && reversed.empty(); }

std::source_location place_of(const std::vector<Index>& indices) {
  return indices.empty() ? std::source_location{} : indices.front().where;
}

}  // namespace burin::detail
