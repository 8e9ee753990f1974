#include <algorithm>

#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {
namespace {

bool contains(const Ints& axes, Int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }
Int extent(const Type& type, Int axis) { return type.shape[static_cast<std::size_t>(axis)]; }

// The dimension numbers that gather and scatter share. `inserted` is collapsed_slice_dims or inserted_window_dims,
// `map` start_index_map or scatter_dims_to_operand_dims.
struct IndexDims {
  std::string_view inserted_name;
  const Ints& inserted;
  const Ints& operand_batching;
  const Ints& indices_batching;
  std::string_view map_name;
  const Ints& map;
  Int vector_dim;
};

void check_disjoint(const Operands& in, std::string_view a_name, const Ints& a, std::string_view b_name,
                    const Ints& b) {
  for (Int axis : a)
    if (contains(b, axis)) in.fail(Msg::index_dims_overlap, name(in.op), a_name, b_name, axis);
}

// Checks operand 0 and the indices (operand 1); returns the indices' extents without the index vector axis.
Ints check_index_dims(const Operands& in, const IndexDims& d) {
  const Type &operand = in[0], &indices = in[1];
  check_integer(in, 1, "indices");
  check_axes(in, d.inserted_name, d.inserted, operand, true);
  check_axes(in, "operand_batching_dims", d.operand_batching, operand, true);
  check_axes(in, "indices_batching_dims", d.indices_batching, indices);
  check_axes(in, d.map_name, d.map, operand);
  check_disjoint(in, d.inserted_name, d.inserted, "operand_batching_dims", d.operand_batching);
  check_disjoint(in, d.map_name, d.map, "operand_batching_dims", d.operand_batching);
  const auto rank = static_cast<Int>(indices.rank());
  if (d.vector_dim < 0 || d.vector_dim > rank)
    in.fail(Msg::index_vector_dim, name(in.op), d.vector_dim, rank, to_string(indices));
  if (contains(d.indices_batching, d.vector_dim)) in.fail(Msg::index_vector_batching, name(in.op), d.vector_dim);
  const Int components = d.vector_dim < rank ? extent(indices, d.vector_dim) : 1;
  if (static_cast<Int>(d.map.size()) != components)
    in.fail(Msg::index_components, name(in.op), d.map_name, counted(d.map.size(), "axis", "axes"), counted(components, "component"), to_string(indices), d.vector_dim);
  if (d.operand_batching.size() != d.indices_batching.size())
    in.fail(Msg::index_batching_counts, name(in.op), counted(d.operand_batching.size(), "axis", "axes"), d.indices_batching.size());
  for (std::size_t i = 0; i < d.operand_batching.size(); ++i) {
    const Int of_operand = extent(operand, d.operand_batching[i]), of_indices = extent(indices, d.indices_batching[i]);
    if (of_operand != of_indices)
      in.fail(Msg::index_batching_sizes, name(in.op), to_string(operand), d.operand_batching[i], of_operand,
              to_string(indices), d.indices_batching[i], of_indices);
  }
  Ints extents;
  for (Int axis = 0; axis < rank; ++axis)
    if (axis != d.vector_dim) extents.push_back(extent(indices, axis));
  return extents;
}

// `window` lists axes of a tensor of rank `rank` (the result of gather, the updates of scatter).
void check_window_dims(const Operands& in, std::string_view attribute, const Ints& window, std::size_t rank) {
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (window[i] < 0 || window[i] >= static_cast<Int>(rank))
      in.fail(Msg::window_dim_range, name(in.op), attribute, window[i], rank);
    if (i > 0 && window[i] <= window[i - 1]) in.fail(Msg::axes_not_increasing, name(in.op), attribute, list(window));
  }
}

void check_window_count(const Operands& in, std::string_view window_name, const Ints& window, const IndexDims& d) {
  const std::size_t total = window.size() + d.inserted.size() + d.operand_batching.size();
  if (total != in[0].rank())
    in.fail(Msg::window_dim_count, name(in.op), window_name, d.inserted_name, counted(total, "axis", "axes"), to_string(in[0]),
            counted(in[0].rank(), "axis", "axes"));
}

// Axes of `all` extents: those in `window` come from `window_extents`, the others, in order, from `batch_extents`.
Ints interleave(const Ints& window, const Ints& window_extents, const Ints& batch_extents) {
  Ints extents;
  std::size_t w = 0, b = 0;
  const std::size_t rank = window_extents.size() + batch_extents.size();
  for (std::size_t axis = 0; axis < rank; ++axis)
    extents.push_back(contains(window, static_cast<Int>(axis)) ? window_extents[w++] : batch_extents[b++]);
  return extents;
}

void check_starts(const Operands& in, std::size_t first) {
  if (in.size() - first != in[0].rank())
    in.fail(Msg::start_count, name(in.op), in.size() - first, to_string(in[0]), counted(in[0].rank(), "axis", "axes"));
  for (std::size_t i = first; i < in.size(); ++i) {
    check_integer(in, i, "start");
    if (in[i].rank() != 0) in.fail(Msg::expected_scalar, name(in.op), "start", to_string(in[i]), i);
  }
}

