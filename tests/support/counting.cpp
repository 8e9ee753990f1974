#include "tests/support/counting.h"

#include <atomic>
#include <new>

namespace {
std::atomic<std::int64_t> calls{0}, largest{0};

void count(std::size_t bytes) {
  calls.fetch_add(1, std::memory_order_relaxed);
  const auto size = static_cast<std::int64_t>(bytes);
  if (size > largest.load(std::memory_order_relaxed)) largest.store(size, std::memory_order_relaxed);
}
}  // namespace

void* operator new(std::size_t bytes) {
  count(bytes);
  if (void* data = std::malloc(bytes > 0 ? bytes : 1)) return data;
  throw std::bad_alloc();
}
// Sanitisers bring their own form of this one, which would not match the deletes below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  count(bytes);
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace burin::test {
std::int64_t calls_of_new() { return calls.load(std::memory_order_relaxed); }
std::int64_t largest_new() { return largest.load(std::memory_order_relaxed); }
void reset_largest_new() { largest.store(0, std::memory_order_relaxed); }
}  // namespace burin::test
