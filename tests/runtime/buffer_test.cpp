#include "runtime/buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "runtime/large_blocks.h"

namespace burin::runtime {
namespace {

TEST(Buffer, IsAlignedAndWritable) {
  for (std::int64_t bytes : {1, 63, 64, 65, 4097, (2 << 20) - 1, 2 << 20, (4 << 20) + 3}) {
    const std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u) << bytes;
    std::memset(buffer->data(), 0x5a, static_cast<std::size_t>(bytes));
    EXPECT_EQ(static_cast<unsigned char*>(buffer->data())[bytes - 1], 0x5a);
  }
}

TEST(Buffer, KeepsWhatIsMadeOfItByKey) {
  const std::shared_ptr<Buffer> buffer = Buffer::allocate(100);
  const std::shared_ptr<Buffer> one = Buffer::allocate(8), two = Buffer::allocate(16);
  EXPECT_EQ(buffer->take_kept({1, 2}), nullptr);
  buffer->keep({1, 2}, one);
  buffer->keep({1, 3}, two);
  EXPECT_EQ(buffer->take_kept({2, 1}), nullptr);
  EXPECT_EQ(buffer->take_kept({1, 3}), two);
  EXPECT_EQ(buffer->take_kept({1, 3}), nullptr);
  EXPECT_EQ(buffer->take_kept({1, 2}), one);
  buffer->keep({1, 2}, one);
  buffer->drop_kept();
  EXPECT_EQ(buffer->take_kept({1, 2}), nullptr);
  EXPECT_EQ(one.use_count(), 1);
  // Whoever lent the bytes may write to them.
  std::array<std::byte, 100> bytes{};
  const std::shared_ptr<Buffer> borrowed = Buffer::borrow(bytes.data(), 100, std::make_shared<int>());
  borrowed->keep({1, 2}, one);
  EXPECT_EQ(borrowed->take_kept({1, 2}), nullptr);
}

TEST(Buffer, OfNoBytesIsNull) {
  const std::shared_ptr<Buffer> buffer = Buffer::allocate(0);
  EXPECT_EQ(buffer->data(), nullptr);
  EXPECT_EQ(buffer->bytes(), 0);
}

TEST(Buffer, TooLargeIsAnErrorWithTheSize) {
  for (std::int64_t bytes : {std::int64_t{1} << 60, INT64_MAX}) {
    try {
      Buffer::allocate(bytes);
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no block of " + std::to_string(bytes) + " bytes"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Buffer, BorrowedKeepsItsOwnerAndIsNotFreed) {
  auto owner = std::make_shared<std::array<std::byte, 9>>();
  std::weak_ptr<void> alive = owner;
  void* unaligned = owner->data() + 1;
  std::shared_ptr<Buffer> buffer = Buffer::borrow(unaligned, 8, std::move(owner));
  EXPECT_EQ(buffer->data(), unaligned);
  EXPECT_FALSE(alive.expired());
  buffer.reset();
  EXPECT_TRUE(alive.expired());
}

TEST(Buffer, GoesBackToTheAllocatorItCameFrom) {
  std::int64_t held = 0;
  set_allocator({[&](std::size_t bytes) {
                   held += static_cast<std::int64_t>(bytes);
                   return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                 },
                 [&](void* data, std::size_t bytes) {
                   held -= static_cast<std::int64_t>(bytes);
                   std::free(data);
                 }});
  std::shared_ptr<Buffer> counted = Buffer::allocate(100);
  EXPECT_EQ(held, 100);
  const std::shared_ptr<Buffer> empty = Buffer::allocate(0);
  EXPECT_EQ(held, 100);
  set_allocator({});
  std::shared_ptr<Buffer> uncounted = Buffer::allocate(50);
  EXPECT_EQ(held, 100);
  counted.reset();
  uncounted.reset();
  EXPECT_EQ(held, 0);
}

TEST(Buffer, AnAllocatorThatFailsIsAnError) {
  set_allocator({[](std::size_t) -> void* { return nullptr; }, [](void*, std::size_t) { FAIL(); }});
  EXPECT_THROW(Buffer::allocate(8), Error);
  set_allocator({});
  EXPECT_NE(Buffer::allocate(8)->data(), nullptr);
}

TEST(LargeBlocks, AreKeptForTheSameSize) {
  give_back_large_blocks();
  const std::int64_t bytes = (5 << 20) + 1;
  std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
  const void* data = buffer->data();
  EXPECT_EQ(kept_large_bytes(), 0);
  buffer.reset();
  EXPECT_EQ(kept_large_bytes(), 6 << 20);
  const std::shared_ptr<Buffer> other = Buffer::allocate(8 << 20);
  EXPECT_NE(other->data(), data);
  EXPECT_EQ(kept_large_bytes(), 6 << 20);
  buffer = Buffer::allocate(bytes + 100);
  EXPECT_EQ(buffer->data(), data);
  EXPECT_EQ(kept_large_bytes(), 0);
  buffer.reset();
  give_back_large_blocks();
  EXPECT_EQ(kept_large_bytes(), 0);
}

TEST(LargeBlocks, TheOldestGoWhenThereAreTooMany) {
  give_back_large_blocks();
  const std::int64_t first = 400 << 20;  // never touched, so they take no memory
  for (std::int64_t i = 0; i < 5; ++i) {
    Buffer::allocate(first + i * (2 << 20));
    EXPECT_LE(kept_large_bytes(), 1 << 30);
  }
  EXPECT_LT(kept_large_bytes(), 3 * first);
  give_back_large_blocks();
}

}  // namespace
}  // namespace burin::runtime
