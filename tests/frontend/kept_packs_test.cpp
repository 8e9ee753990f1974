// Packed copies of weights that stay with them from step to step: no bit depends on them, whatever happens to the weights in between.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <burin/optim.h>

#include "ir/target.h"
#include "tests/support/counting.h"
#include "tests/frontend/expect.h"
#include "tests/support/machine.h"

namespace burin {
namespace {

struct Net {
  Tensor w1, w2, w3;
  BURIN_TREE(w1, w2, w3)
};
using Result = std::pair<Net, Tensor>;

Net draw(int seed) {
  const auto keys = random::split(random::key(seed), 3);
  return {0.05 * random::normal(keys[0], {256, 256}), 0.05 * random::normal(keys[1], {256, 256}), 0.05 * random::normal(keys[2], {256, 320})};
}
Tensor batch(int seed) { return random::normal(random::key(seed), {512, 256}); }

Tensor loss(Net p, Tensor x) {
  const auto product = [](const Tensor& a, const Tensor& w) { return matmul(a, w.astype(bf16)); };
  const Tensor h = nn::gelu(product(x.astype(bf16), p.w1));
  const Tensor y = product(nn::gelu(product(h, p.w2)), p.w3).astype(f32);
  return (y * y).mean();
}

/// A copy in memory of its own.
Net copied(Net p) { return tree::map([](Tensor t) { return t + 0; }, p); }

std::vector<float> numbers(const Net& p) {
  std::vector<float> all;
  for (const auto& leaf : tree::leaves(p))
    for (float value : leaf.second.to_vector<float>()) all.push_back(value);
  return all;
}

/// A step of descent; `clip`: by a norm of all gradients, which makes updates kernels of their own.
auto step(bool keep, bool clip = false, int num_threads = 2, std::int64_t budget = -1) {
  setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
  return jit(
      [clip](Net p, Tensor x) -> Result {
        auto [l, grads] = value_and_grad(loss)(p, x);
        if (clip) grads = optim::clip_by_global_norm(grads, 0.01);
        return {tree::map([](Tensor w, Tensor g) { return w - 0.5 * g; }, p, grads), l};
      },
      {.donate = {0}, .num_threads = num_threads, .memory_budget = budget});
}
using Step = decltype(step(true));
/// Compiled, which is when the environment is read.
Step made(bool keep, bool clip = false) {
  Step f = step(keep, clip);
  (void)f(draw(99), batch(99));
  return f;
}

class KeptPacks : public testing::Test {
 public:
  KeptPacks() : before_(std::getenv("BURIN_BACKEND")) { setenv("BURIN_BACKEND", "machine", 1); }
  ~KeptPacks() override {
    setenv("BURIN_BACKEND", before_.c_str(), 1);
    unsetenv("BURIN_KEEP_PACKED");
  }
 protected:
  void SetUp() override {
    if (!test::has_machine) GTEST_SKIP() << test::no_machine;
    if (!ir::host_target().multiplies_bf16_pairs()) GTEST_SKIP() << "products of bf16 are not of packed pairs here";
  }

