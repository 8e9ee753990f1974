#include <algorithm>

#include "base/check.h"
#include "passes/autodiff/rules.h"

namespace burin::passes::autodiff {

void jvp(Tag<Op::dot_general>, JvpContext& c) {
  const attrs::dot_general a = c.attrs<Op::dot_general>();
  c.emit_primal();
  if (!is_float(a.dtype)) return;
  if (c.tangent(0)) c.add_tangent(0, c.b.emit<Op::dot_general>({*c.tangent(0), c.primal(1)}, a));
  if (c.tangent(1)) c.add_tangent(0, c.b.emit<Op::dot_general>({c.primal(0), *c.tangent(1)}, a));
}

// With axes (batch, free, contract) of x and (batch, contract, free) of y and z = x . y: the cotangent of x is the dot of
// that of z with y over y's free axes, brought back into x's order; for y the same with the sides changed.
void transpose(Tag<Op::dot_general>, TransposeContext& c) {
  Builder& b = c.b;
  const attrs::dot_general a = c.attrs<Op::dot_general>();
  if (c.linear[0] && c.linear[1]) c.not_linear();
  const bool left = c.linear[0];  // the cotangent of the left side is wanted
  const std::size_t mine = left ? 0 : 1, other = 1 - mine;
  const Ints &my_batch = left ? a.lhs_batch : a.rhs_batch, &my_contract = left ? a.lhs_contract : a.rhs_contract;
  const Ints &other_batch = left ? a.rhs_batch : a.lhs_batch, &other_contract = left ? a.rhs_contract : a.lhs_contract;
  const auto free_axes = [](std::size_t rank, const Ints& batch, const Ints& contract) {
    Ints free;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(rank); ++i)
      if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
          std::find(contract.begin(), contract.end(), i) == contract.end())
        free.push_back(i);
    return free;
  };
  const Type my_type = c.operand_type(mine), other_type = c.operand_type(other);
  const Ints my_free = free_axes(my_type.rank(), my_batch, my_contract);
  const Ints other_free = free_axes(other_type.rank(), other_batch, other_contract);
  // Result axes of z: batch, lhs free, rhs free.
  const auto num_batch = static_cast<std::int64_t>(my_batch.size());
  Ints z_batch, z_other_free;
  for (std::int64_t i = 0; i < num_batch; ++i) z_batch.push_back(i);
  const std::int64_t first = num_batch + (left ? static_cast<std::int64_t>(my_free.size()) : 0);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(other_free.size()); ++i) z_other_free.push_back(first + i);

  ValueId y = c.operands[other];
  // A result wider than the operands (f32 of bf16 operands) has a cotangent of that width: it is not rounded first.
  const DType compute = b.type(c.ct()).dtype;
  y = b.convert(y, compute);
  // Order the sides so that my own free axes come out where a plain matmul has them: x's cotangent is ct . y, y's is x . ct.
  ValueId dot;
  Ints axes;  // my axis of each axis of the dot
  axes.insert(axes.end(), my_batch.begin(), my_batch.end());
  // Axes of `other` that remain are its contracting ones, in ascending order; each belongs to the axis of mine it met.
  Ints remaining;
  Ints sorted = other_contract;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t axis : sorted) {
    const auto k = std::find(other_contract.begin(), other_contract.end(), axis) - other_contract.begin();
    remaining.push_back(my_contract[static_cast<std::size_t>(k)]);
  }
  if (left) {
    dot = b.emit<Op::dot_general>({c.ct(), y}, {.lhs_batch = z_batch, .rhs_batch = other_batch, .lhs_contract = z_other_free,
                                                .rhs_contract = other_free, .dtype = compute});
    axes.insert(axes.end(), my_free.begin(), my_free.end());
    axes.insert(axes.end(), remaining.begin(), remaining.end());
  } else {
    dot = b.emit<Op::dot_general>({y, c.ct()}, {.lhs_batch = other_batch, .rhs_batch = z_batch, .lhs_contract = other_free,
                                                .rhs_contract = z_other_free, .dtype = compute});
    axes.insert(axes.end(), remaining.begin(), remaining.end());
    axes.insert(axes.end(), my_free.begin(), my_free.end());
  }
  Ints permutation(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) permutation[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  c.give(mine, b.convert(b.transpose(dot, permutation), my_type.dtype));
}

}  // namespace burin::passes::autodiff
