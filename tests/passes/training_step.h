// Training steps made from the loss of a small Transformer that lies in tests/data as text.
#pragma once
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::passes {

ir::Function read_function(const std::string& path);
/// (ids, targets, parameters...) -> (loss, parameters - 0.1 * gradients...), in the order of the loss's arguments.
ir::Function training_step(const ir::Function& loss);
/// Seeded: floats normal with deviation 0.2, integers in 0..vocabulary-1.
std::vector<ir::Literal> step_inputs(const ir::Function& step, std::int64_t vocabulary);

}  // namespace burin::passes
