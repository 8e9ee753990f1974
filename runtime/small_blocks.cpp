#include "runtime/small_blocks.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace burin::runtime {
namespace {

// A sanitizer is to see each use of a block that was released.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool keeps = false;
#else
constexpr bool keeps = true;
#endif
#else
constexpr bool keeps = true;
#endif

constexpr std::size_t unit = alignment;

struct Free {
  Free* next;
};

struct Kept {
  Free* first = nullptr;
  std::size_t count = 0;
};

constinit thread_local std::array<Kept, max_small_block / unit + 1> kept{};
constinit thread_local bool closed = false;  // the thread is ending, and what it releases is nobody's

struct AtThreadEnd {
  ~AtThreadEnd() {
    closed = true;
    for (Kept& of_size : kept) {
      while (of_size.first != nullptr) std::free(std::exchange(of_size.first, of_size.first->next));
      of_size.count = 0;
    }
  }
  bool armed = false;
};
thread_local AtThreadEnd at_thread_end;

}  // namespace

void* allocate_small(std::size_t bytes) {
  const std::size_t size = (bytes + unit - 1) / unit;
  if (size < kept.size()) {
    Kept& of_size = kept[size];
    if (of_size.first != nullptr) {
      --of_size.count;
      return std::exchange(of_size.first, of_size.first->next);
    }
  }
  return std::aligned_alloc(unit, size * unit);
}

void release_small(void* data, std::size_t bytes) {
  const std::size_t size = (bytes + unit - 1) / unit;
  if (keeps && size < kept.size() && size > 0 && kept[size].count < kept_bytes_per_size / (size * unit) && !closed) {
    Kept& of_size = kept[size];
    if (of_size.count == 0) at_thread_end.armed = true;  // makes the object whose destructor gives back
    of_size.first = new (data) Free{of_size.first};
    ++of_size.count;
    return;
  }
  std::free(data);
}

}  // namespace burin::runtime
