#include "runtime/buffer.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "base/check.h"
#include "runtime/errors.h"
#include "runtime/large_blocks.h"
#include "runtime/limits.h"
#include "runtime/small_blocks.h"
#include "runtime/timeline.h"

namespace burin::runtime {
namespace {

// Larger ones are worth an allocation of their own: their releases go back to the system.
constexpr std::int64_t most_inline = 1024;

struct Replacement {
  std::mutex mutex;
  std::shared_ptr<const Allocator> allocator;
  std::atomic<bool> present{false};  // spares the usual allocation the lock
};

Replacement& replacement() {
  static Replacement* instance = new Replacement;  // never destroyed: buffers may be freed by static destructors
  return *instance;
}

void* allocate_default(std::int64_t bytes) {
  if (bytes >= huge_page) return allocate_large(bytes);
  return std::aligned_alloc(alignment, static_cast<std::size_t>(round_up(bytes, alignment)));
}

void release_default(void* data, std::int64_t bytes) {
  if (bytes >= huge_page)
    release_large(data, bytes);
  else
    std::free(data);
}

}  // namespace

void set_allocator(Allocator allocator) {
  BURIN_CHECK(static_cast<bool>(allocator.allocate) == static_cast<bool>(allocator.release));
  Replacement& r = replacement();
  std::lock_guard lock(r.mutex);
  const bool present = static_cast<bool>(allocator.allocate);
  r.allocator = present ? std::make_shared<const Allocator>(std::move(allocator)) : nullptr;
  r.present.store(present, std::memory_order_release);
}

std::shared_ptr<Buffer> Buffer::allocate(std::int64_t bytes) {
  BURIN_CHECK(bytes >= 0);
  struct Fresh : Buffer {};  // lets make_shared reach the private constructor
  if (bytes > INT64_MAX - huge_page) throw_out_of_memory(bytes);
  std::shared_ptr<const Allocator> allocator;
  if (Replacement& r = replacement(); r.present.load(std::memory_order_acquire)) {
    std::lock_guard lock(r.mutex);
    allocator = r.allocator;
  }
  std::shared_ptr<Buffer> buffer;
  if (bytes == 0 || (allocator == nullptr && bytes <= most_inline)) {
    // One block for the buffer, its counts and its bytes.
    void* behind = nullptr;
    const SmallBlockAllocator<Fresh> one_block(static_cast<std::size_t>(round_up(bytes, alignment)), &behind);
    try {
      buffer = std::allocate_shared<Fresh>(one_block);
    } catch (const std::bad_alloc&) {
      throw_out_of_memory(bytes);
    }
    if (bytes == 0) return buffer;
    buffer->data_ = behind;
  } else {
    buffer = std::make_shared<Fresh>();
    buffer->allocator_ = std::move(allocator);
    void* data = buffer->allocator_ != nullptr ? buffer->allocator_->allocate(static_cast<std::size_t>(bytes))
                                               : allocate_default(bytes);
    if (data == nullptr) throw_out_of_memory(bytes);
    BURIN_CHECK(reinterpret_cast<std::uintptr_t>(data) % alignment == 0, "the allocator gave unaligned memory");
    buffer->data_ = data;
    buffer->owns_ = true;
  }
  buffer->bytes_ = bytes;
  if (Timeline* timeline = recording(); timeline != nullptr) buffer->count(*timeline);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::borrow(void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
  BURIN_CHECK(bytes >= 0 && (data != nullptr || bytes == 0));
  struct Fresh : Buffer {};
  std::shared_ptr<Buffer> buffer = std::make_shared<Fresh>();
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->owner_ = std::move(owner);
  return buffer;
}

void Buffer::keep(const Hash128& key, std::shared_ptr<Buffer> made) {
  if (owner_ == nullptr) kept_.push_back({key, std::move(made)});
}

std::shared_ptr<Buffer> Buffer::take_kept(const Hash128& key) {
  static std::mutex takers;
  const std::scoped_lock lock(takers);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end()) return nullptr;
  std::shared_ptr<Buffer> made = std::move(found->made);
  kept_.erase(found);
  return made;
}

void Buffer::count(Timeline& timeline) {
  timeline.allocated(bytes_);
  counted_by_ = timeline.serial();
}

void Buffer::uncount() {
  if (Timeline* timeline = recording(); timeline != nullptr && timeline->serial() == counted_by_) timeline->released(bytes_);
}

Buffer::~Buffer() {
  if (counted_by_ != 0) uncount();
  if (!owns_) return;
  if (allocator_ != nullptr)
    allocator_->release(data_, static_cast<std::size_t>(bytes_));
  else
    release_default(data_, bytes_);
}

}  // namespace burin::runtime
