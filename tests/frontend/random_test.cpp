// Bits and draws against JAX's, from tests/data/prng_threefry.json.
#include <burin/burin.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace burin {
namespace {

using nlohmann::json;

const std::map<std::string, std::vector<double>>& reference() {
  static const auto all = [] {
    std::map<std::string, std::vector<double>> cases;
    std::ifstream file("tests/data/prng_threefry.json");
    const json parsed = json::parse(file);
    for (const json& c : parsed["cases"])
      cases[c["call"].get<std::string>()] = c["values"].get<std::vector<double>>();
    return cases;
  }();
  return all;
}

void expect_equal(const std::string& call, const Tensor& found) {
  ASSERT_TRUE(reference().contains(call)) << call;
  EXPECT_EQ(found.to_vector<double>(), reference().at(call)) << call;
}

// Draws that pass through log or erf_inv: at most 2 units in the last place (of the half type: 1).
void expect_close(const std::string& call, const Tensor& found) {
  ASSERT_TRUE(reference().contains(call)) << call;
  const std::vector<double> got = found.to_vector<double>(), &want = reference().at(call);
  ASSERT_EQ(got.size(), want.size()) << call;
  const double unit = found.dtype() == bf16 ? 0x1p-7 : 2 * 0x1p-23;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LE(std::abs(got[i] - want[i]), unit * std::abs(want[i])) << call << ' ' << i;
}

TEST(Random, KeysAreThoseOfJax) {
  for (std::int64_t seed : {std::int64_t{0}, std::int64_t{1}, std::int64_t{42}, std::int64_t{2147483653}, std::int64_t{-1}})
    expect_equal("key_data(key(" + std::to_string(seed) + "))", random::key(seed).data());
  for (int n : {1, 2, 3, 5, 7})
    expect_equal("key_data(split(key(0)," + std::to_string(n) + "))", random::split(random::key(0), n).data());
  for (std::int64_t data : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{2147483648}})
    expect_equal("key_data(fold_in(key(0)," + std::to_string(data) + "))", random::fold_in(random::key(0), data).data());
}

TEST(Random, KeysAreIndexedFromBothEnds) {
  const Keys keys = random::split(random::key(3), 5);
  EXPECT_EQ(keys.size(), 5);
  EXPECT_TRUE(array_equal(keys[-1].data(), keys[4].data()));
  const auto [a, b] = random::split(random::key(3));
  EXPECT_FALSE(array_equal(a.data(), b.data()));
}

TEST(Random, BitsAreThoseOfJax) {
  const Key key = random::key(0);
  expect_equal("bits(key(0),(),uint32)", random::bits(key, {}));
  expect_equal("bits(key(0),(1,),uint32)", random::bits(key, {1}));
  expect_equal("bits(key(0),(3,),uint32)", random::bits(key, {3}));
  expect_equal("bits(key(0),(8,),uint32)", random::bits(key, {8}));
  expect_equal("bits(key(0),(3, 5),uint32)", random::bits(key, {3, 5}));
  expect_equal("bits(key(0),(7,),uint8)", random::bits(key, {7}, u8));
  expect_equal("bits(key(0),(7,),uint16)", random::bits(key, {7}, u16));
  EXPECT_EQ(random::bits(key, {0}).size(), 0);
}

TEST(Random, DrawsAreThoseOfJax) {
  const Key key = random::key(7);
  expect_equal("uniform(key(7),(),float32)", random::uniform(key));
  expect_equal("uniform(key(7),(9,),float32)", random::uniform(key, {9}));
  expect_equal("uniform(key(7),(4, 4),float32)", random::uniform(key, {4, 4}));
  expect_equal("uniform(key(7),(9,),float32,minval=-2,maxval=3)", random::uniform(key, {9}, -2, 3));
  expect_equal("uniform(key(7),(9,),bfloat16)", random::uniform(key, {9}, 0, 1, bf16));
  expect_close("normal(key(7),(),float32)", random::normal(key));
  expect_close("normal(key(7),(9,),float32)", random::normal(key, {9}));
  expect_close("normal(key(7),(4, 4),float32)", random::normal(key, {4, 4}));
  expect_close("normal(key(7),(9,),bfloat16)", random::normal(key, {9}, bf16));
  expect_close("truncated_normal(key(7),-2,2,(9,),float32)", random::truncated_normal(key, -2, 2, {9}));
  expect_close("gumbel(key(7),(9,),float32)", random::gumbel(key, {9}));
  expect_close("exponential(key(7),(9,),float32)", random::exponential(key, {9}));
  expect_equal("randint(key(7),(9,),0,10,int32)", random::randint(key, {9}, 0, 10));
  expect_equal("randint(key(7),(9,),-5,1000003,int32)", random::randint(key, {9}, -5, 1000003));
  expect_equal("bernoulli(key(7),0.3,(16,))", random::bernoulli(key, 0.3, {16}));
  expect_equal("categorical(key(7),log([.1,.2,.3,.4]),shape=(16,))",
               random::categorical(key, log(tensor({.1, .2, .3, .4})), -1, Shape{16}));
  expect_equal("permutation(key(7),10)", random::permutation(key, 10));
}

TEST(Random, TracedDrawsAreTheSame) {
  const auto draw = [](Key key) { return std::pair{random::normal(key, {3, 5}), random::permutation(key, 10)}; };
  const auto [normal, order] = jit(draw)(random::key(7));
  const auto [normal2, order2] = draw(random::key(7));
  EXPECT_TRUE(array_equal(normal, normal2));
  EXPECT_TRUE(array_equal(order, order2));
}

TEST(Random, TruncatedDrawsStayInside) {
  const Tensor t = random::truncated_normal(random::key(1), 0.5, 0.75, {1000});
  EXPECT_GT(float(t.min()), 0.5f);
  EXPECT_LT(float(t.max()), 0.75f);
}

}  // namespace
}  // namespace burin
