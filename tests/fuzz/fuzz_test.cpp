// The fuzzer's own parts; the campaign itself is the ctest test `fuzz`.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/fuzz/campaign.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/isolate.h"
#include "tests/fuzz/properties.h"
#include "tests/fuzz/shrink.h"

namespace burin::fuzz {
namespace {

using namespace ir;

void add_ops(const Function& f, std::set<Op>& seen) {
  f.for_each_op([&](OpId op) {
    seen.insert(f.kind(op));
    for (const AttrValue& attribute : f.attributes(op))
      if (const Body* body = std::get_if<Body>(&attribute)) add_ops(**body, seen);
  });
}

TEST(Generate, draws_every_op_and_only_valid_programs) {
  std::set<Op> seen;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Function f = generate(seed);
    ASSERT_EQ(verify(f), "") << seed;
    add_ops(f, seen);
  }
  seen.insert(Op::fusion);  // the pass `fuse` makes it
  for (int i = 0; i < num_ops; ++i)
    EXPECT_TRUE(seen.contains(static_cast<Op>(i))) << name(static_cast<Op>(i)) << " is never drawn";
}

TEST(Generate, the_same_seed_gives_the_same_program) {
  for (std::uint64_t seed : {1, 77, 123456}) EXPECT_TRUE(same_program(generate(seed), generate(seed)));
  EXPECT_FALSE(same_program(generate(1), generate(2)));
}

// A program that computes for too long is ended; one that waits for a busy machine is not.
TEST(Isolated, time_is_that_of_computing) {
  const auto compute = [] {
    for (std::atomic<int> i = 0;;) ++i;
    return std::string();
  };
  const auto wait = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return std::string();
  };
  EXPECT_EQ(isolated(compute, 1), "timeout");
  EXPECT_EQ(isolated(wait, 1), "");
}

TEST(Shrink, leaves_the_one_op_that_fails) {
  // Whatever still has a tanh "fails".
  int shrunk = 0;
  for (std::uint64_t seed = 1; seed <= 300 && shrunk < 5; ++seed) {
    Recipe recipe;
    recipe.transform = false;
    const Function f = generate(seed, recipe);
    const auto has_tanh = [](const Function& g) {
      std::set<Op> seen;
      add_ops(g, seen);
      return seen.contains(Op::tanh);
    };
    const Function needed = without_unused(f);
    if (!has_tanh(needed)) continue;
    ++shrunk;
    const Function small = shrink(needed, has_tanh);
    EXPECT_TRUE(has_tanh(small));
    EXPECT_EQ(small.num_ops(), 1u) << print(small);
    EXPECT_LE(small.type(small.results()[0]).size(), 1) << print(small);
  }
  EXPECT_EQ(shrunk, 5);
}

// Code that some property has compiled is what the others of its sample run.
TEST(Shares, follow_from_the_seed_and_lie_within_one_another) {
  std::map<std::string, int> checked;
  constexpr int programs = 600;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    Case c(generate(seed), seed, true);
    std::map<std::string, std::pair<double, double>> limits;  // of a sample: the largest share without the program, the smallest with it
    for (const Property& property : properties()) {
      const bool has = has_share(property, c);
      checked[property.name] += has;
      auto& [without, with] = limits.try_emplace(property.sample.empty() ? property.name : property.sample, 0, 1).first->second;
      if (has)
        with = std::min(with, property.share);
      else
        without = std::max(without, property.share);
      EXPECT_LT(without, with) << property.name << " at seed " << seed;
    }
  }
  for (const Property& property : properties()) {
    const double least = property.compiles ? 0.4 : 0.8;
    EXPECT_GT(checked[property.name], least * property.share * programs) << property.name;
    EXPECT_LE(checked[property.name], property.share * programs * 1.3) << property.name;
  }
}

// Programs that something once computed wrongly, each through every property, with several choices of options and data.
std::vector<std::string> corpus() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus"))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, stays_right) {
  const std::string path = "tests/fuzz/corpus/" + GetParam() + ".ir";
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::uint64_t> seeds = {1, 2, 3, 4, 5, 6};
  if (const std::size_t at = text.find("Seed "); at != std::string::npos)
    seeds.push_back(std::stoull(text.substr(at + 5)));
  const Function f = parse(text, path);
  for (std::uint64_t seed : seeds) EXPECT_EQ(check(f, seed, {}), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(corpus()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace burin::fuzz
