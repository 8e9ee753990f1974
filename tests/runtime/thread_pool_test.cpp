#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace burin::runtime {
namespace {

// Counts how often each task ran, and refuses two calls at a time with one worker number.
struct Tally {
  Tally(std::int64_t tasks, int workers)
      : runs(static_cast<std::size_t>(tasks)), busy(static_cast<std::size_t>(workers)) {}
  std::vector<std::atomic<int>> runs;
  std::vector<std::atomic<int>> busy;
  std::atomic<int> overlaps{0};

  static void count(void* context, int worker, std::int64_t begin, std::int64_t end) {
    Tally& tally = *static_cast<Tally*>(context);
    if (tally.busy.at(static_cast<std::size_t>(worker)).fetch_add(1) != 0) ++tally.overlaps;
    for (std::int64_t i = begin; i < end; ++i) ++tally.runs.at(static_cast<std::size_t>(i));
    tally.busy[static_cast<std::size_t>(worker)].fetch_sub(1);
  }
  bool each_once() const {
    for (const std::atomic<int>& n : runs)
      if (n != 1) return false;
    return overlaps == 0;
  }
};

class ThreadPool : public testing::TestWithParam<int> {};

TEST_P(ThreadPool, EveryTaskRunsOnce) {
  for (std::int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 1009}) {
    PoolSession session(GetParam());
    for (int repeat = 0; repeat < 20; ++repeat) {
      Tally tally(tasks, session.num_threads());
      session.run(tasks, Tally::count, &tally);
      EXPECT_TRUE(tally.each_once()) << tasks << " tasks, " << session.num_threads() << " threads";
    }
  }
}

TEST_P(ThreadPool, ManyShortSessions) {
  for (int repeat = 0; repeat < 300; ++repeat) {
    PoolSession session(GetParam());
    Tally tally(13, session.num_threads());
    session.run(13, Tally::count, &tally);
    ASSERT_TRUE(tally.each_once());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPool, testing::Values(1, 2, 3, 8));

void sleep_a_little(void*, int, std::int64_t begin, std::int64_t end) {
  std::this_thread::sleep_for(std::chrono::milliseconds(end - begin));
}

// What an instruction raises no other thread can handle: workers do not block it.
TEST(ThreadPoolSession, WorkersRaiseWhatTheirInstructionsDo) {
  static std::atomic<int> handled{0};
  handled = 0;
  struct sigaction action = {}, before = {};
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // past ud2
    ++handled;
  };
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGILL, &action, &before), 0);
  {
    reset_worker_counters();
    PoolSession session(2);
    const auto raise = [](void*, int worker, std::int64_t, std::int64_t) {
      if (worker == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      else
        asm volatile("ud2");
    };
    for (int run = 0; run < 500 && tasks_run_by_worker(1) == 0; ++run) session.run(16, raise, nullptr);
    EXPECT_GT(handled, 0);
  }
  sigaction(SIGILL, &before, nullptr);
}

TEST(ThreadPoolSession, SeveralWorkersTakePart) {
  reset_worker_counters();
  PoolSession session(4);
  ASSERT_TRUE(session.threaded());
  std::int64_t runs = 0, total = 0, helpers = 0;
  for (; runs < 100 && helpers < 2; ++runs) {  // on a busy machine it may be long before a worker gets a core
    session.run(64, sleep_a_little, nullptr);
    helpers = 0;
    for (int worker = 1; worker < 4; ++worker) helpers += tasks_run_by_worker(worker) > 0;
  }
  for (int worker = 0; worker < 4; ++worker) total += tasks_run_by_worker(worker);
  EXPECT_EQ(total, 64 * runs);
  EXPECT_GE(helpers, 2);
  EXPECT_EQ(tasks_run_by_worker(4), 0);
  EXPECT_EQ(tasks_run_by_worker(-1), 0);
}

TEST(ThreadPoolSession, WorkersWakeUpAfterSleeping) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (int waited = 0; pool_is_warm() && waited < 5000; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(pool_is_warm());
    reset_worker_counters();
    PoolSession session(2);
    // On a busy machine it may be long before the worker gets a core.
    for (int run = 0; run < 500 && tasks_run_by_worker(1) == 0; ++run) session.run(16, sleep_a_little, nullptr);
    EXPECT_GT(tasks_run_by_worker(1), 0);
  }
}

