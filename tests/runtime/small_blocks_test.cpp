#include "runtime/small_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/buffer.h"
#include "tests/support/sanitized.h"

namespace burin::runtime {
namespace {

bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 64 == 0; }

TEST(SmallBlocks, AreAlignedApartAndWritable) {
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : {1, 63, 64, 65, 500, 2047, 2048, 2049, 10000})
      for (int i = 0; i < 5; ++i) {
        auto* block = static_cast<unsigned char*>(allocate_small(bytes));
        ASSERT_NE(block, nullptr);
        EXPECT_TRUE(is_aligned(block)) << bytes;
        std::memset(block, static_cast<int>(blocks.size()), bytes);
        blocks.emplace_back(block, bytes);
      }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto [block, bytes] = blocks[i];
      EXPECT_EQ(block[0], i);
      EXPECT_EQ(block[bytes - 1], i);
      release_small(block, bytes);
    }
    blocks.clear();
  }
}

TEST(SmallBlocks, ComeBackToTheThreadThatReleasesThem) {
  if (test::sanitized) GTEST_SKIP() << "under a sanitizer blocks are not kept, so that it sees what uses them too late";
  void* const block = allocate_small(300);
  release_small(block, 300);
  EXPECT_NE(allocate_small(100), block);
  void* elsewhere = nullptr;
  std::thread([&] { elsewhere = allocate_small(257); }).join();
  EXPECT_NE(elsewhere, block);
  EXPECT_EQ(allocate_small(257), block) << "of 5 times 64 bytes both";
  release_small(elsewhere, 257);
  EXPECT_EQ(allocate_small(320), elsewhere);
}

TEST(SmallBlocks, CrossThreads) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::shared_ptr<Buffer>> made(2000);
    std::thread maker([&] {
      for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = Buffer::allocate(static_cast<std::int64_t>(i % 1500));
        if (i % 1500 > 0) std::memset(made[i]->data(), static_cast<int>(i % 251), i % 1500);
      }
    });
    maker.join();
    std::thread user([&] {
      for (std::size_t i = 0; i < made.size(); ++i)
        for (std::size_t at = 0; at < i % 1500; at += 97)
          ASSERT_EQ(static_cast<unsigned char*>(made[i]->data())[at], i % 251);
      made.clear();
    });
    user.join();
  }
}

TEST(SmallBlocks, OfABufferHoldItsBytesBesideIt) {
  for (const std::int64_t bytes : {1, 64, 100, 1000, 1024, 1025, 4096}) {
    const auto buffer = Buffer::allocate(bytes);
    EXPECT_TRUE(is_aligned(buffer->data())) << bytes;
    EXPECT_EQ(buffer->bytes(), bytes);
    std::memset(buffer->data(), 255, static_cast<std::size_t>(bytes));
    EXPECT_EQ(buffer.use_count(), 1) << bytes;
  }
  EXPECT_EQ(Buffer::allocate(0)->data(), nullptr);
}

}  // namespace
}  // namespace burin::runtime
