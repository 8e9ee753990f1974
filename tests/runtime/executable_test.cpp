// Step tables over hand-written kernels: order, sharing, errors, memory.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/profile.h"
#include "runtime/thread_pool.h"
#include "tests/support/counting.h"

namespace burin::runtime {
namespace {

const RunOptions eager{.num_threads = 0, .threading_threshold_ns = 0};

RunOptions threads(int n) { return {.num_threads = n, .threading_threshold_ns = 0}; }

// out[task] = in[task] + 1
void add_one(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  const std::int32_t* in = static_cast<const std::int32_t*>(buffers[0]);
  std::int32_t* out = static_cast<std::int32_t*>(buffers[1]);
  for (std::int64_t i = begin; i < end; ++i) {
    std::int32_t value;
    std::memcpy(&value, in + i, 4);
    ++value;
    std::memcpy(out + i, &value, 4);
  }
}

// out[task] = sum of the n values in[0..n-1]: wrong when it runs beside the step that writes them
void sum_all(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  const std::int32_t* in = static_cast<const std::int32_t*>(buffers[0]);
  const std::int32_t n = *static_cast<const std::int32_t*>(buffers[2]);
  for (std::int64_t i = begin; i < end; ++i)
    static_cast<std::int32_t*>(buffers[1])[i] = std::accumulate(in, in + n, std::int32_t{0});
}

// counts[task] += 1, after a while that lets the others come
void count_slowly(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (std::int64_t i = begin; i < end; ++i) ++static_cast<std::int32_t*>(buffers[0])[i];
}

// Writes the task's number all over its scratch, works, and reads it back.
void use_scratch(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch, BurinStatus*) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch) % 64, 0u);
  std::int64_t* mine = static_cast<std::int64_t*>(scratch);
  for (std::int64_t i = begin; i < end; ++i) {
    std::fill(mine, mine + 25, i);
    if (i % 50 == 7) std::this_thread::yield();
    static_cast<std::int32_t*>(buffers[0])[i] += std::count(mine, mine + 25, i) == 25;
  }
}

// Every third task reports two indices.
void report_some(void* const*, std::int64_t begin, std::int64_t end, void*, BurinStatus* status) {
  for (std::int64_t i = begin; i < end; ++i)
    if (i % 3 == 1 && i >= 100) {
      burin_report_index(status, i, 1, 1000 + i, 7);
      burin_report_index(status, i, 0, 2000 + i, 7);
    }
}

void do_nothing(void* const*, std::int64_t, std::int64_t, void*, BurinStatus*) {}

Step step(BurinKernel entry, std::uint32_t first_arg, std::uint32_t num_args, std::int64_t tasks, std::uint32_t after) {
  Step s;
  s.entry = entry;
  s.first_arg = first_arg;
  s.num_args = num_args;
  s.tasks = tasks;
  s.after = after;
  s.cost_ns = static_cast<double>(tasks);
  s.label = "step after " + std::to_string(after);
  return s;
}

// in -> +1 in the arena -> +1 in the arena -> out, over n values
StepTable chain(std::int64_t n) {
  StepTable table;
  table.input_bytes = {4 * n};
  table.output_bytes = {4 * n};
  table.arena_bytes = 8 * n;
  table.args = {{Storage::input, 0, 0},     {Storage::arena, 0, 0},     {Storage::arena, 0, 0},
                {Storage::arena, 0, 4 * n}, {Storage::arena, 0, 4 * n}, {Storage::output, 0, 0}};
  table.steps = {step(add_one, 0, 2, n, 0), step(add_one, 2, 2, n, 1), step(add_one, 4, 2, n, 2)};
  return table;
}

std::vector<std::int32_t> iota(std::size_t n) {
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), 5);
  return values;
}

void run(const Executable& executable, const std::vector<const void*>& in, const std::vector<void*>& out,
         const RunOptions& options = eager) {
  executable.run(in, out, options);
}

