// Bits and draws against JAX's, from tests/data/prng_threefry.json.
#include <burin/burin.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/frontend/each_backend.h"

namespace burin {
namespace {

using nlohmann::json;

// By call. The file also holds choice, and a split over a shape, neither of which burin::random has: keys[2 * i + j] of
// split(key, 2 * 3) are those of JAX's split(key, (2, 3))[i, j].
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

// How many floats of the dtype lie between two of them.
std::int64_t ulps_between(double a, double b, DType dtype) {
  const auto place = [&](double x) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> (dtype == bf16 ? 16 : 0);
    const std::uint32_t sign = dtype == bf16 ? 0x8000u : 0x80000000u;
    return bits & sign ? -static_cast<std::int64_t>(bits & ~sign) : static_cast<std::int64_t>(bits);
  };
  return std::abs(place(a) - place(b));
}

// Draws that pass through log or erf_inv: within some units in the last place.
void expect_close(const std::string& call, const Tensor& found, int ulps = 2) {
  ASSERT_TRUE(reference().contains(call)) << call;
  ASSERT_TRUE(found.dtype() == f32 || found.dtype() == bf16);
  const std::vector<double> got = found.to_vector<double>(), &want = reference().at(call);
  ASSERT_EQ(got.size(), want.size()) << call;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LE(ulps_between(got[i], want[i], found.dtype()), ulps) << call << ' ' << i;
}

TEST(Random, UlpsAreCountedInTheDtype) {
  EXPECT_EQ(ulps_between(1, 1, f32), 0);
  EXPECT_EQ(ulps_between(1 + 0x1p-23, 1 - 0x1p-24, f32), 2);
  EXPECT_EQ(ulps_between(-1, -1 - 0x1p-21, f32), 4);
  EXPECT_EQ(ulps_between(0x1p-149, -0x1p-149, f32), 2);
  EXPECT_EQ(ulps_between(2, 2 + 0x1p-5, bf16), 2);
}

TEST(Random, KeysAreThoseOfJax) {
  for (std::int64_t seed : {std::int64_t{0}, std::int64_t{1}, std::int64_t{42}, std::int64_t{2147483653}, std::int64_t{-1}})
    expect_equal("key_data(key(" + std::to_string(seed) + "))", random::key(seed).data());
  for (int n : {1, 2, 3, 5, 7})
    expect_equal("key_data(split(key(0)," + std::to_string(n) + "))", random::split(random::key(0), n).data());
  expect_equal("key_data(split(key(42),(2,3)))", random::split(random::key(42), 6).data());
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

// Keys at hand are split and indexed without a compiler; traced ones in the program. The same keys come out.
TEST(Random, TracedKeysAreTheSame) {
  const Key key = random::key(0x123456789abcdef);
  const Keys keys = random::split(key, 5);
  const auto traced = jit([](Key k) { return random::split(k, 5).data(); });
  EXPECT_TRUE(array_equal(traced(key), keys.data()));
  const auto one = jit([](Keys k) { return k[-2].data(); });
  EXPECT_TRUE(array_equal(one(keys), keys[3].data()));
  EXPECT_TRUE(array_equal(traced(keys[3]), random::split(keys[-2], 5).data()));
  EXPECT_EQ(random::split(key, 0).size(), 0);
}

TEST(Random, MoreKeysCompileNothing) {
  const auto compiles = jit_statistics().compiles;
  const Key key = random::key(1);
  for (int n : {2, 11, 12}) (void)random::split(random::split(key, n)[n - 1]);
  EXPECT_EQ(jit_statistics().compiles, compiles);
}

TEST(Random, BitsAreThoseOfJax) {
  const Key key = random::key(0);
  expect_equal("bits(key(0),(),uint32)", random::bits(key, {}));
  expect_equal("bits(key(0),(1,),uint32)", random::bits(key, {1}));
  expect_equal("bits(key(0),(2,),uint32)", random::bits(key, {2}));
  expect_equal("bits(key(0),(3,),uint32)", random::bits(key, {3}));
  expect_equal("bits(key(0),(8,),uint32)", random::bits(key, {8}));
  expect_equal("bits(key(0),(3, 5),uint32)", random::bits(key, {3, 5}));
  expect_equal("bits(key(0),(7,),uint8)", random::bits(key, {7}, u8));
  expect_equal("bits(key(0),(7,),uint16)", random::bits(key, {7}, u16));
  EXPECT_EQ(random::bits(key, {0}).size(), 0);
}

class RandomDraws : public test::EachBackend {};

TEST_P(RandomDraws, AreThoseOfJax) {
  const Key key = random::key(7);
  // Machine code follows JAX's approximation of erf_inv, which is itself some units away from what the evaluator and the
  // interpreter compute: erf_inv rounded once.
  const int normal = is("machine") ? 2 : 4;
  expect_equal("uniform(key(7),(),float32)", random::uniform(key));
  expect_equal("uniform(key(7),(9,),float32)", random::uniform(key, {9}));
  expect_equal("uniform(key(7),(4, 4),float32)", random::uniform(key, {4, 4}));
  expect_equal("uniform(key(7),(9,),float32,minval=-2,maxval=3)", random::uniform(key, {9}, -2, 3));
  expect_equal("uniform(key(7),(9,),bfloat16)", random::uniform(key, {9}, 0, 1, bf16));
  expect_close("normal(key(7),(),float32)", random::normal(key), normal);
  expect_close("normal(key(7),(9,),float32)", random::normal(key, {9}), normal);
  expect_close("normal(key(7),(4, 4),float32)", random::normal(key, {4, 4}), normal);
  expect_close("normal(key(7),(9,),bfloat16)", random::normal(key, {9}, bf16), normal);
  expect_close("truncated_normal(key(7),-2,2,(9,),float32)", random::truncated_normal(key, -2, 2, {9}));
  expect_close("gumbel(key(7),(9,),float32)", random::gumbel(key, {9}));
  expect_close("exponential(key(7),(9,),float32)", random::exponential(key, {9}));
  expect_equal("randint(key(7),(9,),0,10,int32)", random::randint(key, {9}, 0, 10));
  expect_equal("randint(key(7),(9,),-5,1000003,int32)", random::randint(key, {9}, -5, 1000003));
  expect_equal("bernoulli(key(7),0.3,(16,))", random::bernoulli(key, 0.3, {16}));
  expect_equal("categorical(key(7),log([.1,.2,.3,.4]),shape=(16,))",
               random::categorical(key, log(tensor({.1, .2, .3, .4})), -1, Shape{16}));
  expect_equal("permutation(key(7),10)", random::permutation(key, 10));
  expect_equal("permutation(key(7),arange(100))[:20]", random::permutation(key, arange(100))[first(20)]);
}

INSTANTIATE_TEST_SUITE_P(Random, RandomDraws, test::every_backend(), test::backend_name);

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
