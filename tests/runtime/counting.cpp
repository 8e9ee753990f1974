#include "tests/runtime/counting.h"

#include <atomic>
#include <new>

namespace {
std::atomic<std::int64_t> calls{0};
}  // namespace

void* operator new(std::size_t bytes) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (void* data = std::malloc(bytes > 0 ? bytes : 1)) return data;
  throw std::bad_alloc();
}
// Sanitisers bring their own form of this one, which would not match the deletes below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace burin::runtime {
std::int64_t calls_of_new() { return calls.load(std::memory_order_relaxed); }
}  // namespace burin::runtime
