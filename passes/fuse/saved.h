// What the epilogue of a product saves for kernels that come later.
#pragma once
#include <vector>

#include "ir/function.h"

namespace burin::passes::fusion {

/// A product of which one value made element by element is all that later kernels read: storing that value in place of the product
/// costs as many bytes, and spares computing it again. gelu(x @ w), differentiated, stores gelu's derivative and not x @ w.
/// Only values worth it, with an expensive op; `stored` says which values lie in memory in any case.
std::vector<ir::ValueId> saved_values(const ir::Function& f, const std::vector<bool>& stored);

}  // namespace burin::passes::fusion
