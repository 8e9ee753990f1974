// Generated code runs with rounding to nearest and denormals kept, whatever the host thread has set.
#include "runtime/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/executable.h"
#include "runtime/thread_pool.h"

namespace burin::runtime {
namespace {

// out[task]: 1 when 1 + 2^-53 rounds to 1, 2 more when a denormal survives
void look_at_mode(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  volatile double one = 1, half_ulp = 0x1p-53, small = 0x1p-1060, two = 2;
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  for (std::int64_t i = begin; i < end; ++i)
    static_cast<int*>(buffers[0])[i] = (one + half_ulp == one && -one - half_ulp == -one) + 2 * (small / two > 0);
}

std::vector<int> modes_seen(int threads) {
  StepTable table;
  table.output_bytes = {4 * 64};
  table.args = {{Storage::output, 0, 0}};
  table.steps.resize(1);
  table.steps[0].entry = look_at_mode;
  table.steps[0].num_args = 1;
  table.steps[0].tasks = 64;
  const Executable executable(std::move(table));
  std::vector<int> seen(64);
  std::vector<void*> outputs{seen.data()};
  executable.run({}, outputs, {.num_threads = threads, .threading_threshold_ns = 0});
  return seen;
}

TEST(FloatEnvironment, IsSetForTasksAndRestored) {
  for (int threads : {1, 2}) {
    std::feclearexcept(FE_ALL_EXCEPT);
    std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
    const unsigned flush = 0x8040;  // FTZ and DAZ
    _mm_setcsr(_mm_getcsr() | flush);
    const unsigned before = _mm_getcsr();
#endif
    const std::vector<int> seen = modes_seen(threads);
#if defined(__SSE2__)
    EXPECT_EQ(_mm_getcsr(), before);
    _mm_setcsr(before & ~flush);
#endif
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(seen, std::vector<int>(64, 3));
  }
}

TEST(FloatEnvironment, IsSetForWorkersStartedByAThreadWithAnother) {
  // Threads inherit the mode of the one that starts them.
  reset_worker_counters();
  int workers = 0;
  for (int runs = 0; runs < 100 && workers < 2; ++runs) {
    std::fesetround(FE_DOWNWARD);
    const std::vector<int> seen = modes_seen(17);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(seen, std::vector<int>(64, 3));
    workers = 0;
    for (int worker = 0; worker < 17; ++worker) workers += tasks_run_by_worker(worker) > 0;
  }
  EXPECT_GE(workers, 2);
}

}  // namespace
}  // namespace burin::runtime
