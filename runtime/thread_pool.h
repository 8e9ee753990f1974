// One pool per process. Workers spin while an executable runs and sleep outside; a second host thread that finds the
// pool busy runs its work alone; a call from inside a task runs inline.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace burin::runtime {

/// f(worker, begin, end) for disjoint ranges that cover 0..tasks-1; worker is in 0..num_threads-1 and no two calls with
/// one worker number overlap. Returns when all are done.
using ParallelFor = std::function<void(int num_threads, std::int64_t tasks,
                                       const std::function<void(int worker, std::int64_t begin, std::int64_t end)>& f)>;

/// The number set last, else BURIN_NUM_THREADS, else one per core that this process may run on. Throws burin::Error
/// that names the variable and its value when it is not a number from 1 to 512.
int default_num_threads();
/// 0 goes back to BURIN_NUM_THREADS or the cores. Throws burin::Error for other numbers outside 1..512.
void set_default_num_threads(int n);
/// An application's own threads instead of the pool; an empty function restores the pool. Sessions open at that time
/// keep what they have. The function must serve concurrent calls when the application runs programs concurrently.
void set_parallel_for(ParallelFor parallel_for);

/// Wakes workers and keeps them spinning for its lifetime (an executable's run). Nested and concurrent sessions are
/// fine: a session inside a task, or beside one that owns the pool, is serial. Nobody ever waits for a worker that is
/// still waking up: the calling thread takes over its share.
class PoolSession {
 public:
  explicit PoolSession(int num_threads);
  ~PoolSession();
  PoolSession(const PoolSession&) = delete;
  PoolSession& operator=(const PoolSession&) = delete;
  /// True when this session has other threads: otherwise run() is serial.
  bool threaded() const { return num_threads_ > 1; }
  /// Bound of the worker numbers that f sees: 1 when the session is serial.
  int num_threads() const { return num_threads_; }
  /// Runs tasks 0..tasks-1; f as in ParallelFor, called through a plain pointer.
  using RangeFn = void (*)(void* context, int worker, std::int64_t begin, std::int64_t end);
  void run(std::int64_t tasks, RangeFn f, void* context);

  /// True when the other threads are the pool's workers, which run at the same time.
  bool has_workers() const { return threaded() && custom_ == nullptr; }
  /// Only then: f(context, 0) on this thread, and f(context, worker) once on each other thread that comes before that returns. Whatever f finds to do it does with
  /// those that are there. It returns how many tasks it ran. Returns when all calls have.
  using WorkerFn = std::int64_t (*)(void* context, int worker);
  void run(WorkerFn f, void* context);
  /// See set_waits_for_workers: all of them come, and each must do its share and no other.
  bool waits_for_workers() const;

 private:
  int num_threads_ = 1;
  std::shared_ptr<const ParallelFor> custom_;
};

/// True while this thread runs a task.
bool inside_task();
/// For the nth turn of a loop that waits for another thread: lets that have the core now and then.
void spin(int nth);
/// True when workers are awake, so that a session costs no wake-up: one ended in the last tenth of a millisecond.
bool pool_is_warm();

/// How many of the tasks of PoolSession::run each worker ran since the counters were reset: tests assert that
/// several took part. The calling thread is worker 0.
std::int64_t tasks_run_by_worker(int worker);
void reset_worker_counters();
/// For those tests: while on, every worker of a session does its own share and the others wait for it, so that all take part on
/// a busy machine too.
void set_waits_for_workers(bool on);

}  // namespace burin::runtime
