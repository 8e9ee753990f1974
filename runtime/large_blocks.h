// Blocks of 2 MiB and more from the system, on huge pages. Released ones are kept for the next that asks for the size: new
// pages cost as much time as writing them twice, and a training step asks for the same sizes again and again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace burin::runtime {

/// Null on failure; blocks that are kept are given back to the system before that. At least 64-byte aligned.
void* allocate_large(std::int64_t bytes);
/// `bytes`: as asked for.
void release_large(void* data, std::int64_t bytes);

/// Bytes kept and in use by nobody: at most 1/8 of the machine's memory, and at most 1 GiB.
std::int64_t kept_large_bytes();
void give_back_large_blocks();

}  // namespace burin::runtime
