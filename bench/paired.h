// Two ways of computing something, timed in turn: on a machine that others share only their ratio says something.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace burin::bench {

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(f());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Each at its least.
struct Pair {
  double first = std::numeric_limits<double>::infinity(), second = first;
  double ratio() const { return first / second; }
};

template <class F, class G>
Pair time_in_turn(benchmark::State& state, F&& first, G&& second) {
  Pair least;
  for (int i = 0; i < 2; ++i) (void)first(), (void)second();
  for (auto _ : state) {
    least.first = std::min(least.first, seconds(first));
    least.second = std::min(least.second, seconds(second));
  }
  return least;
}

}  // namespace burin::bench