 private:
  std::string before_;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(KeptPacks, ChangeNoBit) {
  for (const bool clip : {false, true}) {
    std::vector<float> expected;
    for (const bool keep : {false, true})
      for (const int threads : {1, 2, 8}) {
        Step f = step(keep, clip, threads);
        Net p = draw(1);
        Tensor l;
        for (int i = 0; i < 5; ++i) std::tie(p, l) = f(p, batch(i));
        std::vector<float> found = numbers(p);
        found.push_back(l.item<float>());
        if (expected.empty()) expected = found;
        EXPECT_TRUE(found == expected) << "clip " << clip << ", keep " << keep << ", " << threads << " threads";
      }
  }
}

TEST_F(KeptPacks, AreMadeOnceAndSeenInTheMemoryForecast) {
  for (const bool clip : {false, true}) {
    // The first product needs no gradient of its left side, and packs its weights one way.
    const Compiled with = step(true, clip).lower(draw(1), batch(1)).compile(), without = step(false, clip).lower(draw(1), batch(1)).compile();
    EXPECT_EQ(count(with.text(), "\n  keep"), 5u) << with.text();
    EXPECT_EQ(count(without.text(), "\n  keep"), 0u);
    const std::int64_t bytes = (3 * 256 * 256 + 2 * 256 * 320) * 2;
    EXPECT_NE(with.memory().find("packed copies of results " + std::to_string(bytes)), std::string::npos) << with.memory();
    // Where there is no room for them, there are none.
    const Compiled tight = step(true, clip, 2, with.peak_bytes() - 1).lower(draw(1), batch(1)).compile();
    EXPECT_EQ(count(tight.text(), "\n  keep"), 0u);
    EXPECT_LT(tight.peak_bytes(), with.peak_bytes());
  }
}

TEST_F(KeptPacks, OfAdamW) {
  const auto build = [](bool keep) {
    setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
    return jit(
        [](Net p, AdamState<Net> state, Tensor x) {
          const Net grads = optim::clip_by_global_norm(grad(loss)(p, x), 0.5);
          return optim::adamw(p, grads, state, 0.01);
        },
        {.donate = {0, 1}});
  };
  std::vector<std::vector<float>> found;
  for (const bool keep : {true, false}) {
    auto f = build(keep);
    Net p = draw(1);
    AdamState<Net> state = optim::adam_state(p);
    EXPECT_EQ(count(f.lower(p, state, batch(0)).compile().text(), "\n  keep"), keep ? 5u : 0u);
    for (int i = 0; i < 4; ++i) std::tie(p, state) = f(p, state, batch(i));
    found.push_back(numbers(p));
  }
  EXPECT_TRUE(found[0] == found[1]);
}

TEST_F(KeptPacks, TakeTheMemoryThatIsForecastAndNoneLater) {
  Net p = draw(1);
  const std::vector<Tensor> batches = {batch(0), batch(1), batch(2)};
  Step f = step(true);
  const std::int64_t forecast = f.lower(p, batches[0]).compile().peak_bytes();
  (void)f(copied(p), batches[0]);
  static test::CountingAllocator& memory = *new test::CountingAllocator;  // what is kept is released after the test
  Tensor l;
  f.lower(p, batches[0]).compile();
  std::tie(p, l) = f(p, batches[0]);
  EXPECT_LE(memory.peak, forecast);
  const std::int64_t held = memory.held;
  EXPECT_GE(held, (3 * 256 * 256 + 2 * 256 * 320) * 2);
  for (int i = 1; i < 3; ++i) std::tie(p, l) = f(p, batches[static_cast<std::size_t>(i)]);
  EXPECT_LE(memory.held, held);
  EXPECT_LE(memory.peak, forecast);
  p = {};
  EXPECT_LT(memory.held, held - (3 * 256 * 256 + 2 * 256 * 320) * 2 + 1);
  runtime::set_allocator({});
}

TEST_F(KeptPacks, TheTraceOfTheThirdStepShowsNoPackingOfWeights) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string path = std::filesystem::temp_directory_path() / "burin_trace_kept_packs.json";
  const auto child = [&] {
    Step f = step(true);
    Net p = draw(1);
    Tensor l;
    setenv("BURIN_TRACE", path.c_str(), 1);
    for (int i = 0; i < 3; ++i) std::tie(p, l) = f(p, batch(i));
    std::exit(0);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  // Labels of the steps that pack weights or make them bf16.
  std::set<std::string> packing;
  std::istringstream text(step(true).lower(draw(1), batch(1)).compile().text());
  for (std::string line; std::getline(text, line);)
    if (line.find(" unless ") != std::string::npos) packing.insert(line.substr(line.find('"') + 1, line.rfind('"') - line.find('"') - 1));
  EXPECT_GE(packing.size(), 5u);

  const nlohmann::json all = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::vector<std::pair<double, double>> runs;
  std::map<std::string, std::vector<double>> kernels;  // label: when
  for (const auto& event : all.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts").get<double>();
    if (event.at("cat") == "run" && event.at("name").get<std::string>().find("kept_packs_test.cpp") != std::string::npos)
      runs.emplace_back(start, start + event.at("dur").get<double>());
    if (event.at("cat") == "kernel") kernels[event.at("name").get<std::string>()].push_back(start);
  }
  std::sort(runs.begin(), runs.end());
  // Un-jitted ops run before the steps, which are the three longest.
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.second - a.first > b.second - b.first; });
  ASSERT_GE(runs.size(), 3u);
  runs.resize(3);
  std::sort(runs.begin(), runs.end());
  for (std::size_t run = 0; run < 3; ++run) {
    std::set<std::string> seen;
    for (const auto& [name, starts] : kernels)
      for (double start : starts)
        if (start >= runs[run].first && start <= runs[run].second) seen.insert(name);
    EXPECT_GT(seen.size(), 6u);
    for (const std::string& label : packing) EXPECT_EQ(seen.contains(label), run == 0) << label << " in run " << run;
  }
}

/// Both kinds of step on the same weights; what happens between steps is up to `between(weights, call)`.
template <class Between>
void compare(const Between& between) {
  for (const bool clip : {false, true}) {
    std::vector<std::vector<float>> found;
    for (const bool keep : {true, false}) {
      Step f = made(keep, clip);
      Net p = draw(1);
      Tensor l;
      for (int i = 0; i < 5; ++i) {
        std::tie(p, l) = f(p, batch(i));
        between(p, i);
      }
      found.push_back(numbers(p));
      found.back().push_back(l.item<float>());
    }
    EXPECT_TRUE(found[0] == found[1]) << "clip " << clip;
  }
}

TEST_F(KeptPacks, OfWeightsThatAreReplaced) {
  compare([](Net& p, int i) {
    if (i == 1) p.w2 = draw(7).w2;
    if (i == 3) p = copied(draw(8));
  });
}

TEST_F(KeptPacks, OfWeightsThatChangePlaces) {
  compare([](Net& p, int i) {
    if (i % 2 == 0) std::swap(p.w1, p.w2);
  });
}

TEST_F(KeptPacks, OfWeightsThatTheCallerHolds) {
  std::vector<Net> held;
  compare([&](Net& p, int i) {
    if (i % 2 == 0) held.push_back(p);
  });
  // Those of both kinds, which nothing has written to since.
  for (std::size_t i = 0; i < held.size() / 4; ++i) {
    EXPECT_TRUE(numbers(held[i]) == numbers(held[i + held.size() / 4]));
    EXPECT_TRUE(numbers(held[2 * (held.size() / 4) + i]) == numbers(held[3 * (held.size() / 4) + i]));
  }
}

TEST_F(KeptPacks, AreNotHeldWithOldWeights) {
  Step f = made(true);
  Net p = draw(1);
  Tensor l;
  std::tie(p, l) = f(p, batch(0));
  static test::CountingAllocator& memory = *new test::CountingAllocator;  // what is kept is released after the test
  std::vector<Net> held;
  std::int64_t first = 0;
  for (int i = 0; i < 4; ++i) {
    held.push_back(p);
    std::tie(p, l) = f(p, batch(i));
    if (i == 0) first = memory.held;
  }
  const std::int64_t weights = (2 * 256 * 256 + 256 * 320) * 4;
  EXPECT_LT(memory.held - first, 3 * weights + 1024);
  runtime::set_allocator({});
}

TEST_F(KeptPacks, OfProgramsThatPackInDifferentWays) {
  // One reads square weights by rows and one by columns: copies of the same size, laid out differently.
  const auto build = [](bool keep, bool turned) {
    setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
    return jit(
        [turned](Tensor w, Tensor x) {
          const auto loss_of = [turned, x](Tensor v) {
            const Tensor half = v.astype(bf16);
            const Tensor y = matmul(x.astype(bf16), turned ? half.transpose() : half).astype(f32);
            return (y * y).mean();
          };
          return w - 0.5 * grad(loss_of)(w);
        },
        {.donate = {0}});
  };
  std::vector<std::vector<float>> found;
  for (const bool keep : {true, false}) {
    auto straight = build(keep, false);
    Tensor w = draw(1).w1;
    w = straight(w, batch(0));
    auto turned = build(keep, true);
    EXPECT_EQ(count(turned.lower(w, batch(0)).compile().text(), "\n  keep"), keep ? 1u : 0u);
    for (int i = 0; i < 4; ++i) w = i % 2 == 0 ? turned(w, batch(i)) : straight(w, batch(i));
    found.push_back(w.to_vector<float>());
  }
  EXPECT_TRUE(found[0] == found[1]);
}

TEST_F(KeptPacks, OfWeightsThatAnotherProgramReads) {
  const auto evaluate = jit([](Net p, Tensor x) { return loss(p, x); });
  std::vector<float> losses;
  compare([&](Net& p, int i) { losses.push_back(evaluate(p, batch(i)).item<float>()); });
  EXPECT_EQ(losses.size(), 20u);
  EXPECT_TRUE(std::equal(losses.begin(), losses.begin() + 5, losses.begin() + 5));
}

TEST_F(KeptPacks, OfWeightsThatAnotherProgramWritesTo) {
  const auto shrink = jit([](Net p) { return tree::map([](Tensor w) { return 0.9 * w; }, p); }, {.donate = {0}});
  const auto turn = jit([](Net p) -> Net { return {p.w2.transpose(), p.w1.transpose(), p.w3 * 1.1}; }, {.donate = {0}});
  compare([&](Net& p, int i) { p = i % 2 == 0 ? shrink(p) : turn(p); });
  // Another step, of another loss, which packs the same weights in the same way.
  const auto other = jit(
      [](Net p, Tensor x) {
        const Net grads = grad([](Net q, Tensor y) { return loss(q, y) + 0.1 * (q.w1 * q.w2).sum(); })(p, x);
        return tree::map([](Tensor w, Tensor g) { return w - 0.1 * g; }, p, grads);
      },
      {.donate = {0}});
  compare([&](Net& p, int i) { p = other(p, batch(i)); });
}

TEST_F(KeptPacks, SurviveACallThatThrows) {
  // The index is found out of range in the first kernels; the weights are as they were, and are packed again or not.
  const auto build = [](bool keep) {
    setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
    return jit(
        [](Net p, Tensor x, Tensor ids) -> Result {
          auto [l, grads] = value_and_grad([](Net q, Tensor y, Tensor i) { return loss(q, y[i]); })(p, x, ids);
          return {tree::map([](Tensor w, Tensor g) { return w - 0.5 * g; }, p, grads), l};
        },
        {.donate = {0}});
  };
  std::vector<std::vector<float>> found;
  for (const bool keep : {true, false}) {
    auto f = build(keep);
    Net p = draw(1);
    Tensor l;
    const Tensor good = arange(512), bad = arange(512) + 200;
    for (int i = 0; i < 4; ++i) {
      std::tie(p, l) = f(p, batch(i), good);
      EXPECT_NE(test::error_of([&] { (void)f(p, batch(i), bad); }), "no error");
    }
    found.push_back(numbers(p));
  }
  EXPECT_TRUE(found[0] == found[1]);
}

TEST_F(KeptPacks, OfManyHostThreads) {
  constexpr int hosts = 6, calls = 4;
  std::vector<std::vector<float>> found[2];
  for (const bool keep : {true, false}) {
    Step f = made(keep);
    const Net shared = draw(3);  // passed by all of them at once, besides what each has for itself
    found[keep].resize(hosts);
    std::vector<std::thread> threads;
    for (int host = 0; host < hosts; ++host)
      threads.emplace_back([&, host] {
        Net own = draw(host), again = shared, q = shared;
        Tensor l;
        for (int i = 0; i < calls; ++i) {
          std::tie(own, l) = f(own, batch(i));
          std::tie(q, l) = f(i == 2 ? again : q, batch(host + i));
        }
        found[keep][host] = numbers(own);
        for (float value : numbers(q)) found[keep][host].push_back(value);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(numbers(shared) == numbers(draw(3)));
  }
  EXPECT_TRUE(found[0] == found[1]);
}

}  // namespace
}  // namespace burin
