// Inputs made from a seed, so that a command can be repeated.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/literal.h"

namespace tools {

enum class Draw : std::uint8_t {
  plain,    // floats normal, integers 0 to 3
  special,  // floats and integers of any size, with zeros of both signs, infinities, NaN, denormals, extremes among
            // them
};

/// The same for the same types and seed on every machine.
std::vector<burin::ir::Literal> seeded_data(const std::vector<burin::ir::Type>& types, std::uint64_t seed, Draw draw);

}  // namespace tools