TEST(ThreadPoolSession, IsSerialInsideATask) {
  struct Seen {
    std::atomic<int> inner_tasks{0}, threaded{0}, outside{0};
    static void outer(void* context, int, std::int64_t begin, std::int64_t end) {
      Seen& seen = *static_cast<Seen*>(context);
      for (std::int64_t i = begin; i < end; ++i) {
        seen.outside += !inside_task();
        PoolSession session(8);
        seen.threaded += session.threaded();
        session.run(5, inner, context);
      }
    }
    static void inner(void* context, int worker, std::int64_t begin, std::int64_t end) {
      Seen& seen = *static_cast<Seen*>(context);
      seen.inner_tasks += static_cast<int>(end - begin);
      seen.outside += !inside_task() || worker != 0;
    }
  } seen;
  EXPECT_FALSE(inside_task());
  PoolSession session(4);
  session.run(9, Seen::outer, &seen);
  EXPECT_EQ(seen.inner_tasks, 45);
  EXPECT_EQ(seen.threaded, 0);
  EXPECT_EQ(seen.outside, 0);
  EXPECT_FALSE(inside_task());
}

TEST(ThreadPoolSession, TheSecondOfTwoIsSerial) {
  PoolSession first(2);
  ASSERT_TRUE(first.threaded());
  std::thread([] {
    PoolSession second(2);
    EXPECT_FALSE(second.threaded());
    EXPECT_EQ(second.num_threads(), 1);
    Tally tally(11, 1);
    second.run(11, Tally::count, &tally);
    EXPECT_TRUE(tally.each_once());
  }).join();
  PoolSession nested(2);
  EXPECT_FALSE(nested.threaded());
  Tally tally(11, 2);
  first.run(11, Tally::count, &tally);
  EXPECT_TRUE(tally.each_once());
}

TEST(ThreadPoolSession, HostThreadsAtOnce) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host)
    hosts.emplace_back([&wrong, host] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        PoolSession session(3);
        Tally tally(17 + host, session.num_threads());
        session.run(17 + host, Tally::count, &tally);
        wrong += !tally.each_once();
      }
    });
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPoolSession, AnApplicationsOwnThreads) {
  static std::atomic<int> calls;
  calls = 0;
  set_parallel_for([](int num_threads, std::int64_t tasks, const auto& f) {
    ++calls;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < num_threads; ++worker)
      threads.emplace_back([=, &f] {
        const std::int64_t begin = tasks * worker / num_threads, end = tasks * (worker + 1) / num_threads;
        if (begin < end) f(worker, begin, end);
      });
    for (std::thread& thread : threads) thread.join();
  });
  {
    PoolSession session(3);
    EXPECT_TRUE(session.threaded());
    Tally tally(10, 3);
    session.run(10, Tally::count, &tally);
    EXPECT_TRUE(tally.each_once());
    EXPECT_EQ(calls, 1);
  }
  set_parallel_for({});
  PoolSession session(3);
  Tally tally(10, 3);
  session.run(10, Tally::count, &tally);
  EXPECT_TRUE(tally.each_once());
  EXPECT_EQ(calls, 1);
}

TEST(ThreadCount, CanBeChosenAndGivenBack) {
  const int before = default_num_threads();
  EXPECT_GE(before, 1);
  set_default_num_threads(3);
  EXPECT_EQ(default_num_threads(), 3);
  set_default_num_threads(0);
  EXPECT_EQ(default_num_threads(), before);
  for (int n : {-1, 513}) {
    try {
      set_default_num_threads(n);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "num_threads: expected a number of threads from 0 to 512, found '" + std::to_string(n) + "'");
    }
  }
}

// Each value in a fresh process: the variable is read once.
[[noreturn]] void print_default_with(const char* value) {
  setenv("BURIN_NUM_THREADS", value, 1);
  try {
    std::fprintf(stderr, "threads: %d\n", default_num_threads());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::exit(0);
}

TEST(ThreadCountDeathTest, ComesFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(print_default_with("5"), testing::ExitedWithCode(0), "threads: 5");
  EXPECT_EXIT(print_default_with(""), testing::ExitedWithCode(0), "threads: [1-9]");
  for (const char* wrong : {"0", "513", "4 ", "99999999999999999999"})
    EXPECT_EXIT(print_default_with(wrong), testing::ExitedWithCode(0),
                std::string("BURIN_NUM_THREADS: expected a number of threads from 1 to 512, found '") + wrong + "'");
}

[[noreturn]] void exit_with_awake_workers() {
  static PoolSession* open = new PoolSession(4);
  open->run(64, sleep_a_little, nullptr);
  std::exit(0);
}

TEST(ThreadPoolDeathTest, TheProcessEndsCleanly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_with_awake_workers(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace burin::runtime
