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
  IntCache cache(16);
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
  IntCache cache(16);
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
  IntCache cache(16);
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
  IntCache cache(16);
  const auto value = cache.get_or_make(key(1), [&] {
    return std::make_shared<const int>(*cache.get_or_make(key(2), [] { return std::make_shared<const int>(20); }) + 1);
  });
  EXPECT_EQ(*value, 21);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(Cache, ForgetsWhatNobodyHasAskedForLongest) {
  IntCache cache(4);
  int made = 0;
  const auto make = [&] { return std::make_shared<const int>(++made); };
  const auto held = cache.get_or_make(key(0), make);
  for (std::uint64_t i = 1; i < 4; ++i) cache.get_or_make(key(i), make);
  cache.get_or_make(key(1), make);
  EXPECT_EQ(made, 4);
  cache.get_or_make(key(4), make);  // the fifth: 0 and 2 go
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_FALSE(cache.find(key(0)).has_value());
  EXPECT_FALSE(cache.find(key(2)).has_value());
  EXPECT_EQ(cache.get_or_make(key(1), make), cache.find(key(1)));
  EXPECT_EQ(made, 5);
  EXPECT_EQ(*held, 1);
  EXPECT_EQ(*cache.get_or_make(key(0), make), 6);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    cache.get_or_make(key(i), make);
    EXPECT_LE(cache.size(), 4u);
  }
}

// What is being made stays, however many others are made meanwhile.
TEST(Cache, ForgetsNothingThatIsBeingMade) {
  IntCache cache(2);
  const auto make = [] { return std::make_shared<const int>(1); };
  const auto outer = cache.get_or_make(key(0), [&] {
    for (std::uint64_t i = 1; i < 20; ++i) cache.get_or_make(key(i), make);
    return make();
  });
  EXPECT_EQ(cache.find(key(0)), outer);
}

TEST(CacheDeathTest, AValueThatNeedsItselfIsABug) {
  EXPECT_DEATH(
      {
        Cache<int> cache(16);
        cache.get_or_make(key(1), [&] { return cache.get_or_make(key(1), [] { return 1; }); });
      },
      "a value that needs itself");
}

}  // namespace
}  // namespace burin::runtime
