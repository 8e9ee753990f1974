#include <algorithm>

#include "passes/simplify/rules.h"

namespace burin::passes::rewrite {

// Scatter-add of one update per row into zeros, as the derivative of take_along_axis makes it: the element of a row whose index
// is the wanted one gets the update, all others zero. That is an elementwise expression and joins the kernels around it.
Rewrite index(const Site& s) {
  if (s.op != Op::scatter) return {};
  const auto a = s.attrs<Op::scatter>();
  const Shape& to = s.results[0].shape;
  if (a.combine != Combine::add || a.scatter_dims_to_operand_dims.size() != 1 || !a.update_window_dims.empty() ||
      a.inserted_window_dims != a.scatter_dims_to_operand_dims)
    return {};
  if (!is_splat_of(s.f(), s.operands[0], 0)) return {};
  const std::int64_t axis = a.scatter_dims_to_operand_dims[0];
  Ints rows;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(to.rank()); ++i)
    if (i != axis) rows.push_back(i);
  if (a.operand_batching_dims != rows) return {};
  // Every index axis is a row, but for axes of extent 1: one index a row, and as many updates as indices.
  std::int64_t num_rows = 1;
  Shape row_shape;
  for (std::int64_t i : rows) {
    num_rows *= to[static_cast<std::size_t>(i)];
    row_shape.push_back(to[static_cast<std::size_t>(i)]);
  }
  if (s.type(1).size() != num_rows || to.size() == 0) return {};
  if (!std::is_sorted(a.indices_batching_dims.begin(), a.indices_batching_dims.end())) return {};
  Builder& b = s.b;
  const DType index_dtype = s.type(1).dtype;
  if (size_of(index_dtype) < 4) return {};  // an iota of a narrow type would wrap
  const ValueId wanted = b.reshape(s.operands[1], row_shape);
  // 0 + update: a negative zero becomes a positive one, as in the sum. Where indices are checked the zero is read from an
  // array of zeros like the result: it keeps the check, and its message names the array that the indices are of.
  ValueId zero = b.full(Type{s.results[0].dtype, row_shape}, 0);
  if (a.mode == IndexMode::error) {
    Ints batch;
    for (std::size_t k = 0; k < rows.size(); ++k) batch.push_back(static_cast<std::int64_t>(k));
    zero = b.emit<Op::gather>({b.full(s.results[0], 0), wanted},
                              {.collapsed_slice_dims = {axis}, .operand_batching_dims = rows, .indices_batching_dims = batch,
                               .start_index_map = {axis}, .index_vector_dim = static_cast<std::int64_t>(row_shape.rank()),
                               .slice_sizes = Ints(to.rank(), 1), .mode = IndexMode::error});
  }
  const ValueId hit = b.emit<Op::eq>({b.iota(index_dtype, to, axis), b.broadcast(wanted, to, rows)});
  const ValueId update = b.broadcast(b.add(b.reshape(s.operands[2], row_shape), zero), to, rows);
  return b.select(hit, update, b.full(s.results[0], 0));
}

}  // namespace burin::passes::rewrite
