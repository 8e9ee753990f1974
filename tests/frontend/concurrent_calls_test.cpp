// Calls from many host threads at once: tracing, compiling, running and the memory of a call belong to their thread, and
// what threads share (caches, workspaces, the pool) changes no bit of a result.
#include <barrier>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/thread_pool.h"
#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_values;

constexpr int num_hosts = 6;
constexpr int calls = 8;

/// Runs body(host, call) on every host thread; all of them start each call together.
void on_all_hosts(int num_calls, const std::function<void(int host, int call)>& body) {
  std::barrier together(num_hosts);
  std::vector<std::thread> hosts;
  for (int host = 0; host < num_hosts; ++host)
    hosts.emplace_back([&, host] {
      for (int call = 0; call < num_calls; ++call) {
        together.arrive_and_wait();
        try {
          body(host, call);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "host thread " << host << ", call " << call << ": " << error.what();
        }
      }
    });
  for (std::thread& host : hosts) host.join();
}

class ConcurrentCalls : public test::EachBackend {};

Tensor input(int seed, Shape shape) { return random::normal(random::key(seed), std::move(shape)); }

TEST_P(ConcurrentCalls, OneFunctionIsTracedAndRunByAll) {
  // Machine code shares a call of this size out among the pool; the others would take long over it.
  const std::int64_t rows = is("machine") ? 515 : 7;
  const auto f = jit([](Tensor x, Tensor w) { return softmax(matmul(x, w), -1) * x.sum(-1, keepdims); }, {.num_threads = 3});
  const Tensor w = input(-1, {33, 65});
  std::vector<Tensor> inputs, expected;
  for (int host = 0; host < num_hosts; ++host) inputs.push_back(input(host, {rows, 33}));

  const auto compiles = jit_statistics().compiles;
  std::vector<std::vector<float>> found(num_hosts * calls);
  on_all_hosts(calls, [&](int host, int call) {
    found[host * calls + call] = f(inputs[(host + call) % num_hosts], w).to_vector<float>();
  });
  EXPECT_EQ(jit_statistics().compiles, compiles + 1);

  for (int host = 0; host < num_hosts; ++host)
    for (int call = 0; call < calls; ++call) {
      const Tensor alone = f(inputs[(host + call) % num_hosts], w);
      EXPECT_EQ(found[host * calls + call], alone.to_vector<float>()) << "host thread " << host << ", call " << call;
    }
}

TEST_P(ConcurrentCalls, DifferentFunctionsOfOtherShapesAndLines) {
  on_all_hosts(calls, [](int host, int call) {
    // Each host and call has a program of its own; odd ones have no element.
    const std::int64_t n = call % 2 == 0 ? host + 1 : 0;
    const auto f = jit([host](Tensor x, int k) { return concatenate({x * k, x + host}, 0); });
    const auto g = grad([call](Tensor x) { return (x * x * (call + 1)).sum(); });
    std::vector<double> expected(n, 2.0 * call);
    expected.resize(2 * n, 2.0 + host);
    expect_values(f(full({n}, 2.0), call), expected);
    expect_values(g(full({n}, 3.0)), std::vector<double>(n, 6.0 * (call + 1)));
    expect_values(vmap(g)(full({n, 2}, 3.0)), std::vector<double>(2 * n, 6.0 * (call + 1)));
  });
}

TEST_P(ConcurrentCalls, UnjittedOpsOfEqualAndOtherTypes) {
  const Tensor shared = arange(5);
  on_all_hosts(calls, [&](int host, int call) {
    const Tensor x = shared.astype(host % 2 == 0 ? f32 : i32) + call;
    expect_values((x * host)[shared], {1.0 * host * call, 1.0 * host * (call + 1), 1.0 * host * (call + 2),
                                       1.0 * host * (call + 3), 1.0 * host * (call + 4)});
  });
}

TEST_P(ConcurrentCalls, DonatedArgumentsAreTheCallersOwn) {
  const auto step = jit([](Tensor p, Tensor x) { return p * 2 + x; }, {.donate = {0}});
  const Tensor one = ones({3, 5});
  std::vector<Tensor> parameters;
  for (int host = 0; host < num_hosts; ++host) parameters.push_back(full({3, 5}, host));
  const Tensor kept = parameters[1];  // a second holder: this host's first call copies
  on_all_hosts(calls, [&](int host, int) { parameters[host] = step(parameters[host], one); });
  for (int host = 0; host < num_hosts; ++host) {
    double expected = host;
    for (int call = 0; call < calls; ++call) expected = expected * 2 + 1;
    expect_values(parameters[host], std::vector<double>(15, expected));
  }
  expect_values(kept, std::vector<double>(15, 1));
}

TEST_P(ConcurrentCalls, AnErrorReachesItsCallerOnly) {
  const auto f = jit([](Tensor x, Tensor ids) { return x[ids] * 2; });
  const Tensor x = tensor({1.0, 2.0, 3.0});
  on_all_hosts(calls, [&](int host, int call) {
    const int id = (host + call) % 5;
    if (id < 3) {
      expect_values(f(x, tensor({id, 0})), {2.0 * (id + 1), 2});
    } else {
      const std::string text = error_text([&] { (void)f(x, tensor({0, id})); });
      EXPECT_NE(text.find("index " + std::to_string(id) + " is out of range"), std::string::npos) << text;
    }
  });
}

TEST_P(ConcurrentCalls, AFunctionThatCannotBeTracedFailsForAllWhoAsk) {
  const auto f = jit([](Tensor x) { return matmul(x, x); });
  on_all_hosts(calls, [&](int host, int) {
    EXPECT_NE(error_text([&] { (void)f(ones({2, 3})); }), "no error");
    const std::int64_t n = 1 + host % 3;
    expect_values(f(ones({n, n})), std::vector<double>(n * n, n));  // the next call works
  });
}

TEST_P(ConcurrentCalls, ThePoolHelpsWhoeverHasIt) {
  if (!is("machine")) GTEST_SKIP() << "only machine code is run by the pool";
  const auto f = jit([](Tensor x) { return exp(x).sum(-1); }, {.num_threads = 2});
  const Tensor x = input(0, {1025, 129});
  const std::vector<float> expected = f(x).to_vector<float>();
  runtime::reset_worker_counters();
  // Which call gets help is a matter of timing, and on a busy machine it may be long before a worker gets a core.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (runtime::tasks_run_by_worker(1) == 0 && std::chrono::steady_clock::now() < patience)
    on_all_hosts(4, [&](int, int) { EXPECT_EQ(f(x).to_vector<float>(), expected); });
  EXPECT_GT(runtime::tasks_run_by_worker(1), 0);
}

INSTANTIATE_TEST_SUITE_P(Jit, ConcurrentCalls, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace burin
