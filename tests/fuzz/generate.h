// Random programs: a seed gives a Function. What is drawn is driven by ir/ops.def and the type rules, so that a new
// elementwise, compare or reduce op is drawn without an edit here, and any other one as far as blind attributes fit it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/function.h"

namespace burin::fuzz {

struct Recipe {
  std::vector<ir::Family> families;  // ops are drawn from these alone; empty: from all
  std::vector<DType> dtypes;         // of arguments and constants; empty: a palette by seed
  int min_ops = 3, max_ops = 25;     // of the program as drawn, before it is differentiated or batched
  std::int64_t max_elements = 4096;  // of any value
  bool transform = true;             // some programs are gradients, tangents or batches of what was drawn
};

/// The same seed and recipe give the same program. Arguments are named, so that their data stay when others go.
ir::Function generate(std::uint64_t seed, const Recipe& recipe = {});
/// What `generate` starts from when it transforms: nothing but ops that were drawn.
ir::Function generate_plain(std::uint64_t seed, const Recipe& recipe = {});

/// (args..., cotangents of float results...) -> (results..., cotangents of the active args...), in one function.
ir::Function gradient_of(const ir::Function& f, const std::vector<bool>& active);
/// (args..., tangents of the active args...) -> (results..., a tangent for each float result).
ir::Function tangent_of(const ir::Function& f, const std::vector<bool>& active);

/// The same program with all arguments before the ops, as a trace and a text have them.
ir::Function with_arguments_first(const ir::Function& f);

}  // namespace burin::fuzz
