// Delta debugging on IR: the smallest program that still fails.
#pragma once
#include <functional>

#include "ir/function.h"

namespace burin::fuzz {

/// `fails` says whether a candidate shows the failure; it holds for f. Candidates are valid functions. Stops when none
/// is smaller, or after `seconds`.
ir::Function shrink(ir::Function f, const std::function<bool(const ir::Function&)>& fails, double seconds = 60);

/// f without what its results do not need: ops, and arguments too.
ir::Function without_unused(const ir::Function& f);

}  // namespace burin::fuzz
