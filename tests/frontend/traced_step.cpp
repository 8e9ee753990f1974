#include "tests/frontend/traced_step.h"

#include "ir/parser.h"
#include "tests/frontend/mini_transformer.h"
#include "tests/support/literals.h"

namespace burin::test {

TracedStep traced_step(const StepShape& s) {
  const Tensor scale = zeros({s.dim}), square = zeros({s.dim, s.dim});
  const Block block = {.norm1 = scale, .attn = {square, square, square, square}, .norm2 = scale,
                       .mlp = {zeros({s.dim, 4 * s.dim}), zeros({4 * s.dim, s.dim})}};
  const Params params = {.token_embedding = zeros({s.vocabulary, s.dim}), .position_embedding = zeros({s.seq_len, s.dim}),
                         .blocks = std::vector(static_cast<std::size_t>(s.layers), block), .final_norm = scale,
                         .lm_head = zeros({s.dim, s.vocabulary})};
  const Tensor ids = zeros({s.batch, s.seq_len}, i32);
  const Lowered lowered = jit(train_step_with(s.heads)).lower(params, Batch{ids, ids}, 1e-3);
  TracedStep step{ir::parse(lowered.text()), {}, s.vocabulary};
  step.donated.assign(step.function.args().size(), false);
  for (std::size_t i = 0; i < tree::leaves(params).size(); ++i) step.donated[i] = true;
  return step;
}

std::vector<ir::Literal> TracedStep::inputs() const {
  std::vector<ir::Literal> literals;
  for (std::size_t i = 0; i < function.args().size(); ++i) {
    const ir::Type& type = function.type(function.args()[i]);
    literals.push_back(is_float(type.dtype) ? spread(type, -0.1, 0.1, i) : spread(type, 0, vocabulary - 1, i));
  }
  return literals;
}

}  // namespace burin::test
