// Reference-counted bytes, 64-byte aligned, from an allocator that an application may replace and a test may count.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/hash.h"

namespace burin::runtime {

class Timeline;

struct Allocator {
  std::function<void*(std::size_t bytes)> allocate;  // 64-byte aligned; null on failure
  std::function<void(void* data, std::size_t bytes)> release;
};
/// Replaces the process's allocator for buffers made from here on; an empty one restores the default. A buffer is given
/// back to the allocator that it came from. Buffers of 0 bytes have a null pointer and ask no allocator.
void set_allocator(Allocator allocator);

class Buffer {
 public:
  /// Uninitialised bytes. Throws burin::Error naming the size when there is no memory.
  static std::shared_ptr<Buffer> allocate(std::int64_t bytes);
  /// Memory of somebody else, kept alive by `owner`; may be unaligned.
  static std::shared_ptr<Buffer> borrow(void* data, std::int64_t bytes, std::shared_ptr<const void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  /// What a program made of these bytes alone and another call may take instead of making it again; `key` says how it is made. Whoever
  /// writes to the bytes takes or drops it first. For the only holder of the buffer, but for take_kept, which all holders may call at
  /// once: one of them gets it. Bytes of somebody else may change at any time, and keep nothing.
  void keep(const Hash128& key, std::shared_ptr<Buffer> made);
  /// Null when there is none.
  std::shared_ptr<Buffer> take_kept(const Hash128& key);
  void drop_kept() { kept_.clear(); }

 private:
  Buffer() = default;
  /// For a recording.
  void count(Timeline& timeline);
  void uncount();

  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  bool owns_ = false;             // whether data_ is to be released by itself
  std::uint32_t counted_by_ = 0;  // the timeline's number
  std::shared_ptr<const void> owner_;
  std::shared_ptr<const Allocator> allocator_;
  struct Kept {
    Hash128 key;
    std::shared_ptr<Buffer> made;
  };
  std::vector<Kept> kept_;
};

}  // namespace burin::runtime
