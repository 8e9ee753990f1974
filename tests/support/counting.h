// Counts what is allocated: through the runtime's allocator, and through operator new of this executable.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "runtime/buffer.h"

namespace burin::test {

/// While it lives, buffers come from an allocator that counts, or fails on request. One at a time, on one thread;
/// buffers made meanwhile must be gone before it is, or never be released afterwards.
struct CountingAllocator {
  CountingAllocator() {
    runtime::set_allocator({[this](std::size_t bytes) -> void* {
                              if (fail) return nullptr;
                              ++calls;
                              held += static_cast<std::int64_t>(bytes);
                              peak = held > peak ? held : peak;
                              return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                            },
                            [this](void* data, std::size_t bytes) {
                              held -= static_cast<std::int64_t>(bytes);
                              std::free(data);
                            }});
  }
  ~CountingAllocator() { runtime::set_allocator({}); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  bool fail = false;
  std::int64_t calls = 0, held = 0, peak = 0;
};

/// Calls of operator new by anybody in this process, and the bytes of the largest since the reset.
std::int64_t calls_of_new();
std::int64_t largest_new();
void reset_largest_new();

}  // namespace burin::test
