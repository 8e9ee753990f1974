#include "passes/batching/rules.h"

namespace burin::passes::batching {

// Operands of one shape stay so: those without a batch are repeated along it, which costs nothing once fused.
void batch_elementwise(BatchContext& c) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.num_operands(); ++i) operands.push_back(c.with_batch(i));
  c.give_copy(operands);
}

}  // namespace burin::passes::batching
