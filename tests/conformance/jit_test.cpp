// What a compiled function is looked up by, what donation may overwrite, how compile time grows, and threads.
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::expect_values;

constexpr bool machine_code = BURIN_WITH_LLVM;

std::int64_t traces() { return jit_statistics().traces; }

// jax-ml/jax#9273: 1, true and 1.0 are equal and hash alike, so the first program serves all.
TEST(JitCache, StaticValuesOfDifferentTypesAreDifferent) {
  const auto check = [](const auto& f, auto number, DType dtype) {
    const Tensor t = f(number);
    EXPECT_EQ(t.dtype(), dtype);
    expect_values(t, {1, 1});
  };
  const std::vector<std::array<int, 3>> orders = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const std::array<int, 3>& order : orders) {
    const auto f = jit([](auto k) { return full({2}, k); });
    const std::int64_t before = traces();
    for (int round = 0; round < 2; ++round)
      for (int which : order)
        if (which == 0)
          check(f, 1, i32);
        else if (which == 1)
          check(f, true, bool_);
        else
          check(f, 1.0, f32);
    EXPECT_EQ(traces(), before + 3);
  }
}

// ml-explore/mlx#2632: an absent argument is no part of the key, and the structure of the first result is used again.
TEST(JitCache, AbsentArgumentsAreAnotherStructure) {
  using Maybe = std::optional<Tensor>;
  const auto f = [](Tensor x, Maybe y) { return y ? std::pair{Maybe(x), Maybe()} : std::pair{Maybe(x + 1), Maybe(x)}; };
  const Tensor x = tensor({3.0});
  for (bool absent_first : {true, false}) {
    const auto g = jit(f);
    for (int i = 0; i < 4; ++i) {
      const bool absent = (i % 2 == 0) == absent_first;
      const auto [a, b] = g(x, absent ? Maybe() : Maybe(x * 2));
      expect_values(*a, {absent ? 4.0 : 3.0});
      ASSERT_EQ(b.has_value(), absent);
      if (b) expect_values(*b, {3});
    }
  }
}

// tensorcircuit/tensorcircuit-ng#119: the order in which a dictionary was built decides.
TEST(JitCache, TreesDoNotDependOnTheOrderOfBuilding) {
  std::map<std::string, Tensor> a, b;
  a["b"] = tensor({2.0});
  a["a"] = tensor({1.0});
  b["a"] = tensor({1.0});
  b["b"] = tensor({2.0});
  const std::vector<Tensor> leaves = tree::flatten(a);
  expect_values(leaves[0], {1});
  expect_values(leaves[1], {2});
  EXPECT_TRUE(tree::flatten(std::optional<Tensor>()).empty());
  const auto f = jit([](std::map<std::string, Tensor> m) { return m.at("a") * 10 + m.at("b"); });
  const std::int64_t before = traces();
  expect_values(f(a), {12});
  expect_values(f(b), {12});
  EXPECT_EQ(traces(), before + 1);
  const std::map<std::string, std::vector<Tensor>> list{{"a", {Tensor(1), Tensor(2)}}};
  const auto mapped = [&](const auto& other) {
    const std::string text =
        test::error_text([&] { (void)tree::map([](Tensor x, Tensor) { return x; }, list, other); });
    return text.substr(0, text.find(" (jit_test.cpp:"));
  };
  EXPECT_EQ(mapped(std::map<std::string, std::vector<Tensor>>{{"a", {Tensor(9)}}}),
            "tree::map: the trees differ: 2 elements at `a` in tree 1, 1 element at `a` in tree 2");
  EXPECT_EQ(mapped(Tensor(9)),
            "tree::map: the trees differ: 1 element at the top in tree 1, a tensor at the top in tree 2");
}

struct Three {
  Tensor a, b, c;
  BURIN_TREE(a, b, c)
};

// jax-ml/jax#39625: donated memory goes to results in the wrong order, or is read after it was overwritten.
TEST(Donation, ResultsInAnyOrderKeepWhatTheyRead) {
  const auto state = [] { return Three{full({4}, 1.0), full({4}, 2.0), full({4}, 3.0)}; };
  const auto check = [](const Three& s, const Three& y) {
    expect_values(s.a, {1, 1, 1, 1});
    expect_values(s.b, {2, 2, 2, 2});
    expect_values(s.c, {3, 3, 3, 3});
    for (const Tensor& t : {y.a, y.b, y.c}) expect_values(t, {0, 0, 0, 0});
  };
  const auto zeros_first = jit(
      [](Three s) {
        const Tensor y = s.a - s.a;
        return std::pair{Three{y, y, y}, s};
      },
      {.donate = {0}});
  const auto [y1, s1] = zeros_first(state());
  check(s1, y1);
  const auto state_first = jit(
      [](Three s) {
        const Tensor y = s.a - s.a;
        return std::pair{s, Three{y, y, y}};
      },
      {.donate = {0}});
  const auto [s2, y2] = state_first(state());
  check(s2, y2);
  // Round about: each result overwrites what another still reads.
  const auto turned = jit([](Three s) { return Three{s.b + 0 * s.c, s.c + s.a, s.a}; }, {.donate = {0}});
  const Three t = turned(state());
  expect_values(t.a, {2, 2, 2, 2});
  expect_values(t.b, {4, 4, 4, 4});
  expect_values(t.c, {1, 1, 1, 1});
}

