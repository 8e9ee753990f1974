// Numbers that several files of the runtime agree on.
#pragma once
#include <cstdint>

namespace burin::runtime {

/// Alignment of every block that the runtime allocates: a cache line and the widest vector.
inline constexpr std::int64_t alignment = 64;
inline constexpr std::int64_t huge_page = 2 << 20;
/// The most threads that one run may ask for.
inline constexpr int max_threads = 512;

constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace burin::runtime