void check_at_least(const Operands& in, std::size_t n) {
  if (in.size() < n) in.fail(Msg::too_few_operands, name(in.op), n, in.size());
}

}  // namespace

Types infer(Tag<Op::constant>, const Operands&, const attrs::constant& a) {
  BURIN_CHECK(a.value.valid(), "constant without a value");
  return {a.value.type()};
}

Types infer(Tag<Op::iota>, const Operands& in, const attrs::iota& a) {
  const Type result{a.dtype, checked_shape(in, "shape", a.shape)};
  if (a.dtype == DType::bool_) in.fail(Msg::iota_dtype, name(a.dtype));
  check_axis(in, "axis", a.axis, result);
  return {result};
}

Types infer(Tag<Op::gather>, const Operands& in, const attrs::gather& a) {
  const IndexDims dims{"collapsed_slice_dims", a.collapsed_slice_dims, a.operand_batching_dims, a.indices_batching_dims,
                       "start_index_map",      a.start_index_map,      a.index_vector_dim};
  const Ints batch = check_index_dims(in, dims);
  check_window_count(in, "offset_dims", a.offset_dims, dims);
  check_length(in, "slice_sizes", a.slice_sizes, in[0]);
  Ints window;
  for (std::size_t i = 0; i < in[0].rank(); ++i) {
    const Int size = a.slice_sizes[i], axis = static_cast<Int>(i);
    if (contains(a.collapsed_slice_dims, axis) || contains(a.operand_batching_dims, axis)) {
      if (size != 1) in.fail(Msg::gather_collapsed_size, i, size);
    } else {
      if (size < 0 || size > in[0].shape[i]) in.fail(Msg::slice_size, name(in.op), i, size, to_string(in[0]));
      window.push_back(size);
    }
  }
  const std::size_t rank = window.size() + batch.size();
  if (rank > Shape::max_rank) in.fail(Msg::result_rank, name(in.op), rank, Shape::max_rank);
  check_window_dims(in, "offset_dims", a.offset_dims, rank);
  const Type result{in[0].dtype, Shape(interleave(a.offset_dims, window, batch))};
  for (Int axis : a.collapsed_slice_dims)
    if (extent(in[0], axis) == 0 && result.size() != 0)
      in.fail(Msg::gather_from_empty, axis, to_string(in[0]), to_string(result));
  return {result};
}

Types infer(Tag<Op::scatter>, const Operands& in, const attrs::scatter& a) {
  const IndexDims dims{"inserted_window_dims",  a.inserted_window_dims,         a.operand_batching_dims,
                       a.indices_batching_dims, "scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims,
                       a.index_vector_dim};
  const Ints batch = check_index_dims(in, dims);
  check_same_dtype(in, 0, 2);
  check_window_count(in, "update_window_dims", a.update_window_dims, dims);
  const Type& updates = in[2];
  if (updates.rank() != a.update_window_dims.size() + batch.size())
    in.fail(Msg::scatter_update_rank, to_string(updates), a.update_window_dims.size(), batch.size());
  check_window_dims(in, "update_window_dims", a.update_window_dims, updates.rank());
  std::size_t b = 0, operand_axis = 0;
  for (std::size_t i = 0; i < updates.rank(); ++i) {
    if (!contains(a.update_window_dims, static_cast<Int>(i))) {
      if (updates.shape[i] != batch[b])
        in.fail(Msg::scatter_update_batch, i, to_string(updates), updates.shape[i], batch[b], to_string(in[1]));
      ++b;
      continue;
    }
    for (;; ++operand_axis) {
      const auto axis = static_cast<Int>(operand_axis);
      if (!contains(a.inserted_window_dims, axis) && !contains(a.operand_batching_dims, axis)) break;
    }
    if (updates.shape[i] > in[0].shape[operand_axis])
      in.fail(Msg::scatter_window_size, i, to_string(updates), updates.shape[i], operand_axis, to_string(in[0]),
              in[0].shape[operand_axis]);
    ++operand_axis;
  }
  return {in[0]};
}

Types infer(Tag<Op::dynamic_slice>, const Operands& in, const attrs::dynamic_slice& a) {
  check_at_least(in, 1);
  check_starts(in, 1);
  check_length(in, "sizes", a.sizes, in[0]);
  for (std::size_t i = 0; i < a.sizes.size(); ++i)
    if (a.sizes[i] < 0 || a.sizes[i] > in[0].shape[i])
      in.fail(Msg::slice_size, name(in.op), i, a.sizes[i], to_string(in[0]));
  return {Type{in[0].dtype, Shape(a.sizes)}};
}

Types infer(Tag<Op::dynamic_update_slice>, const Operands& in, const attrs::dynamic_update_slice&) {
  check_at_least(in, 2);
  check_same_dtype(in, 0, 1);
  check_same_rank(in, 0, 1);
  for (std::size_t i = 0; i < in[0].rank(); ++i)
    if (in[1].shape[i] > in[0].shape[i]) in.fail(Msg::update_too_large, i, to_string(in[1]), to_string(in[0]));
  check_starts(in, 2);
  return {in[0]};
}

}  // namespace burin::ir::shape
