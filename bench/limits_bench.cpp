// How near kernels come to what the machine can do, as measured in the same process: products to its multiply-adds, rows to its copies.
#include <burin/burin.h>

#include "bench/paired.h"
#include "runtime/peaks.h"

namespace burin {
namespace {

template <class F>
double least_seconds(benchmark::State& state, F&& f) {
  double least = std::numeric_limits<double>::infinity();
  (void)f();
  for (auto _ : state) least = std::min(least, bench::seconds(f));
  return least;
}

void product_on_one_core(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const Tensor a = random::normal(random::key(1), {n, n}), b = random::normal(random::key(2), {n, n});
  auto f = jit([](Tensor x, Tensor y) { return matmul(x, y); }, {.num_threads = 1});
  const double flops = 2.0 * static_cast<double>(n * n * n) / least_seconds(state, [&] { return f(a, b); });
  state.counters["of_peak"] = flops / runtime::machine_peaks(1).flops;
}
BENCHMARK(product_on_one_core)->Arg(512)->Arg(1000)->Arg(1024)->Unit(benchmark::kMillisecond);

template <class F>
void share_of_copies(benchmark::State& state, F f, int arrays) {
  const Tensor x = random::normal(random::key(1), {4096, 1024});
  auto call = jit(f);
  const std::int64_t bytes = 4096 * 1024 * 4 * arrays;
  const double rate = static_cast<double>(bytes) / least_seconds(state, [&] { return call(x); });
  state.counters["of_copies"] = rate / runtime::machine_peaks(2).bytes_per_second(bytes);
}
void rms_norm_in_one_pass(benchmark::State& state) {
  share_of_copies(state, [](Tensor x) { return nn::rms_norm(x, ones({1024})); }, 2);
}
void softmax_in_one_pass(benchmark::State& state) {
  share_of_copies(state, [](Tensor x) { return softmax(x, -1); }, 2);
}
void sum_over_axis_0(benchmark::State& state) {
  share_of_copies(state, [](Tensor x) { return x.sum(0); }, 1);
}
void sum_of_everything(benchmark::State& state) {
  share_of_copies(state, [](Tensor x) { return x.sum(); }, 1);
}
BENCHMARK(rms_norm_in_one_pass)->Unit(benchmark::kMillisecond);
BENCHMARK(softmax_in_one_pass)->Unit(benchmark::kMillisecond);
BENCHMARK(sum_over_axis_0)->Unit(benchmark::kMillisecond);
BENCHMARK(sum_of_everything)->Unit(benchmark::kMillisecond);

// Memory grows with the length, time with its square: both over those of half the length.
void attention_over_half_the_length(benchmark::State& state) {
  const std::int64_t length = state.range(0);
  const auto step = [](Tensor q, Tensor k, Tensor v) {
    return grad<0, 1, 2>([](Tensor a, Tensor b, Tensor c) { return nn::attention(a, b, c, {.causal = true}).sum(); })(q, k, v);
  };
  const auto drawn = [](std::int64_t t) { return random::normal(random::key(1), {1, t, 4, 64}); };
  const Tensor x = drawn(length), half = drawn(length / 2);
  auto whole = jit(step), part = jit(step);
  state.counters["time"] = bench::time_in_turn(state, [&] { return whole(x, x, x); }, [&] { return part(half, half, half); }).ratio();
  state.counters["memory"] = static_cast<double>(whole.lower(x, x, x).compile().peak_bytes()) /
                             static_cast<double>(part.lower(half, half, half).compile().peak_bytes());
}
BENCHMARK(attention_over_half_the_length)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

// The number of keys is an argument: the same machine code with an eighth of them, over all of them.
void attention_of_an_eighth_of_the_keys(benchmark::State& state) {
  const std::int64_t length = state.range(0);
  const bool with_gradient = state.range(1) != 0;
  const auto forward = [](Tensor q, Tensor k, Tensor v, Tensor seen) { return nn::attention(q, k, v, {.kv_length = seen}); };
  const auto step = [&](Tensor q, Tensor k, Tensor v, Tensor seen) {
    if (!with_gradient) return std::tuple(forward(q, k, v, seen), q, q);
    return grad<0, 1, 2>([&](Tensor a, Tensor b, Tensor c) { return forward(a, b, c, seen).sum(); })(q, k, v);
  };
  const Tensor x = random::normal(random::key(1), {1, length, 8, 64}), all = full({}, length, i32),
               eighth = full({}, length / 8, i32);
  auto f = jit(step);
  state.counters["time"] = bench::time_in_turn(state, [&] { return f(x, x, x, eighth); }, [&] { return f(x, x, x, all); }).ratio();
}
BENCHMARK(attention_of_an_eighth_of_the_keys)->Args({2048, 0})->Args({2048, 1})->Unit(benchmark::kMillisecond);

// What it costs to hold less: time and bytes under a budget over those without one.
void step_under_a_budget(benchmark::State& state) {
  std::vector<Tensor> weights;
  for (std::uint64_t i = 0; i < 8; ++i) weights.push_back(random::normal(random::key(i), {256, 256}) * 0.06);
  const Tensor x = random::normal(random::key(9), {2048, 256});
  const auto step = [](std::vector<Tensor> w, Tensor input) {
    return grad([&](std::vector<Tensor> layers) {
      Tensor y = input;
      for (const Tensor& layer : layers) y = y + nn::gelu(matmul(nn::rms_norm(y, ones({256})), layer));
      return y.sum();
    })(w);
  };
  auto free = jit(step);
  const std::int64_t bytes = free.lower(weights, x).compile().peak_bytes();
  auto tight = jit(step, {.memory_budget = bytes * state.range(0) / 100});
  state.counters["time"] = bench::time_in_turn(state, [&] { return tight(weights, x); }, [&] { return free(weights, x); }).ratio();
  state.counters["memory"] = static_cast<double>(tight.lower(weights, x).compile().peak_bytes()) / static_cast<double>(bytes);
}
BENCHMARK(step_under_a_budget)->Arg(80)->Arg(60)->Arg(50)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace burin