TEST(Executable, RunsStepsInOrder) {
  for (std::int64_t n : {0, 1, 3, 15, 513, 4099})
    for (int t : {1, 2, 8}) {
      const Executable executable(chain(n));
      const std::vector<std::int32_t> in = iota(static_cast<std::size_t>(n));
      std::vector<std::int32_t> out(in.size());
      run(executable, {in.data()}, {out.data()}, threads(t));
      for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] + 3) << n << " tasks, " << t << " threads";
    }
}

TEST(Executable, AStepSeesAllOfTheOneItWaitsFor) {
  const std::int32_t n = 257;
  StepTable table;
  table.input_bytes = {4 * n};
  table.output_bytes = {4 * n};
  table.arena_bytes = 4 * n;
  table.constants.resize(1, std::vector<std::byte>(4));
  std::memcpy(table.constants[0].data(), &n, 4);
  table.args = {{Storage::input, 0, 0},
                {Storage::arena, 0, 0},
                {Storage::arena, 0, 0},
                {Storage::output, 0, 0},
                {Storage::constant, 0, 0}};
  table.steps = {step(add_one, 0, 2, n, 0), step(sum_all, 2, 3, n, 1)};
  const Executable executable(std::move(table));
  const std::vector<std::int32_t> in = iota(n);
  const std::int32_t sum = std::accumulate(in.begin(), in.end(), n);
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<std::int32_t> out(n);
    run(executable, {in.data()}, {out.data()}, threads(2 + repeat % 3));
    EXPECT_EQ(std::count(out.begin(), out.end(), sum), n);
  }
}

TEST(Executable, StepsShareTheThreads) {
  StepTable table;
  table.output_bytes = {4 * 700, 4 * 3, 4 * 1, 4 * 50};
  table.args = {{Storage::output, 0, 0}, {Storage::output, 1, 0}, {Storage::output, 2, 0}, {Storage::output, 3, 0}};
  table.steps = {step(count_slowly, 0, 1, 700, 0), step(count_slowly, 1, 1, 3, 0), step(count_slowly, 2, 1, 1, 0),
                 step(do_nothing, 0, 0, 0, 0), step(count_slowly, 3, 1, 50, 0)};
  table.steps[0].cost_ns = 10;
  table.steps[1].cost_ns = 300;
  table.steps[2].cost_ns = 100;
  for (int t : {1, 2, 8}) {
    const Executable executable(table);
    reset_worker_counters();
    int workers = 0;
    for (int runs = 0; workers < 2 && runs < (t == 1 ? 1 : 100); ++runs) {
      std::vector<std::int32_t> a(700), b(3), c(1), d(50);
      run(executable, {}, {a.data(), b.data(), c.data(), d.data()}, threads(t));
      for (const auto* counts : {&a, &b, &c, &d})
        EXPECT_EQ(std::count(counts->begin(), counts->end(), 1), static_cast<std::ptrdiff_t>(counts->size()));
      workers = 0;
      for (int worker = 0; worker < 8; ++worker) workers += tasks_run_by_worker(worker) > 0;
    }
    if (t == 1)
      EXPECT_EQ(workers, 0) << "the pool was asked though one thread was";
    else
      EXPECT_GE(workers, 2);
  }
}

TEST(Executable, CheapProgramsStayOnTheCallingThread) {
  const Executable cheap(chain(64));
  StepTable table = chain(64);
  for (Step& s : table.steps) s.cost_ns = 1e6;
  const Executable dear(std::move(table));
  const std::vector<std::int32_t> in = iota(64);
  std::vector<std::int32_t> out(64);
  const auto pool_tasks = [&](const Executable& executable, const RunOptions& options) {
    reset_worker_counters();
    run(executable, {in.data()}, {out.data()}, options);
    std::int64_t tasks = 0;
    for (int worker = 0; worker < 8; ++worker) tasks += tasks_run_by_worker(worker);
    return tasks;
  };
  EXPECT_EQ(pool_tasks(cheap, {.num_threads = 4}), 0);
  EXPECT_EQ(pool_tasks(cheap, {.num_threads = 4, .threading_threshold_ns = 65}), 0);
  EXPECT_EQ(pool_tasks(cheap, {.num_threads = 4, .threading_threshold_ns = 64}), 3 * 64);
  EXPECT_EQ(pool_tasks(dear, {.num_threads = 4}), 3 * 64);
  EXPECT_EQ(pool_tasks(dear, {.num_threads = 1}), 0);
  // A step behind others is shared where that spares more than their results cost on the way: three quarters of 30 us do, half does not.
  for (Step& s : (table = chain(64)).steps) s.cost_ns = 30e3;
  const Executable between(std::move(table));
  EXPECT_EQ(pool_tasks(between, {.num_threads = 4}), 3 * 64);
  EXPECT_EQ(pool_tasks(between, {.num_threads = 2}), 0);
}