// jax-ml/jax#9635: one buffer donated and read by another argument.
TEST(Donation, ABufferHeldTwiceIsCopied) {
  const auto f = jit([](Tensor a, Tensor b) { return a + b; }, {.donate = {0}});
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0}), kept = x;
  expect_values(f(x, kept), {2, 4, 6, 8});
  expect_values(kept, {1, 2, 3, 4});
  const Tensor alone = tensor({1.0, 2.0, 3.0, 4.0});
  expect_values(f(alone, alone), {2, 4, 6, 8});
}

// pytorch/pytorch#14776: equal ops are merged though they draw random numbers.
TEST(CommonOps, DrawsOfDifferentKeysStayDifferent) {
  const auto draws = [](Key k) {
    const auto [a, b] = random::split(k);
    return std::tuple{random::uniform(a, {8}), random::uniform(b, {8}), random::uniform(a, {8})};
  };
  const auto [x, y, again] = jit(draws)(random::key(3));
  EXPECT_TRUE(bool(all_of(x != y)));
  EXPECT_TRUE(array_equal(x, again));
  const Tensor alone = jit([&](Key k) { return std::get<1>(draws(k)); })(random::key(3));
  EXPECT_TRUE(array_equal(alone, y));  // the unused draws change nothing
  EXPECT_TRUE(array_equal(std::get<1>(draws(random::key(3))), y));
}

// jax-ml/jax#2777: fusion repeats shared subexpressions, so that code and time double with each level.
TEST(CompileTime, SharedSubexpressionsAreNotRepeated) {
  const auto chain = [](int n) {
    return [n](Tensor x) {
      for (int i = 0; i < n; ++i) x = (x + x) * 0.5;
      return x;
    };
  };
  for (int n : {40, 127, 400}) {
    const Tensor x = 1.2345f;
    EXPECT_EQ(float(jit(chain(n))(x)), 1.2345f) << n;
    EXPECT_EQ(float(jit(grad(chain(n)))(x)), 1) << n;
    expect_values(jit(chain(n))(tensor({1.2345f, 0.1f, 3.0f})), {1.2345f, 0.1f, 3.0f});
  }
  // Per element, and with values that no rewrite shortens.
  const auto bent = [](int n) {
    return [n](Tensor x) {
      for (int i = 0; i < n; ++i) x = (x + x * x) * 0.75;
      return x;
    };
  };
  if (!machine_code) return;
  const auto size = [](auto f) { return jit(f).lower(abstract_tensor({})).compile().llvm().size(); };
  EXPECT_LE(size(bent(400)), 12 * size(bent(40)));
  EXPECT_LE(size(grad(bent(400))), 12 * size(grad(bent(40))));
  EXPECT_LE(size(grad(chain(400))), 12 * size(grad(chain(40))));
}

// NervanaSystems/ngraph#102: passes that recurse along a chain.
TEST(CompileTime, AChainOf100000Ops) {
  const auto f = jit([](Tensor x) {
    for (int i = 0; i < 100000; ++i) x = -x;
    return x;
  });
  expect_values(f(tensor({2.5, -1.0})), {2.5, -1});
}

// ggml-org/llama.cpp#14035: a counter of work that all calls share.
TEST(Threads, TwoHostThreadsRunAtOnce) {
  const auto f = jit([](Tensor x) { return softmax(matmul(x, x)) + sum(x, 0); });
  const auto g = jit([](Tensor x) { return matmul(exp(x * 0.01), x).sum(1); });
  const Tensor a = random::normal(random::key(1), {65, 65}), b = random::normal(random::key(2), {65, 65});
  const Tensor fa = f(a), fb = f(b), ga = g(a);
  std::atomic<int> wrong = 0;
  const auto repeat = [&](const auto& function, const Tensor& x, const Tensor& expected) {
    for (int i = 0; i < (machine_code ? 1000 : 10); ++i)
      if (!array_equal(function(x), expected)) ++wrong;
  };
  std::thread same_1([&] { repeat(f, a, fa); }), same_2([&] { repeat(f, b, fb); });
  same_1.join();
  same_2.join();
  std::thread other_1([&] { repeat(f, a, fa); }), other_2([&] { repeat(g, a, ga); });
  other_1.join();
  other_2.join();
  EXPECT_EQ(wrong, 0);
}

// Xilinx/mlir-aie#2621: threads that fill one entry of the cache at once.
TEST(Threads, EightHostThreadsCompileAtOnce) {
  const auto start = [](const std::function<void(int)>& body) {
    std::atomic<int> waiting = 8;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        body(i);
      });
    for (std::thread& t : threads) t.join();
  };
  std::array<double, 8> found{};
  const auto one = jit([](Tensor x) { return sum(x * 3.25 + 0.5); });
  const std::int64_t before = traces();
  start([&](int i) { found[static_cast<std::size_t>(i)] = double(one(full({3}, static_cast<double>(i)))); });
  for (int i = 0; i < 8; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], 9.75 * i + 1.5);
  EXPECT_LE(traces() - before, 8);
  EXPECT_GE(traces() - before, 1);
  start([&](int i) {
    const auto mine = jit([i](Tensor x) { return sum(x * (3.25 + i)); });
    found[static_cast<std::size_t>(i)] = double(mine(ones({3})));
  });
  for (int i = 0; i < 8; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], 3 * (3.25 + i));
}

}  // namespace
}  // namespace burin
