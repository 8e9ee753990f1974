// What the runtime itself costs: a call, a step, handing work to the pool, memory for outputs. Kernels do next to
// nothing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace burin::runtime {
namespace {

void touch(void* const* buffers, std::int64_t, std::int64_t, void*, BurinStatus*) {
  benchmark::DoNotOptimize(buffers[0]);
}

void spin_for(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Times of one sample each, of which the median and the least survive on a busy machine.
class Samples {
 public:
  template <class F>
  void time(benchmark::State& state, F&& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(seconds);
    if (us_.size() < 100'000) us_.push_back(seconds * 1e6);
  }
  void report(benchmark::State& state) {
    std::sort(us_.begin(), us_.end());
    state.counters["least_us"] = us_.front();
    state.counters["median_us"] = us_[us_.size() / 2];
  }

 private:
  std::vector<double> us_;
};

// A task of one microsecond.
void work_a_little(void* const*, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  spin_for(std::chrono::microseconds(end - begin));
}

/// `steps` steps of `tasks` tasks, each behind all before it, over `leaves` inputs and as many outputs.
StepTable table_of(BurinKernel entry, std::size_t leaves, std::size_t steps, std::int64_t tasks, double cost_ns) {
  StepTable table;
  table.input_bytes.assign(leaves, 64);
  table.output_bytes.assign(leaves, 64);
  table.arena_bytes = 4096;
  for (std::uint32_t i = 0; i < leaves; ++i) {
    table.args.push_back({Storage::input, i, 0});
    table.args.push_back({Storage::output, i, 0});
  }
  for (std::uint32_t i = 0; i < steps; ++i) {
    Step step;
    step.entry = entry;
    step.num_args = static_cast<std::uint32_t>(2 * leaves);
    step.tasks = tasks;
    step.after = i;
    step.cost_ns = cost_ns;
    table.steps.push_back(step);
  }
  return table;
}

struct Call {
  Call(StepTable table, std::size_t leaves) : executable(std::move(table)), bytes(64 * leaves) {
    for (std::size_t i = 0; i < leaves; ++i) {
      inputs.push_back(bytes.data() + 64 * i);
      outputs.push_back(bytes.data() + 64 * i);
    }
  }
  void operator()(const RunOptions& options = {}) const { executable.run(inputs, outputs, options); }
  Executable executable;
  std::vector<std::byte> bytes;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

void dispatch_leaves(benchmark::State& state) {
  const std::size_t leaves = static_cast<std::size_t>(state.range(0));
  const Call call(table_of(touch, leaves, 1, 1, 10), leaves);
  for (auto _ : state) call();
}
BENCHMARK(dispatch_leaves)->Arg(1)->Arg(64)->Arg(512);

void dispatch_leaves_with_fresh_outputs(benchmark::State& state) {
  const std::size_t leaves = static_cast<std::size_t>(state.range(0));
  Call call(table_of(touch, leaves, 1, 1, 10), leaves);
  std::vector<std::shared_ptr<Buffer>> outputs(leaves);
  for (auto _ : state) {
    for (std::size_t i = 0; i < leaves; ++i) {
      outputs[i] = Buffer::allocate(64);
      call.outputs[i] = outputs[i]->data();
    }
    call();
  }
}
BENCHMARK(dispatch_leaves_with_fresh_outputs)->Arg(1)->Arg(64);

void serial_steps(benchmark::State& state) {
  const Call call(table_of(touch, 1, static_cast<std::size_t>(state.range(0)), 1, 10), 1);
  for (auto _ : state) call();
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(serial_steps)->Arg(1000)->Arg(100000);

// Steps that go through the pool with awake workers and nothing to do.
void shared_steps(benchmark::State& state) {
  const Call call(table_of(touch, 1, 1000, state.range(1), 1e6), 1);
  Samples samples;
  for (auto _ : state) samples.time(state, [&] { call({.num_threads = static_cast<int>(state.range(0))}); });
  samples.report(state);
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(shared_steps)->Args({2, 2})->Args({2, 64})->UseManualTime();

// A step of 32 us in 1-us tasks: one call after another, and after a pause in which the workers fall asleep.
void shared_work(benchmark::State& state) {
  const Call call(table_of(work_a_little, 1, 1, 32, 32e3), 1);
  const auto gap = std::chrono::microseconds(state.range(1));
  Samples samples;
  for (auto _ : state) {
    if (gap.count() > 0) std::this_thread::sleep_for(gap);
    samples.time(state, [&] { call({.num_threads = static_cast<int>(state.range(0)), .threading_threshold_ns = 0}); });
  }
  samples.report(state);
}
BENCHMARK(shared_work)->Args({1, 0})->Args({2, 0})->Args({2, 1000})->UseManualTime()->Iterations(2000);

// What the calling thread pays to open a session, with workers awake or asleep.
void open_session(benchmark::State& state) {
  const auto gap = std::chrono::microseconds(state.range(0));
  Samples samples;
  for (auto _ : state) {
    if (gap.count() > 0) std::this_thread::sleep_for(gap);
    samples.time(state, [] { PoolSession session(2); });
  }
  samples.report(state);
}
BENCHMARK(open_session)->Arg(0)->Arg(1000)->UseManualTime()->Iterations(2000);

// A fresh output of every call: allocate, write, release.
void fresh_output(benchmark::State& state) {
  const std::int64_t bytes = state.range(0);
  for (auto _ : state) {
    const std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
    std::memset(buffer->data(), 1, static_cast<std::size_t>(bytes));
    benchmark::DoNotOptimize(buffer->data());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(fresh_output)->Arg(1 << 10)->Arg(1 << 18)->Arg(4 << 20)->Arg(64 << 20);

// The same into memory that is kept: the floor of the above.
void kept_output(benchmark::State& state) {
  const std::int64_t bytes = state.range(0);
  const std::shared_ptr<Buffer> buffer = Buffer::allocate(bytes);
  for (auto _ : state) {
    std::memset(buffer->data(), 1, static_cast<std::size_t>(bytes));
    benchmark::DoNotOptimize(buffer->data());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(kept_output)->Arg(1 << 18)->Arg(4 << 20)->Arg(64 << 20);

}  // namespace
}  // namespace burin::runtime
