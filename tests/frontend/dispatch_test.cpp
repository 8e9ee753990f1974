// What a call costs beyond its kernels: no memory from the system once the same call has been made.
#include <burin/burin.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"
#include "tests/support/counting.h"
#include "tests/support/sanitized.h"

namespace burin {
namespace {

using Leaves = std::array<Tensor, 64>;

class Dispatch : public test::EachBackend {};
INSTANTIATE_TEST_SUITE_P(OnThe, Dispatch, testing::Values<std::string_view>("machine"), test::backend_name);

Leaves leaves() {
  Leaves xs;
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = full({8}, static_cast<double>(i));
  return xs;
}

TEST_P(Dispatch, AllocatesNothingInTheSteadyState) {
  if (test::sanitized) GTEST_SKIP() << "under a sanitizer blocks are not kept, so that it sees what uses them too late";
  const auto f = jit([](Leaves xs, Tensor y) {
    for (Tensor& x : xs) x = x * 2 + y;
    return xs;
  });
  Leaves xs = leaves();
  const Tensor y = ones({8});
  for (int i = 0; i < 3; ++i) xs = f(xs, y);
  const std::int64_t before = test::calls_of_new();
  for (int i = 0; i < 5; ++i) xs = f(xs, y);
  EXPECT_EQ(test::calls_of_new(), before);
  for (std::size_t i = 0; i < xs.size(); ++i)
    test::expect_values(xs[i], std::vector<double>(8, 256.0 * static_cast<double>(i) + 255));
}

TEST_P(Dispatch, InPlaceAllocatesNothingEither) {
  if (test::sanitized) GTEST_SKIP() << "under a sanitizer blocks are not kept, so that it sees what uses them too late";
  const auto f = jit(
      [](Leaves xs) {
        for (Tensor& x : xs) x = x + 1;
        return xs;
      },
      {.donate = {0}});
  Leaves xs = leaves();
  for (int i = 0; i < 3; ++i) xs = f(std::move(xs));
  const std::int64_t before = test::calls_of_new();
  for (int i = 0; i < 5; ++i) xs = f(std::move(xs));
  EXPECT_EQ(test::calls_of_new(), before);
  for (std::size_t i = 0; i < xs.size(); ++i)
    test::expect_values(xs[i], std::vector<double>(8, static_cast<double>(i) + 8));
}

TEST_P(Dispatch, ListsOfACallThatThrewAreGoodForTheNext) {
  const auto f = jit([](Tensor x, Tensor i) { return std::pair{x[i], x + 1}; });
  const Tensor x = tensor({1.0, 2.0, 3.0});
  for (int round = 0; round < 3; ++round) {
    EXPECT_NE(test::error_text([&] { (void)f(x, tensor({3})); }).find("out of range"), std::string::npos);
    const auto [taken, next] = f(x, tensor({2}));
    test::expect_values(taken, {3});
    test::expect_values(next, {2, 3, 4});
  }
}

TEST_P(Dispatch, ACallInsideACallHasListsOfItsOwn) {
  const auto inner = jit([](Tensor x) { return x * 3; });
  (void)inner(ones({2}));
  Runtime runtime;
  std::vector<Tensor> seen;
  runtime.parallel_for = [&](int, std::int64_t tasks, const std::function<void(int, std::int64_t, std::int64_t)>& g) {
    seen.push_back(inner(tensor({1.0, 2.0})));
    g(0, 0, tasks);
  };
  set_runtime(runtime);
  const auto outer = jit([](Tensor x) { return std::pair{matmul(x, x), x + 1}; }, {.num_threads = 4});
  const auto [product, next] = outer(ones({256, 256}));
  set_runtime({});
  EXPECT_FALSE(seen.empty());
  for (const Tensor& s : seen) test::expect_values(s, {3, 6});
  EXPECT_EQ(product[0][255].item<double>(), 256);
  EXPECT_EQ(next[255][0].item<double>(), 2);
}

}  // namespace
}  // namespace burin
