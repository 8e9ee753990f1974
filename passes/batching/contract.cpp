#include "passes/batching/rules.h"

namespace burin::passes::batching {

// Two batched sides share a batch axis. One batched side has it as a free axis: the product stays one matmul with more rows
// (or columns), and the axis, which comes out behind the batch axes there are, moves to the front.
void batch(Tag<Op::dot_general>, BatchContext& c) {
  const attrs::dot_general a = c.attrs<Op::dot_general>();
  attrs::dot_general d = a;
  for (std::size_t side = 0; side < 2; ++side) {
    if (!c.batched(side)) continue;
    Ints& batch_axes = side == 0 ? d.lhs_batch : d.rhs_batch;
    Ints& contract_axes = side == 0 ? d.lhs_contract : d.rhs_contract;
    batch_axes = shifted(batch_axes);
    contract_axes = shifted(contract_axes);
  }
  if (c.batched(0) && c.batched(1)) {
    d.lhs_batch.insert(d.lhs_batch.begin(), 0);
    d.rhs_batch.insert(d.rhs_batch.begin(), 0);
    return c.give(c.b.emit<Op::dot_general>({c.operand(0), c.operand(1)}, d));
  }
  const ValueId dot = c.b.emit<Op::dot_general>({c.operand(0), c.operand(1)}, d);
  std::size_t place = a.lhs_batch.size();
  if (c.batched(1)) place += c.example_type(0).rank() - a.lhs_batch.size() - a.lhs_contract.size();
  Ints permutation = ascending(0, c.b.type(dot).rank());
  permutation.erase(permutation.begin() + static_cast<std::ptrdiff_t>(place));
  permutation.insert(permutation.begin(), static_cast<std::int64_t>(place));
  c.give(c.b.transpose(dot, permutation));
}

}  // namespace burin::passes::batching
