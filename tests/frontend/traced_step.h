// The tutorial's training step as the frontend traces it, for tests of what the passes and the code generator make of it.
#pragma once
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::test {

struct StepShape {
  int vocabulary, seq_len, dim, heads, layers, batch;
};
inline constexpr StepShape seed_shape = {32, 16, 64, 4, 2, 2};
inline constexpr StepShape small_shape = {4096, 256, 256, 8, 4, 4};

struct TracedStep {
  ir::Function function;      // (parameters..., ids, targets, rate) -> (parameters..., loss)
  std::vector<bool> donated;  // by argument: the parameters
  /// Seeded: parameters in -0.1..0.1, ids and targets in the vocabulary.
  std::vector<ir::Literal> inputs() const;
  int vocabulary = 0;
};
TracedStep traced_step(const StepShape& shape);

}  // namespace burin::test
