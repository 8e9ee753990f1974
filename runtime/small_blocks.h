// Small blocks of memory, aligned to 64 bytes. Each thread keeps those that it releases: a step that makes and drops
// the same results again and again asks the system for none.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

#include "runtime/limits.h"

namespace burin::runtime {

/// Blocks up to this size are kept, at most so many bytes of each multiple of 64 by each thread; larger ones are the
/// system's.
inline constexpr std::size_t max_small_block = 2048;
inline constexpr std::size_t kept_bytes_per_size = 128 << 10;

/// Null on failure. Any thread may release.
void* allocate_small(std::size_t bytes);
/// `bytes`: as asked for.
void release_small(void* data, std::size_t bytes);

/// For std::allocate_shared: `room` more bytes lie behind the object (its counts included), and *behind points to them,
/// aligned to 64 bytes. Throws std::bad_alloc.
template <class T>
struct SmallBlockAllocator {
  using value_type = T;
  SmallBlockAllocator() = default;
  SmallBlockAllocator(std::size_t r, void** b) : room(r), behind(b) {}
  template <class U>
  SmallBlockAllocator(const SmallBlockAllocator<U>& other) : room(other.room), behind(other.behind) {}

  T* allocate(std::size_t n) {
    void* block = allocate_small(bytes(n));
    if (block == nullptr) throw std::bad_alloc();
    if (behind != nullptr) *behind = static_cast<std::byte*>(block) + (bytes(n) - room);
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t n) { release_small(block, bytes(n)); }
  template <class U>
  bool operator==(const SmallBlockAllocator<U>& other) const {
    return room == other.room;
  }

  std::size_t bytes(std::size_t n) const {
    return static_cast<std::size_t>(round_up(static_cast<std::int64_t>(n * sizeof(T)), alignment)) + room;
  }
  std::size_t room = 0;
  void** behind = nullptr;  // read by allocate alone
};

}  // namespace burin::runtime
