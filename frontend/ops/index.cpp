// Reading by index: x[...], take, take_along_axis, dynamic_slice.
#include <burin/index.h>
#include <burin/ops.h>

#include <limits>

#include "base/message_ids.h"
#include "frontend/ops/index_plan.h"

namespace burin {

using detail::emit;
using detail::extents;
using detail::fill_value;
using detail::Gather;
using detail::ir_mode;
using detail::make_gather;
using detail::make_plan;
using detail::OpScope;
using detail::place_of;
using detail::Plan;
using detail::to_shape;
using detail::type_text;
using ir::Ints;
using ir::Op;

namespace {

Tensor gather(const Tensor& x, const Gather& g, Mode mode) {
  Ints sizes = extents(x.shape());
  for (std::int64_t axis : g.axes) sizes[static_cast<std::size_t>(axis)] = 1;
  const std::size_t kept = x.shape().rank() - g.axes.size();
  const Tensor all = emit<Op::gather>({x, g.indices},
                                      {.offset_dims = g.window_dims(kept),
                                       .collapsed_slice_dims = g.axes,
                                       .operand_batching_dims = {},
                                       .indices_batching_dims = {},
                                       .start_index_map = g.axes,
                                       .index_vector_dim = static_cast<std::int64_t>(g.index_shape.rank()),
                                       .slice_sizes = sizes,
                                       .mode = ir_mode(mode)},
                                      x.weak());
  if (mode != Mode::fill) return all;
  Ints dims;
  for (std::size_t i = 0; i < g.index_shape.rank(); ++i) dims.push_back(static_cast<std::int64_t>(g.at + i));
  const Tensor valid = emit<Op::broadcast>({g.valid}, {.shape = extents(all.shape()), .dims = dims});
  return emit(Op::select, {valid, all, fill_value(all)});
}

Tensor read(const Tensor& x, const std::vector<Index>& indices, Mode mode, const OpScope& scope) {
  const Plan plan = make_plan(x, indices);
  const Tensor sliced = detail::apply_slices(x, plan, scope.unjitted());
  if (!plan.has_tensor()) return to_shape(sliced, plan.with_new_axes(plan.without_dropped(), 0, 0));
  const Gather g = make_gather(sliced, plan, mode);
  const Tensor gathered = gather(sliced, g, mode);
  return to_shape(gathered, plan.with_new_axes(gathered.shape(), g.at, g.index_shape.rank()));
}

}  // namespace

Tensor Tensor::operator[](const Index& index) const {
  OpScope scope(index.where);
  return scope.done(read(*this, {index}, Mode::error, scope));
}
Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  const std::vector<Index> all(indices);
  OpScope scope(place_of(all));
  return scope.done(read(*this, all, Mode::error, scope));
}
At Tensor::at(const Index& index) const { return At(*this, {index}); }
At Tensor::at(std::initializer_list<Index> indices) const { return At(*this, std::vector<Index>(indices)); }

Tensor At::get(Mode mode) const {
  OpScope scope(place_of(indices_));
  return scope.done(read(x_, indices_, mode, scope));
}

namespace {

// One start per axis of x, negative ones counted from the end, as integers.
std::vector<Tensor> starts_of(const char* op, const Tensor& x, const std::vector<Operand>& starts) {
  const Shape shape = x.shape();
  std::vector<Tensor> all;
  for (const Operand& start : starts) {
    if (!is_int(start.tensor.dtype()))
      fail_at(detail::where_text({}), Msg::index_not_integer, op, type_text(start.tensor));
    DType dtype = size_of(start.tensor.dtype()) < 4 ? DType::i32 : start.tensor.dtype();
    const std::int64_t extent = all.size() < shape.rank() ? shape[all.size()] : 0;
    if (extent > std::numeric_limits<std::int32_t>::max() && dtype == DType::i32) dtype = DType::i64;
    Tensor from_end = detail::as_dtype(start.tensor, dtype);
    if (const detail::Node& node = detail::used_node(start.tensor, start.where); node.kind == detail::Node::Kind::number) {
      if (node.integer < 0) from_end = detail::as_dtype(Tensor(node.integer + extent), dtype);
    } else if (start.tensor.shape().rank() == 0 && !is_unsigned_int(dtype)) {
      const auto like = [&](std::int64_t value) { return detail::constant(ir::Literal::scalar_int(dtype, value)); };
      from_end = emit(Op::select, {emit(Op::lt, {from_end, like(0)}), emit(Op::add, {from_end, like(extent)}), from_end});
    }
    all.push_back(from_end);
  }
  return all;
}

}  // namespace