TEST(Executable, EachThreadHasItsScratch) {
  StepTable table;
  table.output_bytes = {4 * 1000};
  table.args = {{Storage::output, 0, 0}};
  table.steps = {step(use_scratch, 0, 1, 1000, 0)};
  table.steps[0].scratch_bytes = 200;
  const Executable executable(std::move(table));
  for (int t : {1, 2, 8, 3}) {
    std::vector<std::int32_t> out(1000);
    run(executable, {}, {out.data()}, threads(t));
    EXPECT_EQ(std::count(out.begin(), out.end(), 1), 1000);
  }
}

TEST(Executable, KeepsTheFirstReportedIndex) {
  StepTable table;
  table.steps = {step(do_nothing, 0, 0, 5, 0), step(report_some, 0, 0, 1000, 1), step(report_some, 0, 0, 2000, 1),
                 step([](void* const*, std::int64_t, std::int64_t, void*, BurinStatus*) { FAIL(); }, 0, 0, 10, 3)};
  table.steps[1].sites = {"no", "take: index {index} is not in 0..{extent}-1 (a.cpp:3), {index}!"};
  table.steps[2].sites = {"no", "no"};
  const Executable executable(std::move(table));
  for (int repeat = 0; repeat < 20; ++repeat)
    for (int t : {1, 2, 8}) {
      try {
        run(executable, {}, {}, threads(t));
        FAIL();
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "take: index 1100 is not in 0..7-1 (a.cpp:3), 1100!");
      }
    }
}

TEST(Executable, RunsAgainAfterAReport) {
  StepTable table;
  table.input_bytes = {4};
  table.args = {{Storage::input, 0, 0}};
  table.steps = {step(
      [](void* const* buffers, std::int64_t, std::int64_t, void*, BurinStatus* status) {
        const std::int32_t index = *static_cast<const std::int32_t*>(buffers[0]);
        if (index < 0 || index >= 4) burin_report_index(status, 0, 0, index, 4);
      },
      0, 1, 1, 0)};
  table.steps[0].sites = {"index {index} of {extent}"};
  const Executable executable(std::move(table));
  const std::int32_t good = 3, bad = -1;
  EXPECT_NO_THROW(run(executable, {&good}, {}));
  EXPECT_THROW(run(executable, {&bad}, {}), Error);
  EXPECT_NO_THROW(run(executable, {&good}, {}));
}

TEST(Executable, TakesUnalignedMemory) {
  const Executable executable(chain(37));
  const std::vector<std::int32_t> in = iota(37);
  std::vector<std::byte> raw_in(4 * 37 + 1), raw_out(4 * 37 + 3);
  std::memcpy(raw_in.data() + 1, in.data(), 4 * 37);
  run(executable, {raw_in.data() + 1}, {raw_out.data() + 3}, threads(2));
  for (std::size_t i = 0; i < 37; ++i) {
    std::int32_t value;
    std::memcpy(&value, raw_out.data() + 3 + 4 * i, 4);
    EXPECT_EQ(value, in[i] + 3);
  }
}

TEST(Executable, AnOutputMayBeItsInput) {
  StepTable table;
  table.input_bytes = {4 * 99};
  table.output_bytes = {4 * 99};
  table.args = {{Storage::input, 0, 0}, {Storage::output, 0, 0}};
  table.steps = {step(add_one, 0, 2, 99, 0)};
  const Executable executable(std::move(table));
  std::vector<std::int32_t> values = iota(99);
  run(executable, {values.data()}, {values.data()}, threads(2));
  for (std::size_t i = 0; i < 99; ++i) EXPECT_EQ(values[i], static_cast<std::int32_t>(i) + 6);
}

