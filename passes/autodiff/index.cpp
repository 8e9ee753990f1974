// Gather and scatter, dynamic slices. A gather's transpose adds into zeros where it read, a scatter's gathers where it wrote.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {
namespace {

attrs::scatter scatter_like(const attrs::gather& g) {
  return {.update_window_dims = g.offset_dims,
          .inserted_window_dims = g.collapsed_slice_dims,
          .operand_batching_dims = g.operand_batching_dims,
          .indices_batching_dims = g.indices_batching_dims,
          .scatter_dims_to_operand_dims = g.start_index_map,
          .index_vector_dim = g.index_vector_dim,
          .combine = Combine::add,
          .mode = g.mode};
}

/// Window extent per operand axis.
Ints window_sizes(const attrs::scatter& s, const Shape& operand, const Shape& updates) {
  Ints sizes;
  std::size_t next = 0;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(operand.rank()); ++axis) {
    const auto in = [&](const Ints& list) { return std::find(list.begin(), list.end(), axis) != list.end(); };
    if (in(s.inserted_window_dims) || in(s.operand_batching_dims))
      sizes.push_back(1);
    else
      sizes.push_back(updates[static_cast<std::size_t>(s.update_window_dims[next++])]);
  }
  return sizes;
}

attrs::gather gather_like(const attrs::scatter& s, const Shape& operand, const Shape& updates) {
  return {.offset_dims = s.update_window_dims,
          .collapsed_slice_dims = s.inserted_window_dims,
          .operand_batching_dims = s.operand_batching_dims,
          .indices_batching_dims = s.indices_batching_dims,
          .start_index_map = s.scatter_dims_to_operand_dims,
          .index_vector_dim = s.index_vector_dim,
          .slice_sizes = window_sizes(s, operand, updates),
          .mode = s.mode};
}

/// Per index component along index_vector_dim: the largest start that fits the operand and the indices' dtype, as constants
/// in the indices' shape.
ValueId largest_starts(Builder& b, ValueId indices, std::int64_t index_vector_dim, const Ints& map, const Shape& operand,
                       const Ints& window) {
  const Type type = b.type(indices);
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  if (const std::size_t bits = 8 * size_of(type.dtype); bits < 64)
    largest = (std::int64_t{1} << (is_signed_int(type.dtype) ? bits - 1 : bits)) - 1;
  Literal last(Type{type.dtype, Shape{static_cast<std::int64_t>(map.size())}});
  for (std::size_t i = 0; i < map.size(); ++i) {
    const auto axis = static_cast<std::size_t>(map[i]);
    last.set_int(static_cast<std::int64_t>(i), std::min(operand[axis] - window[axis], largest));
  }
  if (index_vector_dim == static_cast<std::int64_t>(type.rank()))
    return b.broadcast(b.reshape(b.constant(last), {}), type.shape, {});
  return b.broadcast(b.constant(last), type.shape, {index_vector_dim});
}

/// For each element of the updates: does the window it belongs to fit into the operand?
ValueId window_fits(Builder& b, const attrs::scatter& s, ValueId indices, const Shape& operand, const Shape& updates) {
  const ValueId last = largest_starts(b, indices, s.index_vector_dim, s.scatter_dims_to_operand_dims, operand,
                                      window_sizes(s, operand, updates));
  ValueId fits = b.emit<Op::bit_and>({b.ge(indices, b.full_like(indices, 0)), b.le(indices, last)});
  if (s.index_vector_dim < static_cast<std::int64_t>(b.type(indices).rank()))
    fits = b.reduce(Op::reduce_and, fits, {s.index_vector_dim});
  Ints dims;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(updates.rank()); ++axis)
    if (std::find(s.update_window_dims.begin(), s.update_window_dims.end(), axis) == s.update_window_dims.end())
      dims.push_back(axis);
  return b.broadcast(fits, updates, dims);
}

struct Written {
  ValueId kept;  // elements of the operand that no update overwrites
  ValueId won;   // elements of the updates that stay: the last write to an element wins
};

/// Numbers the updates from 1, writes the numbers as `s` writes updates, and reads back who won.
Written last_writes(Builder& b, const attrs::scatter& s, const Shape& operand, ValueId indices, const Shape& updates) {
  const ValueId from_zero = b.iota(DType::i64, Shape{updates.size()}, 0);
  const ValueId numbers = b.reshape(b.add(from_zero, b.full_like(from_zero, 1)), updates);
  const ValueId zeros = b.full(Type{DType::i64, operand}, 0);
  const ValueId winners = b.emit<Op::scatter>({zeros, indices, numbers}, s);
  const ValueId won = b.eq(b.emit<Op::gather>({winners, indices}, gather_like(s, operand, updates)), numbers);
  return {b.eq(winners, zeros), won};
}

}  // namespace

void jvp(Tag<Op::gather>, JvpContext& c) {
  c.emit_primal();
  c.add_tangent(0, c.b.emit<Op::gather>({*c.tangent(0), c.primal(1)}, c.attrs<Op::gather>()));
}

