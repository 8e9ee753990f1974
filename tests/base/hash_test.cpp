#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace burin {
namespace {

template <class... T>
Hash128 hash_of(const T&... values) {
  Hasher hasher;
  (hasher.add(values), ...);
  return hasher.finish();
}

TEST(Hash, SameInputSameHash) {
  EXPECT_EQ(hash_of(1, std::string("add"), 2.5), hash_of(1, std::string_view("add"), 2.5));
  EXPECT_EQ(hash_of().hex().size(), 32u);
  EXPECT_EQ((Hash128{0x1, 0xab00000000000000ull}.hex()), "ab000000000000000000000000000001");
}

TEST(Hash, TellsOrderBoundariesAndZeroLengthsApart) {
  EXPECT_NE(hash_of(1, 2), hash_of(2, 1));
  EXPECT_NE(hash_of(std::string("ab"), std::string("c")), hash_of(std::string("a"), std::string("bc")));
  EXPECT_NE(hash_of(std::string("a")), hash_of(std::string("a\0", 2)));
  EXPECT_NE(hash_of(), hash_of(0));
  EXPECT_NE(hash_of(0), hash_of(0, 0));
  EXPECT_NE(hash_of(0.0), hash_of(-0.0));
}

TEST(Hash, NoCollisionInEitherLaneAmongSmallPairs) {
  std::set<std::uint64_t> low, high;
  for (int i = 0; i < 300; ++i)
    for (int j = 0; j < 300; ++j) {
      Hash128 hash = hash_of(i, j);
      low.insert(hash.low);
      high.insert(hash.high);
    }
  EXPECT_EQ(low.size(), 90000u);
  EXPECT_EQ(high.size(), 90000u);
}

}  // namespace
}  // namespace burin
