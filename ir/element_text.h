// One element of a Literal as text and back: the spelling of numbers in Functions, Kernels and Programs.
#pragma once
#include <string>
#include <string_view>

#include "ir/literal.h"

namespace burin::ir {

/// Element i: integers in decimal, bools as true and false, floats in the fewest digits that read back to the same bits,
/// `inf`, `-inf`, `nan` for the default quiet NaN, any other NaN by its bits as in `0x7FC00001`.
std::string element_text(const Literal& literal, std::int64_t i);
/// Stores what the text says into element i. False when it is no number of the literal's dtype (unknown spelling, an
/// integer out of range); a float beyond the dtype's range rounds to infinity.
bool element_from_text(std::string_view text, Literal& literal, std::int64_t i);

}  // namespace burin::ir