void transpose(Tag<Op::gather>, TransposeContext& c) {
  c.linear_only_in({0});
  Builder& b = c.b;
  const attrs::gather g = c.attrs<Op::gather>();
  ValueId indices = c.operands[1];
  if (g.mode == IndexMode::clip) {
    const ValueId last =
        largest_starts(b, indices, g.index_vector_dim, g.start_index_map, c.operand_type(0).shape, g.slice_sizes);
    indices = b.clamp(b.full_like(indices, 0), indices, last);
  }
  c.give(0, b.emit<Op::scatter>({c.zeros(0), indices, c.ct()}, scatter_like(g)));
}

void jvp(Tag<Op::scatter>, JvpContext& c) {
  Builder& b = c.b;
  const attrs::scatter s = c.attrs<Op::scatter>();
  const ValueId operand = c.primal(0), indices = c.primal(1), updates = c.primal(2);
  if (s.combine == Combine::add) {
    c.emit_primal();
    c.add_tangent(0, b.emit<Op::scatter>({c.tangent_or_zeros(0), indices, c.tangent_or_zeros(2)}, s));
    return;
  }
  if (s.combine != Combine::set)
    c.not_differentiable("it combines by " + std::string(name(s.combine)) + "; use add or set");
  c.emit_primal();
  if (b.type(operand).size() == 0) return;  // no element has a tangent
  const Written written = last_writes(b, s, b.type(operand).shape, indices, b.type(updates).shape);
  attrs::scatter add = s;
  add.combine = Combine::add;
  const ValueId t = c.tangent_or_zeros(0), u = c.tangent_or_zeros(2);
  c.add_tangent(0, b.emit<Op::scatter>({b.select(written.kept, t, b.full_like(t, 0)), indices,
                                        b.select(written.won, u, b.full_like(u, 0))}, add));
}

void transpose(Tag<Op::scatter>, TransposeContext& c) {
  Builder& b = c.b;
  const attrs::scatter s = c.attrs<Op::scatter>();
  if (s.combine != Combine::add && s.combine != Combine::set) c.not_linear();
  c.linear_only_in({0, 2});
  const Shape shape = c.operand_type(0).shape, updates = c.operand_type(2).shape;
  if (shape.size() == 0) {  // all were dropped, and nothing can be read
    if (c.linear[0]) c.give(0, c.ct());
    if (c.linear[2]) c.give(2, c.zeros(2));
    return;
  }
  if (s.combine == Combine::set) {  // a rule of the user's may put it on tangents
    const Written written = last_writes(b, s, shape, c.operands[1], updates);
    const ValueId ct = c.ct();
    if (c.linear[0]) c.give(0, b.select(written.kept, ct, b.full_like(ct, 0)));
    if (!c.linear[2]) return;
    const ValueId read = b.emit<Op::gather>({ct, c.operands[1]}, gather_like(s, shape, updates));
    return c.give(2, b.select(written.won, read, b.full_like(read, 0)));
  }
  if (c.linear[0]) c.give(0, c.ct());
  if (!c.linear[2]) return;
  const ValueId read = b.emit<Op::gather>({c.ct(), c.operands[1]}, gather_like(s, shape, updates));
  if (s.mode == IndexMode::error) return c.give(2, read);
  // A dropped window has no influence; the gather above clamped it onto elements that it never touched.
  const ValueId fits = window_fits(b, s, c.operands[1], shape, updates);
  c.give(2, b.select(fits, read, b.full_like(read, 0)));
}

void jvp(Tag<Op::dynamic_slice>, JvpContext& c) {
  c.emit_primal();
  std::vector<ValueId> operands(c.primals().begin(), c.primals().end());
  operands[0] = *c.tangent(0);
  c.add_tangent(0, c.b.emit<Op::dynamic_slice>(operands, c.attrs<Op::dynamic_slice>()));
}

void transpose(Tag<Op::dynamic_slice>, TransposeContext& c) {
  c.linear_only_in({0});
  std::vector<ValueId> operands = {c.zeros(0), c.ct()};
  operands.insert(operands.end(), c.operands.begin() + 1, c.operands.end());
  c.give(0, c.b.emit<Op::dynamic_update_slice>(operands));
}

void jvp(Tag<Op::dynamic_update_slice>, JvpContext& c) {
  c.emit_primal();
  std::vector<ValueId> operands(c.primals().begin(), c.primals().end());
  operands[0] = c.tangent_or_zeros(0);
  operands[1] = c.tangent_or_zeros(1);
  c.add_tangent(0, c.b.emit<Op::dynamic_update_slice>(operands));
}

void transpose(Tag<Op::dynamic_update_slice>, TransposeContext& c) {
  c.linear_only_in({0, 1});
  std::vector<ValueId> starts(c.operands.begin() + 2, c.operands.end());
  if (c.linear[0]) {
    std::vector<ValueId> operands = {c.ct(), c.zeros(1)};
    operands.insert(operands.end(), starts.begin(), starts.end());
    c.give(0, c.b.emit<Op::dynamic_update_slice>(operands));
  }
  if (c.linear[1]) {
    const Shape& window = c.operand_type(1).shape;
    std::vector<ValueId> operands = {c.ct()};
    operands.insert(operands.end(), starts.begin(), starts.end());
    c.give(1, c.b.emit<Op::dynamic_slice>(operands, {.sizes = Ints(window.begin(), window.end())}));
  }
}

}  // namespace burin::passes::autodiff
