// The product of a vector and a matrix that lies row by row along k: sums along memory, without packing or padded tiles.
#include <algorithm>
#include <numeric>

#include "ir/rewriter.h"
#include "passes/lower/matmul_plan.h"

namespace burin::passes::lower {
namespace {

// Axes of an operand by where they go: batch, then free ones, then contracting ones as `k_order` has them.
Ints permutation(const std::vector<std::pair<Dim, std::size_t>>& axes, const std::vector<std::size_t>& k_order) {
  Ints order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](std::int64_t axis) {
    const auto [dim, at] = axes[static_cast<std::size_t>(axis)];
    const std::size_t within = dim == Dim::k ? static_cast<std::size_t>(std::find(k_order.begin(), k_order.end(), at) - k_order.begin()) : at;
    return std::pair{dim == Dim::batch ? 0 : dim == Dim::k ? 2 : 1, within};
  };
  std::sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) { return rank(x) < rank(y); });
  return order;
}

}  // namespace

Function as_sums(const Function& body, const MatmulPlan& plan) {
  std::vector<std::size_t> k_order;  // as the matrix has them in memory
  for (const auto& [dim, at] : plan.rhs_axes)
    if (dim == Dim::k) k_order.push_back(at);
  Shape vector = plan.batch, domain = plan.batch;
  for (std::int64_t extent : plan.n) domain.push_back(extent);
  const std::size_t first_k = domain.rank();
  for (std::size_t at : k_order) {
    vector.push_back(plan.k[at]);
    domain.push_back(plan.k[at]);
  }
  Rewriter rewriter(body);
  Builder& b = rewriter.b;
  body.for_each_op([&](OpId op) {
    b.set_location(body.location(op));
    if (op != plan.dot) {
      rewriter.copy(op);
      return;
    }
    const auto ordered = [&](ValueId side, const std::vector<std::pair<Dim, std::size_t>>& axes) {
      return b.transpose(b.convert(rewriter[side], plan.compute), permutation(axes, k_order));
    };
    Ints vector_dims, k_dims;
    for (std::size_t axis = 0; axis < domain.rank(); ++axis) {
      if (axis < plan.batch.rank() || axis >= first_k) vector_dims.push_back(static_cast<std::int64_t>(axis));
      if (axis >= first_k) k_dims.push_back(static_cast<std::int64_t>(axis));
    }
    const ValueId x = b.broadcast(b.reshape(ordered(plan.lhs, plan.lhs_axes), vector), domain, vector_dims);
    const ValueId sum = b.reduce(Op::reduce_sum, b.mul(x, ordered(plan.rhs, plan.rhs_axes)), k_dims);
    const Type& result = body.type(plan.result);
    rewriter.replace(plan.result, b.convert(b.reshape(sum, result.shape), result.dtype));
  });
  return rewriter.finish();
}

}  // namespace burin::passes::lower
