#include "runtime/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace burin::runtime {
namespace {

Hash128 key(std::uint64_t n) {
  Hasher hasher;
  hasher.add(n);
  return hasher.finish();
}

using IntCache = Cache<std::shared_ptr<const int>>;

TEST(Cache, MakesOnce) {
  IntCache cache;
  int made = 0;
  const auto make = [&] { return ++made, std::make_shared<const int>(7); };
  EXPECT_FALSE(cache.find(key(1)).has_value());
  const auto first = cache.get_or_make(key(1), make);
  EXPECT_EQ(cache.get_or_make(key(1), make), first);
  EXPECT_EQ(cache.find(key(1)), first);
  EXPECT_EQ(made, 1);
  cache.get_or_make(key(2), make);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(cache.size(), 2u);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_NE(cache.get_or_make(key(1), make), first);
}

TEST(Cache, ThreadsThatAskForOneKeyMakeItOnce) {
  IntCache cache;
  std::atomic<int> made{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < 20; ++n)
        wrong += *cache.get_or_make(key(n), [&] {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return std::make_shared<const int>(static_cast<int>(n));
        }) != static_cast<int>(n);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 20);
  EXPECT_EQ(wrong, 0);
}

TEST(Cache, AnExceptionReachesAllWhoWaitAndIsNotKept) {
  IntCache cache;
  std::atomic<int> tries{0}, asking{0}, caught{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      ++asking;
      try {
        cache.get_or_make(key(3), [&]() -> std::shared_ptr<const int> {
          ++tries;
          while (asking < 4) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          throw Error("does not compile");
        });
      } catch (const Error& error) {
        caught += std::string(error.what()) == "does not compile";
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(caught, 4);
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(*cache.get_or_make(key(3), [] { return std::make_shared<const int>(5); }), 5);
}

TEST(Cache, MakingAValueMayAskForOthers) {
  IntCache cache;
  const auto value = cache.get_or_make(key(1), [&] {
    return std::make_shared<const int>(*cache.get_or_make(key(2), [] { return std::make_shared<const int>(20); }) + 1);
  });
  EXPECT_EQ(*value, 21);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(CacheDeathTest, AValueThatNeedsItselfIsABug) {
  EXPECT_DEATH(
      {
        Cache<int> cache;
        cache.get_or_make(key(1), [&] { return cache.get_or_make(key(1), [] { return 1; }); });
      },
      "a value that needs itself");
}

}  // namespace
}  // namespace burin::runtime
