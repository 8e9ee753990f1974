// Writing by index: x.at(...).set and its kin, segment_sum.
#include <algorithm>

#include <burin/index.h>
#include <burin/ops.h>

#include "base/message_ids.h"
#include "frontend/ops/index_plan.h"

namespace burin {

using detail::constant;
using detail::emit;
using detail::Gather;
using detail::make_gather;
using detail::make_plan;
using detail::OpScope;
using detail::Plan;
using detail::to_shape;
using ir::Combine;
using ir::Ints;
using ir::Op;

namespace {

// A box of x: read it, combine, write it back.
Tensor write_box(const Tensor& x, const Plan& plan, const Tensor& value, Combine combine,
                 const std::source_location& where) {
  const Shape seen = plan.with_new_axes(plan.without_dropped(), 0, 0);
  Tensor box = to_shape(broadcast_to({value, where}, seen), plan.sliced);
  if (combine != Combine::set) {
    const Op op = combine == Combine::add   ? Op::add
                  : combine == Combine::mul ? Op::mul
                  : combine == Combine::max ? Op::max
                                            : Op::min;
    box = emit(op, {detail::apply_slices(x, plan, false), box});
  }
  std::vector<Tensor> operands{x, box};
  for (std::int64_t start : plan.start) operands.push_back(constant(ir::Literal::scalar_int(DType::i64, start)));
  return emit<Op::dynamic_update_slice>(std::span<const Tensor>(operands), {});
}

// The same part of x named by index tensors alone: kept axes count along an axis of their own.
std::vector<Index> spelled_out(const Tensor& x, const Plan& plan, const std::source_location& where) {
  const Gather given = plan.has_tensor() ? make_gather(x, plan, Mode::clip) : Gather{};
  std::size_t kept = 0, seen = 0;
  for (const Plan::Axis& a : plan.axes) kept += a.kind == Plan::Axis::Kind::kept;
  const std::size_t index_rank = given.index_shape.rank(), rank = kept + index_rank;
  const auto with_trailing_ones = [](const Tensor& ids, std::size_t n) {
    Ints dims = detail::extents(ids.shape());
    dims.insert(dims.end(), n, 1);
    return to_shape(ids, detail::checked_shape("index", dims, ids.dtype()));
  };
  std::vector<Index> result;
  for (const Plan::Axis& a : plan.axes) {
    if (a.kind == Plan::Axis::Kind::added) continue;
    if (a.kind == Plan::Axis::Kind::dropped) {
      result.emplace_back(plan.start[a.axis], where);
    } else if (a.kind == Plan::Axis::Kind::gathered) {
      result.emplace_back(with_trailing_ones(plan.tensors[a.tensor], kept - given.at), where);
    } else {
      const std::size_t position = seen < given.at ? seen : seen + index_rank;
      ++seen;
      const auto axis = static_cast<std::int64_t>(a.axis);
      const bool backwards = std::find(plan.reversed.begin(), plan.reversed.end(), axis) != plan.reversed.end();
      const std::int64_t n = plan.sliced[a.axis], step = plan.stride[a.axis];
      const std::int64_t first = backwards ? plan.start[a.axis] + (n - 1) * step : plan.start[a.axis];
      const std::int64_t by = backwards ? -step : step;
      const Tensor ids = arange(first, first + n * by, by, i32, where);
      result.emplace_back(with_trailing_ones(ids, rank - position - 1), where);
    }
  }
  return result;
}

Tensor write(const Tensor& x, const std::vector<Index>& indices, const Operand& value, Combine combine, Mode mode) {
  OpScope scope(value.where);
  Plan plan = make_plan(x, indices);
  const Tensor v = detail::as_dtype(value.tensor, x.dtype());
  if (!plan.has_tensor() && plan.contiguous()) return scope.done(write_box(x, plan, v, combine, value.where));
  if (plan.has_new_axis()) fail_at(detail::where_text({}), Msg::at_new_axis);
  if (plan.sliced != x.shape() || !plan.contiguous()) plan = make_plan(x, spelled_out(x, plan, value.where));
  const Gather g = make_gather(x, plan, mode == Mode::fill ? Mode::clip : mode);
  const std::size_t kept = x.shape().rank() - g.axes.size();
  const Ints windows = g.window_dims(kept);
  Ints updates(kept + g.index_shape.rank(), 0);
  std::size_t next = 0;
  for (std::size_t i = 0; i < g.index_shape.rank(); ++i) updates[g.at + i] = g.index_shape[i];
  for (std::size_t a = 0; a < x.shape().rank(); ++a)
    if (std::find(g.axes.begin(), g.axes.end(), static_cast<std::int64_t>(a)) == g.axes.end())
      updates[static_cast<std::size_t>(windows[next++])] = x.shape()[a];
  const Tensor update = broadcast_to({v, value.where}, detail::checked_shape("index", updates, x.dtype()));
  return scope.done(emit<Op::scatter>({x, g.indices, update},
                                      {.update_window_dims = windows,
                                       .inserted_window_dims = g.axes,
                                       .operand_batching_dims = {},
                                       .indices_batching_dims = {},
                                       .scatter_dims_to_operand_dims = g.axes,
                                       .index_vector_dim = static_cast<std::int64_t>(g.index_shape.rank()),
                                       .combine = combine,
                                       .mode = detail::ir_mode(mode)}));
}

}  // namespace

Tensor At::set(const Operand& value, Mode mode) const { return write(x_, indices_, value, Combine::set, mode); }
Tensor At::add(const Operand& value, Mode mode) const { return write(x_, indices_, value, Combine::add, mode); }
Tensor At::multiply(const Operand& value, Mode mode) const { return write(x_, indices_, value, Combine::mul, mode); }
Tensor At::max(const Operand& value, Mode mode) const { return write(x_, indices_, value, Combine::max, mode); }
Tensor At::min(const Operand& value, Mode mode) const { return write(x_, indices_, value, Combine::min, mode); }

Tensor segment_sum(const Operand& x, const Operand& segment_ids, std::int64_t segments) {
  OpScope scope("segment_sum", x.where);
  const Shape rows = x.tensor.shape();
  if (rows.rank() == 0 || segment_ids.tensor.shape() != Shape{rows[0]})
    fail_at(detail::where_text({}), Msg::segment_ids_shape, detail::type_text(segment_ids.tensor),
                detail::type_text(x.tensor));
  if (segments < 0) fail_at(detail::where_text({}), Msg::segment_count, segments);
  Ints dims = detail::extents(rows);
  dims[0] = segments;
  const Shape shape = detail::checked_shape("segment_sum", dims, x.tensor.dtype());
  const Tensor ids = detail::normal_ids("segment_sum", segment_ids.tensor, segments, false);
  const Shape column{rows[0], 1};
  Ints windows;
  for (std::size_t a = 1; a < shape.rank(); ++a) windows.push_back(static_cast<std::int64_t>(a));
  const Tensor start = constant(ir::Type{x.tensor.dtype(), shape}, 0);
  return scope.done(emit<Op::scatter>({start, to_shape(ids, column), x.tensor},
                                      {.update_window_dims = windows,
                                       .inserted_window_dims = {0},
                                       .operand_batching_dims = {},
                                       .indices_batching_dims = {},
                                       .scatter_dims_to_operand_dims = {0},
                                       .index_vector_dim = 1,
                                       .combine = Combine::add,
                                       .mode = ir::IndexMode::clip}));
}

}  // namespace burin
