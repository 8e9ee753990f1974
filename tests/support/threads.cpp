#include "tests/support/threads.h"

#include <gtest/gtest.h>

#include "runtime/thread_pool.h"
#include "tests/support/machine.h"

namespace burin::test {

using namespace ir;

namespace {

struct EveryWorkerDoesItsShare {
  EveryWorkerDoesItsShare() { runtime::set_waits_for_workers(true); }
  ~EveryWorkerDoesItsShare() { runtime::set_waits_for_workers(false); }
};

int workers_that_ran() {
  int count = 0;
  for (int worker = 0; worker < 8; ++worker) count += runtime::tasks_run_by_worker(worker) > 0;
  return count;
}

}  // namespace

std::vector<Literal> expect_same_for_any_threads(const Program& program, std::span<const Literal> inputs, const Target& target) {
  const EveryWorkerDoesItsShare share;
  const Machine machine(program, target);
  const std::vector<Literal> one = machine.run(inputs, 1);
  for (int threads : {2, 8}) {
    runtime::reset_worker_counters();
    const std::vector<Literal> many = machine.run(inputs, threads);
    EXPECT_GE(workers_that_ran(), 2) << "all tasks ran on one of " << threads << " threads";
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(many[i] == one[i]) << "result " << i << " with " << threads << " threads, " << to_string(target);
  }
  return one;
}

}  // namespace burin::test
