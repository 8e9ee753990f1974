// One pool per process. Workers spin while an executable runs and sleep outside; a second host thread that finds the pool busy
// runs its work alone; a call from inside a task runs inline.
#pragma once
#include <cstdint>
#include <functional>

namespace burin::runtime {

/// f(worker, begin, end) for disjoint ranges that cover 0..tasks-1; worker is in 0..num_threads-1 and no two calls with one
/// worker number overlap. Returns when all are done.
using ParallelFor = std::function<void(int num_threads, std::int64_t tasks,
                                       const std::function<void(int worker, std::int64_t begin, std::int64_t end)>& f)>;

/// BURIN_NUM_THREADS, else one per core that this process may run on.
int default_num_threads();
void set_default_num_threads(int n);
/// An application's own threads instead of the pool; an empty function restores the pool.
void set_parallel_for(ParallelFor parallel_for);

/// Keeps workers spinning for its lifetime (an executable's run). Nested and concurrent sessions are fine.
class PoolSession {
 public:
  explicit PoolSession(int num_threads);
  ~PoolSession();
  PoolSession(const PoolSession&) = delete;
  PoolSession& operator=(const PoolSession&) = delete;
  /// True when this session owns the pool: otherwise run() is serial.
  bool threaded() const { return owner_; }
  int num_threads() const { return num_threads_; }
  /// Runs tasks 0..tasks-1; f as in ParallelFor, called through a plain pointer.
  using RangeFn = void (*)(void* context, int worker, std::int64_t begin, std::int64_t end);
  void run(std::int64_t tasks, RangeFn f, void* context);

 private:
  int num_threads_ = 1;
  bool owner_ = false;
};

/// How many tasks each worker ran since the counters were reset: tests assert that several took part.
std::int64_t tasks_run_by_worker(int worker);
void reset_worker_counters();

}  // namespace burin::runtime
