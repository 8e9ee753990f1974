// threefry2x32 against its authors' known answers and JAX's bits (tests/data/prng_threefry.json).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;

Literal words(std::vector<std::uint64_t> all) {
  Literal result(Type{u64, {static_cast<std::int64_t>(all.size())}});
  std::copy(all.begin(), all.end(), result.mutable_data<std::uint64_t>().begin());
  return result;
}

// Both words of counters 0, 1, ... n - 1 under the key (0, seed).
std::vector<std::uint64_t> blocks(std::uint64_t key, std::size_t n) {
  std::vector<std::uint64_t> counters(n);
  for (std::size_t i = 0; i < n; ++i) counters[i] = i;
  const Literal keys = Literal::splat({static_cast<std::int64_t>(n)}, words({key}));
  Literal result = apply<Op::threefry2x32>({keys, words(counters)});
  result.expand();
  const auto data = result.data<std::uint64_t>();
  return {data.begin(), data.end()};
}

TEST(EvalThreefry, KnownAnswers) {
  const Literal key = words({0, ~std::uint64_t{0}, 0x13198a2e03707344}),
                counter = words({0, ~std::uint64_t{0}, 0x243f6a8885a308d3});
  EXPECT_EQ(apply<Op::threefry2x32>({key, counter}),
            words({0x6b20015999ba4efe, 0x1cb996fcbb002be7, 0xc4923a9c483df7a0}));
}

class ThreefryAsInJax : public testing::Test {
 protected:
  const nlohmann::json cases = nlohmann::json::parse(std::ifstream("tests/data/prng_threefry.json"))["cases"];
  std::vector<std::uint32_t> expected(const std::string& call) const {
    for (const auto& c : cases)
      if (c["call"] == call) return c["values"];
    ADD_FAILURE() << "no case " << call;
    return {};
  }
};

TEST_F(ThreefryAsInJax, SplitIsBothWordsOfEachCounter) {
  for (std::size_t n : {1, 2, 3, 5, 7}) {
    std::vector<std::uint32_t> keys;
    for (std::uint64_t block : blocks(0, n)) {
      keys.push_back(static_cast<std::uint32_t>(block >> 32));
      keys.push_back(static_cast<std::uint32_t>(block));
    }
    EXPECT_EQ(keys, expected("key_data(split(key(0)," + std::to_string(n) + "))"));
  }
}

TEST_F(ThreefryAsInJax, BitsAreTheXorOfBothWords) {
  const std::pair<const char*, std::size_t> calls[] = {
      {"bits(key(0),(),uint32)", 1},   {"bits(key(0),(1,),uint32)", 1}, {"bits(key(0),(2,),uint32)", 2},
      {"bits(key(0),(3,),uint32)", 3}, {"bits(key(0),(8,),uint32)", 8}, {"bits(key(0),(3, 5),uint32)", 15}};
  for (const auto& [call, n] : calls) {
    std::vector<std::uint32_t> bits;
    for (std::uint64_t block : blocks(0, n))
      bits.push_back(static_cast<std::uint32_t>(block >> 32) ^ static_cast<std::uint32_t>(block));
    EXPECT_EQ(bits, expected(call));
  }
}

TEST_F(ThreefryAsInJax, FoldInIsTheBlockOfTheSeedOfTheNumber) {
  for (std::uint64_t number : {0u, 1u, 7u, 2147483648u}) {
    const Literal block = apply<Op::threefry2x32>({words({0}), words({number})});
    const auto word = static_cast<std::uint64_t>(block.int_at(0));
    EXPECT_EQ((std::vector{static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)}),
              expected("key_data(fold_in(key(0)," + std::to_string(number) + "))"));
  }
}

}  // namespace
}  // namespace burin::ir
