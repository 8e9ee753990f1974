// What passes ask of constants.
#pragma once
#include <optional>

#include "ir/function.h"

namespace burin::passes {

/// A constant all of whose elements are `value`, as a splat or a single element.
bool is_constant(const ir::Function& f, ir::ValueId v, double value);
/// Such a constant, broadcast or reshaped.
bool is_spread_constant(const ir::Function& f, ir::ValueId v, double value);
/// The value of such a constant, NaN included.
std::optional<double> spread_constant(const ir::Function& f, ir::ValueId v);

}  // namespace burin::passes