TEST(Executable, LeavesOutWhatMakesGivenValues) {
  // in + 1 is kept, made by a step of its own and one beside it; out = kept + 1; then kept + 1 takes the place of what is kept.
  constexpr std::int64_t n = 99;
  StepTable table;
  table.input_bytes = table.output_bytes = table.kept_bytes = {4 * n};
  table.args = {{Storage::input, 0, 0}, {Storage::kept, 0, 0}, {Storage::kept, 0, 0}, {Storage::output, 0, 0}, {Storage::kept, 0, 0}, {Storage::kept, 0, 0}};
  table.steps = {step(add_one, 0, 2, n, 0), step(add_one, 2, 2, n, 1), step(add_one, 4, 2, n, 2)};
  table.steps[0].unless = {0};
  const Executable executable(std::move(table));
  const std::vector<std::int32_t> in = iota(n);
  for (const int t : {1, 2, 8}) {
    std::vector<std::int32_t> out(n), kept(n, -100);
    const KeptPlace made{kept.data(), false}, given{kept.data(), true};
    RunOptions options = threads(t);
    for (const std::int32_t expected : {2, 3, 4}) {
      options.kept = {expected == 2 ? &made : &given, 1};
      run(executable, {in.data()}, {out.data()}, options);
      EXPECT_EQ(out[7], in[7] + expected);
      EXPECT_EQ(kept[98], in[98] + expected);
    }
    Profile profile;
    options.profile = &profile;
    run(executable, {in.data()}, {out.data()}, options);
    EXPECT_EQ(profile.steps[0].ns, 0);
    EXPECT_GT(profile.steps[1].ns, 0);
    run(executable, {in.data()}, {out.data()}, threads(t));  // in memory that is lost
    EXPECT_EQ(out[7], in[7] + 2);
    EXPECT_EQ(kept[98], in[98] + 5);
  }
}

