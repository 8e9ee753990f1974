// Data for a program's arguments.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::fuzz {

/// One literal per argument. An argument's data depend on the seed, its name and its type alone, so that they stay when
/// other arguments or ops go. Integers are mostly small, as indices are; zeros of both signs, infinities, NaN,
/// denormals and extremes have a share that differs between arguments. With `tame` all floats are normal and of
/// moderate size.
std::vector<ir::Literal> draw_inputs(const ir::Function& f, std::uint64_t seed, bool tame = false);

}  // namespace burin::fuzz
