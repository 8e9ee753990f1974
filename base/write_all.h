// All of some bytes to a descriptor.
#pragma once
#include <cstddef>
#include <span>

namespace burin {

/// As many calls of the system as it takes, interrupted ones again. 0, or the error (which errno holds too) after which only a
/// part may have been written.
int write_all(int descriptor, std::span<const std::byte> bytes);

}  // namespace burin