TEST(Executable, RefusesWrongPointers) {
  const Executable executable(chain(3));
  std::array<std::int32_t, 3> values{};
  const auto message = [&](const std::vector<const void*>& in, const std::vector<void*>& out, RunOptions options = {}) {
    try {
      run(executable, in, out, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  EXPECT_EQ(message({}, {values.data()}), "run: the program has 1 inputs, found 0 pointers");
  EXPECT_EQ(message({values.data()}, {values.data(), values.data()}),
            "run: the program has 1 outputs, found 2 pointers");
  EXPECT_EQ(message({nullptr}, {values.data()}), "run: pointer 0 of the inputs is null, expected 12 bytes");
  EXPECT_EQ(message({values.data()}, {nullptr}), "run: pointer 0 of the outputs is null, expected 12 bytes");
  EXPECT_EQ(message({values.data()}, {values.data()}, {.num_threads = -1}),
            "num_threads: expected a number of threads from 0 to 512, found '-1'");
}

TEST(Executable, RunsInlineInsideATask) {
  static const Executable* inner;
  const Executable executable(chain(50));
  inner = &executable;
  StepTable table;
  table.output_bytes = {4 * 50 * 20};
  table.args = {{Storage::output, 0, 0}};
  table.steps = {step(
      [](void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
        const std::vector<std::int32_t> in = iota(50);
        for (std::int64_t i = begin; i < end; ++i)
          run(*inner, {in.data()}, {static_cast<std::int32_t*>(buffers[0]) + 50 * i}, threads(8));
      },
      0, 1, 20, 0)};
  const Executable outer(std::move(table));
  std::vector<std::int32_t> out(50 * 20);
  run(outer, {}, {out.data()}, threads(3));
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<std::int32_t>(i % 50) + 8);
}

TEST(Executable, HostThreadsAtOnce) {
  const Executable executable(chain(300));
  std::atomic<int> wrong{0};
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([&, host] {
      std::vector<std::int32_t> in(300, host), out(300);
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::fill(out.begin(), out.end(), -1);
        run(executable, {in.data()}, {out.data()}, threads(1 + repeat % 3));
        wrong += std::count(out.begin(), out.end(), host + 3) != 300;
      }
    });
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executable, HoldsWhatItSays) {
  StepTable table = chain(1001);
  table.steps[1].scratch_bytes = 100;
  table.steps[2].scratch_bytes = 300;
  const std::vector<std::int32_t> in = iota(1001);
  std::vector<std::int32_t> out(1001);
  for (int t : {1, 8}) {
    test::CountingAllocator counted;
    const Executable executable(table);
    EXPECT_EQ(executable.held(t).bytes(), 8064 + 320 * t);
    run(executable, {in.data()}, {out.data()}, threads(t));
    EXPECT_EQ(counted.peak, executable.held(t).bytes());
    run(executable, {in.data()}, {out.data()}, threads(1));
    EXPECT_EQ(counted.calls, 1) << "the arena was not used again";
    run(executable, {in.data()}, {out.data()}, threads(9));
    EXPECT_EQ(counted.peak, executable.held(9).bytes()) << "the smaller arena was held beside the larger one";
    executable.release_arenas();
    EXPECT_EQ(counted.held, 0);
  }
}

TEST(Executable, FailsWithoutMemoryBeforeTheFirstStep) {
  const Executable executable(chain(8));
  const std::vector<std::int32_t> in = iota(8);
  std::vector<std::int32_t> out(8, -7);
  {
    test::CountingAllocator counted;
    counted.fail = true;
    EXPECT_THROW(run(executable, {in.data()}, {out.data()}), Error);
    EXPECT_EQ(std::count(out.begin(), out.end(), -7), 8);
  }
  run(executable, {in.data()}, {out.data()});
  EXPECT_EQ(out[0], in[0] + 3);
}

TEST(Executable, AllocatesNothingInTheSteadyState) {
  StepTable table = chain(600);
  for (Step& s : table.steps) s.scratch_bytes = 64;
  const Executable executable(std::move(table));
  const std::vector<std::int32_t> in = iota(600);
  std::vector<std::int32_t> out(600);
  const std::array<const void*, 1> inputs{in.data()};
  const std::array<void*, 1> outputs{out.data()};
  for (int t : {4, 1, 2}) executable.run(inputs, outputs, threads(t));
  test::CountingAllocator counted;
  const std::int64_t before = test::calls_of_new();
  for (int repeat = 0; repeat < 100; ++repeat) executable.run(inputs, outputs, threads(1 + repeat % 4));
  EXPECT_EQ(test::calls_of_new(), before);
  EXPECT_EQ(counted.calls, 0);
}

TEST(Executable, ProfilesOnRequest) {
  StepTable table = chain(100);
  table.steps[1].entry = [](void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch,
                            BurinStatus* status) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    add_one(buffers, begin, end, scratch, status);
  };
  const Executable executable(std::move(table));
  const std::vector<std::int32_t> in = iota(100);
  std::vector<std::int32_t> out(100);
  Profile profile;
  RunOptions options = threads(2);
  options.profile = &profile;
  run(executable, {in.data()}, {out.data()}, options);
  run(executable, {in.data()}, {out.data()}, options);
  EXPECT_EQ(out[99], in[99] + 3);
  ASSERT_EQ(profile.steps.size(), 3u);
  EXPECT_EQ(profile.runs, 2);
  EXPECT_EQ(profile.steps[1].label, "step after 1");
  EXPECT_EQ(profile.steps[1].tasks, 100);
  EXPECT_EQ(profile.steps[1].threads, 2);
  EXPECT_GT(profile.steps[1].ns, 2'000'000);
  EXPECT_LT(profile.steps[0].ns, profile.steps[1].ns);
  EXPECT_GE(profile.total_ns, profile.steps[0].ns + profile.steps[1].ns + profile.steps[2].ns);
}

}  // namespace
}  // namespace burin::runtime
