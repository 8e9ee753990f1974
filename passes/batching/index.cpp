// Gather and scatter take the batch as batching dims when operand and indices both have it, as one more axis of the window
// when the indices are shared, as one more axis of the indices when the operand is. Slices at starts that differ between
// examples become gather and scatter.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "passes/batching/rules.h"

namespace burin::passes::batching {

void batch(Tag<Op::constant>, BatchContext&) { BURIN_CHECK(false, "a constant has no operands"); }
void batch(Tag<Op::iota>, BatchContext&) { BURIN_CHECK(false, "iota has no operands"); }

void batch(Tag<Op::gather>, BatchContext& c) {
  attrs::gather g = c.attrs<Op::gather>();
  g.offset_dims = shifted(g.offset_dims);
  if (c.batched(0)) {
    g.collapsed_slice_dims = shifted(g.collapsed_slice_dims);
    g.operand_batching_dims = shifted(g.operand_batching_dims);
    g.start_index_map = shifted(g.start_index_map);
  }
  if (c.batched(1)) {
    g.indices_batching_dims = shifted(g.indices_batching_dims);
    ++g.index_vector_dim;
  }
  if (c.batched(0) && c.batched(1)) {
    g.operand_batching_dims.insert(g.operand_batching_dims.begin(), 0);
    g.indices_batching_dims.insert(g.indices_batching_dims.begin(), 0);
    g.slice_sizes.insert(g.slice_sizes.begin(), 1);
  } else if (c.batched(0)) {
    g.offset_dims.insert(g.offset_dims.begin(), 0);
    g.slice_sizes.insert(g.slice_sizes.begin(), c.size);
  }
  c.give(c.b.emit<Op::gather>({c.operand(0), c.operand(1)}, g));
}

void batch(Tag<Op::scatter>, BatchContext& c) {
  attrs::scatter s = c.attrs<Op::scatter>();
  s.update_window_dims = shifted(s.update_window_dims);
  s.inserted_window_dims = shifted(s.inserted_window_dims);
  s.operand_batching_dims = shifted(s.operand_batching_dims);
  s.scatter_dims_to_operand_dims = shifted(s.scatter_dims_to_operand_dims);
  if (c.batched(1)) {
    s.indices_batching_dims = prepended(0, shifted(s.indices_batching_dims));
    s.operand_batching_dims.insert(s.operand_batching_dims.begin(), 0);
    ++s.index_vector_dim;
  } else {
    s.update_window_dims.insert(s.update_window_dims.begin(), 0);
  }
  c.give(c.b.emit<Op::scatter>({c.with_batch(0), c.operand(1), c.with_batch(2)}, s));
}

namespace {

/// The starts from operand `first` on, one row of indices per example, [size, n]. Each is clamped in its own dtype when
/// `clamped`, and when dtypes differ, so that none changes its meaning as an i64.
ValueId stack_starts(BatchContext& c, std::size_t first, const Ints& window, bool clamped) {
  Builder& b = c.b;
  const Shape& operand = c.example_type(0).shape;
  const DType dtype = c.example_type(first).dtype;
  bool same = true;
  for (std::size_t i = first; i < c.num_operands(); ++i) same &= c.example_type(i).dtype == dtype;
  std::vector<ValueId> columns;
  for (std::size_t i = first; i < c.num_operands(); ++i) {
    ValueId start = c.with_batch(i);
    if (clamped || !same) {
      const Type type = b.type(start);
      std::int64_t last = operand[i - first] - window[i - first];
      if (const std::size_t bits = 8 * size_of(type.dtype); bits < 64)
        last = std::min(last, (std::int64_t{1} << (is_signed_int(type.dtype) ? bits - 1 : bits)) - 1);
      const ValueId limit = b.constant(Literal::splat(type.shape, Literal::scalar_int(type.dtype, last)));
      start = b.clamp(b.full(type, 0), start, limit);
    }
    columns.push_back(b.reshape(b.convert(start, same ? dtype : DType::i64), Shape{c.size, 1}));
  }
  return columns.size() == 1 ? columns[0] : b.emit<Op::concatenate>(columns, {.axis = 1});
}

/// The scalar starts from operand `first` on with a zero in front, for a batch axis that is taken whole.
void append_starts_behind_zero(BatchContext& c, std::size_t first, std::vector<ValueId>& operands) {
  const DType dtype = first < c.num_operands() ? c.example_type(first).dtype : DType::i32;
  operands.push_back(c.b.full(Type{dtype, {}}, 0));
  operands.insert(operands.end(), c.operands().begin() + static_cast<std::ptrdiff_t>(first), c.operands().end());
}

bool any_batched(const BatchContext& c, std::size_t first) {
  for (std::size_t i = first; i < c.num_operands(); ++i)
    if (c.batched(i)) return true;
  return false;
}

}  // namespace

void batch(Tag<Op::dynamic_slice>, BatchContext& c) {
  const Ints sizes = c.attrs<Op::dynamic_slice>().sizes;
  if (!any_batched(c, 1)) {
    std::vector<ValueId> operands = {c.operand(0)};
    append_starts_behind_zero(c, 1, operands);
    return c.give(c.b.emit<Op::dynamic_slice>(operands, {.sizes = prepended(c.size, sizes)}));
  }
  const bool own = c.batched(0);
  const ValueId indices = stack_starts(c, 1, sizes, false);
  c.give(c.b.emit<Op::gather>({c.operand(0), indices},
                              {.offset_dims = ascending(1, sizes.size()),
                               .operand_batching_dims = own ? Ints{0} : Ints{},
                               .indices_batching_dims = own ? Ints{0} : Ints{},
                               .start_index_map = ascending(own ? 1 : 0, sizes.size()),
                               .index_vector_dim = 1,
                               .slice_sizes = own ? prepended(1, sizes) : sizes,
                               .mode = IndexMode::clip}));
}

void batch(Tag<Op::dynamic_update_slice>, BatchContext& c) {
  if (!any_batched(c, 2)) {
    std::vector<ValueId> operands = {c.with_batch(0), c.with_batch(1)};
    append_starts_behind_zero(c, 2, operands);
    return c.give(c.b.emit<Op::dynamic_update_slice>(operands));
  }
  const Shape& window = c.example_type(1).shape;
  const ValueId indices = stack_starts(c, 2, Ints(window.begin(), window.end()), true);
  c.give(c.b.emit<Op::scatter>({c.with_batch(0), indices, c.with_batch(1)},
                               {.update_window_dims = ascending(1, window.rank()),
                                .operand_batching_dims = {0},
                                .indices_batching_dims = {0},
                                .scatter_dims_to_operand_dims = ascending(1, window.rank()),
                                .index_vector_dim = 1,
                                .combine = Combine::set,
                                .mode = IndexMode::clip}));
}

}  // namespace burin::passes::batching
