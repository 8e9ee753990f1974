// Derivatives of functions given as IR text, as text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/literal.h"
#include "ir/op.h"

namespace burin::test {

/// The cotangents of all float args, one line each; `operands` are the args, then a cotangent for each float result.
std::string gradients(std::string_view program, const std::vector<ir::Literal>& operands);
/// The tangents of the active results, one line each; `operands` are the args, then a tangent for each float arg.
std::string tangents(std::string_view program, const std::vector<ir::Literal>& operands);
/// How often the op occurs in the gradient function (bodies not counted).
int count_in_gradient(std::string_view program, ir::Op op);

}  // namespace burin::test
