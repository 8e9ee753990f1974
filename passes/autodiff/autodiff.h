// Differentiation as Function -> Function. jvp is one rule per op; reverse mode is jvp, split into what is linear in the
// tangents and what is not, and the transpose of the linear part.
#pragma once
#include <vector>

#include "ir/function.h"

namespace burin::passes {

struct Jvp {
  /// (args..., a tangent for each active arg) -> (results..., a tangent for each active result).
  ir::Function function;
  std::vector<bool> result_active;  // by result: false when its tangent is identically zero
};

/// Forward mode with respect to the args whose `active` flag is set; these must be floats.
/// Throws Error for an op without a derivative, naming op, location and reason.
Jvp jvp(const ir::Function& f, const std::vector<bool>& active);

struct Vjp {
  /// args... -> (results..., residuals...).
  ir::Function forward;
  std::size_t num_residuals = 0;
  /// (residuals..., a cotangent for each float result) -> a cotangent for each active arg, zeros where nothing flows.
  ir::Function pullback;
};

/// Reverse mode with respect to the args whose `active` flag is set; these must be floats. Throws Error as jvp does.
Vjp vjp(const ir::Function& f, const std::vector<bool>& active);

}  // namespace burin::passes
