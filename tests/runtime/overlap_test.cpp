// Steps that begin before others are done: never one that waits for them, and with the same report of an index as on one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace burin::runtime {
namespace {

// What the kernel below does with one table, and what it saw.
struct Watch {
  std::vector<Step> steps;
  std::vector<bool> reports, spared;       // by step
  std::vector<std::vector<int>> done_by;   // by step and task: the call that ran it last. No atomics: who waits for it may read it
  int call = 0;
  std::atomic<int> early{0}, twice{0};
  std::atomic<std::uint64_t> begun{0};     // a bit per step
  std::atomic<int> waiting_for{-1};        // the step that the first task of step `waits` waits for
  int waits = -1;
};
Watch* watch = nullptr;

void run_watched(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus* status) {
  Watch& w = *watch;
  const std::int32_t step = *static_cast<const std::int32_t*>(buffers[0]);
  w.begun.fetch_or(std::uint64_t{1} << step);
  for (std::uint32_t s = 0; s < w.steps[step].after; ++s)
    for (const int call : w.done_by[s]) w.early += call != w.call && !w.spared[s];
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (step == w.waits && (w.begun.load() >> w.waiting_for & 1) == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  for (std::int64_t t = begin; t < end; ++t) {
    w.twice += w.done_by[step][t] == w.call;
    w.done_by[step][t] = w.call;
    if (w.reports[step] && t % 3 == 1) burin_report_index(status, t, 0, step, t);
    if ((step + t) % 7 == 0) std::this_thread::yield();
  }
}

Step step(std::int64_t tasks, std::uint32_t after, double cost_ns = 100) {
  Step s;
  s.entry = run_watched;
  s.num_args = 1;
  s.tasks = tasks;
  s.after = after;
  s.cost_ns = cost_ns;
  s.sites = {"step {index}, task {extent}"};
  return s;
}

/// Sets `watch`.
Executable watched(Watch& w) {
  StepTable table;
  table.kept_bytes = {0};
  for (std::uint32_t i = 0; i < w.steps.size(); ++i) {
    w.steps[i].first_arg = i;
    table.args.push_back({Storage::constant, i, 0});
    table.constants.emplace_back(4);
    std::memcpy(table.constants.back().data(), &i, 4);
    w.done_by.emplace_back(w.steps[i].tasks, -1);
    w.spared.push_back(!w.steps[i].unless.empty());
  }
  w.reports.resize(w.steps.size());
  table.steps = w.steps;
  watch = &w;
  return Executable(std::move(table));
}

/// The message of the error, "" when there is none.
std::string call(const Executable& executable, Watch& w, int threads, double threshold_ns = 0) {
  ++w.call;
  w.begun = 0;
  const KeptPlace given{nullptr, true};
  try {
    executable.run({}, {}, {.num_threads = threads, .threading_threshold_ns = threshold_ns, .kept = {&given, 1}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::int64_t pool_tasks() {
  std::int64_t tasks = 0;
  for (int worker = 0; worker < 8; ++worker) tasks += tasks_run_by_worker(worker);
  return tasks;
}

// The second step lasts until the third, which needs the first alone, has begun.
TEST(Overlap, AStepDoesNotWaitForWhatItDoesNotNeed) {
  Watch w;
  w.steps = {step(40, 0), step(1, 0), step(40, 1), step(5, 3)};
  w.waits = 1;
  w.waiting_for = 2;
  const Executable executable = watched(w);
  for (const int threads : {2, 8})
    for (int repeat = 0; repeat < 20; ++repeat) {
      EXPECT_EQ(call(executable, w, threads), "");
      EXPECT_EQ(w.begun, 0xfu);
      for (const auto& calls : w.done_by) EXPECT_EQ(std::count(calls.begin(), calls.end(), w.call), static_cast<std::ptrdiff_t>(calls.size()));
    }
  EXPECT_EQ(w.early, 0);
  EXPECT_EQ(w.twice, 0);
}

// Of three steps that may run at one time the first is the last to report.
TEST(Overlap, TheReportOfTheFirstStepIsKeptWhenItComesLast) {
  Watch w;
  w.steps = {step(2, 0), step(2, 0), step(100, 0), step(10, 1), step(10, 2)};
  w.reports = {true, true, true};
  w.waits = 0;
  w.waiting_for = 1;
  const Executable executable = watched(w);
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_EQ(call(executable, w, 3), "step 0, task 1");
    EXPECT_EQ(w.begun >> 3, 0u) << "a step began that waits for one with a report";
  }
  w.waits = -1;
  for (const int threads : {1, 2, 8}) EXPECT_EQ(call(executable, w, threads), "step 0, task 1");
  w.reports[0] = false;
  for (const int threads : {1, 2, 8}) EXPECT_EQ(call(executable, w, threads), "step 1, task 1");
  w.reports[1] = w.reports[2] = false;
  for (const int threads : {1, 2, 8}) EXPECT_EQ(call(executable, w, threads), "");
  EXPECT_EQ(w.early, 0);
}

// Neighbours that are too small to be shared are one piece of work.
TEST(Overlap, SmallStepsAreOnePiece) {
  Watch w;
  w.steps = {step(64, 0, 1e6), step(5, 1, 1), step(7, 2, 1), step(9, 2, 1), step(64, 4, 1e6), step(3, 5, 1)};
  const Executable executable = watched(w);
  reset_worker_counters();
  EXPECT_EQ(call(executable, w, 2, 1e5), "");
  EXPECT_EQ(pool_tasks(), 64 + 1 + 64 + 1);
  for (const auto& calls : w.done_by) EXPECT_EQ(std::count(calls.begin(), calls.end(), w.call), static_cast<std::ptrdiff_t>(calls.size()));
  EXPECT_EQ(w.early, 0);
  reset_worker_counters();
  EXPECT_EQ(call(executable, w, 2, 1e7), "");
  EXPECT_EQ(pool_tasks(), 0) << "nothing is worth a second thread";
}

// What three steps cost together is worth a second thread, what one of them costs is not.
TEST(Overlap, StepsThatMayRunBesideOneAnotherAreWorthHelpTogether) {
  Watch beside, behind;
  for (std::uint32_t i = 0; i < 6; ++i) {
    beside.steps.push_back(step(8, i < 3 ? 0 : 3, 15e3));
    behind.steps.push_back(step(8, i, 15e3));
  }
  for (Watch* w : {&beside, &behind}) {
    const Executable executable = watched(*w);
    reset_worker_counters();
    EXPECT_EQ(call(executable, *w, 2, -1), "");
    EXPECT_EQ(pool_tasks(), w == &beside ? 6 * 8 : 0);
    EXPECT_EQ(w->early, 0);
  }
}

// Two steps of one task each are worth a second thread when they do not wait for one another.
TEST(Overlap, StepsOfOneTaskRunBesideOneAnother) {
  Watch beside, behind;
  beside.steps = {step(1, 0, 1e6), step(1, 0, 1e6)};
  behind.steps = {step(1, 0, 1e6), step(1, 1, 1e6)};
  for (Watch* w : {&beside, &behind}) {
    const Executable executable = watched(*w);
    EXPECT_EQ(executable.held(8).threads, w == &beside ? 2 : 1);
    reset_worker_counters();
    EXPECT_EQ(call(executable, *w, 8, 1e5), "");
    EXPECT_EQ(pool_tasks(), w == &beside ? 2 : 0);
  }
}

class RandomTables : public testing::TestWithParam<const char*> {};

TEST_P(RandomTables, EachTaskRunsOnceAndBehindWhatItWaitsFor) {
  const std::string pool = GetParam();
  if (pool == "one_after_another")
    set_parallel_for([](int num_threads, std::int64_t tasks, const auto& f) {
      for (int worker = num_threads; worker-- > 0;)
        if (const std::int64_t begin = tasks * worker / num_threads, end = tasks * (worker + 1) / num_threads; begin < end) f(worker, begin, end);
    });
  set_waits_for_workers(pool == "all_workers");
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int tables = 0; tables < 60; ++tables) {
    Watch w;
    const std::uint32_t size = 1 + below(24);
    for (std::uint32_t i = 0, after = 0; i < size; ++i) {
      after += below(i - after + 1) / (1 + below(3));
      w.steps.push_back(step(below(5) == 0 ? below(2) : 1 + below(40), after, below(3) == 0 ? 1 : 1000));
      if (below(8) == 0) w.steps.back().unless = {0};
    }
    const Executable executable = watched(w);
    for (int calls = 0; calls < 20; ++calls) {
      std::uint32_t first = size;  // that reports
      for (std::uint32_t i = 0; i < size; ++i) {
        w.reports[i] = calls % 3 == 2 && below(6) == 0;
        if (w.reports[i] && w.steps[i].tasks > 1 && !w.spared[i]) first = std::min(first, i);
      }
      if (calls % 7 == 3) std::this_thread::sleep_for(std::chrono::microseconds(300));  // the workers sleep, and come late
      const std::string message = call(executable, w, 1 + calls % 9, calls % 2 == 0 ? 0 : 500);
      EXPECT_EQ(message, first == size ? "" : "step " + std::to_string(first) + ", task 1");
      for (std::uint32_t i = 0; i < size; ++i) {
        for (const int by : w.done_by[i]) ASSERT_TRUE(i > first || (by == w.call) == !w.spared[i]) << "step " << i << " of " << size;
        ASSERT_TRUE(w.steps[i].after <= first || (w.begun >> i & 1) == 0) << "step " << i << " began behind a report of step " << first;
      }
    }
    ASSERT_EQ(w.early, 0);
    ASSERT_EQ(w.twice, 0);
  }
  set_waits_for_workers(false);
  set_parallel_for({});
}

INSTANTIATE_TEST_SUITE_P(Overlap, RandomTables, testing::Values("workers", "all_workers", "one_after_another"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace burin::runtime
