// Counts what is allocated: through the runtime's allocator, and through operator new of this executable.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "runtime/buffer.h"

namespace burin::runtime {

/// While it lives, buffers come from an allocator that counts, or fails on request. One at a time, on one thread;
/// buffers made meanwhile must be gone before it is, or never be released afterwards.
struct CountingAllocator {
  CountingAllocator() {
    set_allocator({[this](std::size_t bytes) -> void* {
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
  ~CountingAllocator() { set_allocator({}); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  bool fail = false;
  std::int64_t calls = 0, held = 0, peak = 0;
};

std::int64_t calls_of_new();

}  // namespace burin::runtime