Tensor take(const Operand& x, const Operand& ids, std::int64_t axis, Mode mode) {
  OpScope scope("take", x.where);
  const Shape shape = x.tensor.shape();
  const auto at = static_cast<std::int64_t>(detail::normal_axis("take", axis, shape.rank(), x.tensor));
  std::vector<Index> indices;
  for (std::int64_t i = 0; i < at; ++i) indices.emplace_back(all, x.where);
  indices.emplace_back(ids.tensor, x.where);
  return scope.done(read(x.tensor, indices, mode, scope));
}

Tensor take_along_axis(const Operand& x, const Operand& ids, std::int64_t axis, Mode mode) {
  OpScope scope("take_along_axis", x.where);
  const std::size_t rank = x.tensor.shape().rank();
  const std::size_t at = detail::normal_axis("take_along_axis", axis, rank, x.tensor);
  if (ids.tensor.shape().rank() != rank)
    fail_at(detail::where_text({}), Msg::take_along_axis_rank, type_text(ids.tensor), type_text(x.tensor));
  // All axes but this one broadcast.
  Shape x_shape = x.tensor.shape(), ids_shape = ids.tensor.shape();
  for (std::size_t i = 0; i < rank; ++i) {
    if (i == at) continue;
    if (x_shape[i] != ids_shape[i] && x_shape[i] != 1 && ids_shape[i] != 1)
      fail_at(detail::where_text({}), Msg::take_along_axis_extent, i, type_text(ids.tensor), ids_shape[i],
                  type_text(x.tensor), x_shape[i]);
    x_shape[i] = ids_shape[i] = x_shape[i] == 1 ? ids_shape[i] : x_shape[i];
  }
  const Tensor wide = detail::as_shape(x.tensor, x_shape);
  const Tensor rows = detail::as_shape(detail::normal_ids("take_along_axis", ids.tensor, x_shape[at], mode != Mode::strict), ids_shape);
  Ints others;
  for (std::size_t i = 0; i < rank; ++i)
    if (i != at) others.push_back(static_cast<std::int64_t>(i));
  const Tensor found = emit<Op::gather>({wide, detail::as_vectors(rows)},
                                        {.offset_dims = {},
                                         .collapsed_slice_dims = {static_cast<std::int64_t>(at)},
                                         .operand_batching_dims = others,
                                         .indices_batching_dims = others,
                                         .start_index_map = {static_cast<std::int64_t>(at)},
                                         .index_vector_dim = static_cast<std::int64_t>(rank),
                                         .slice_sizes = Ints(rank, 1),
                                         .mode = ir_mode(mode)},
                                        x.tensor.weak());
  if (mode != Mode::fill) return scope.done(found);
  return scope.done(emit(Op::select, {detail::in_range(rows, x_shape[at]), found, fill_value(found)}));
}

Tensor dynamic_slice(const Operand& x, const std::vector<Operand>& starts, const IntList& sizes) {
  OpScope scope(x.where);
  std::vector<Tensor> operands = starts_of("dynamic_slice", x.tensor, starts);
  operands.insert(operands.begin(), x.tensor);
  return scope.done(emit<Op::dynamic_slice>(std::span<const Tensor>(operands), {.sizes = sizes.values()}, x.tensor.weak()));
}

Tensor dynamic_update_slice(const Operand& x, const Operand& update, const std::vector<Operand>& starts) {
  OpScope scope(x.where);
  std::vector<Tensor> operands = starts_of("dynamic_update_slice", x.tensor, starts);
  operands.insert(operands.begin(), {x.tensor, detail::as_dtype(update.tensor, x.tensor.dtype())});
  return scope.done(emit<Op::dynamic_update_slice>(std::span<const Tensor>(operands), {}));
}

}  // namespace burin
