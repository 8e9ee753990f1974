#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "runtime/errors.h"
#include "runtime/limits.h"
#include "runtime/shares.h"

namespace burin::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// How long a worker without work keeps its core after the last session.
constexpr std::chrono::microseconds linger{100};
// Pauses between two looks at the clock.
constexpr int patience = 64;

thread_local bool in_task = false;

int cores_of_this_process() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, max_threads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads);
}

struct alignas(64) Counter {
  std::atomic<std::int64_t> value{0};
};
std::array<Counter, max_threads> tasks_run;

// `f` returns how many tasks it ran.
template <class F>
void call(int worker, F&& f) {
  const bool outer = std::exchange(in_task, true);
  const std::int64_t tasks = f();
  in_task = outer;
  tasks_run[worker].value.fetch_add(tasks, std::memory_order_relaxed);
}

struct alignas(64) Sleeper {
  std::atomic<int> asleep{0};
};

// The pool. One session owns it at a time (busy_). A job is announced by opening the gate: one word that holds the
// job's number, how many workers may enter, and how many are inside. The owner closes the gate when its own part returns and
// waits for those inside, never for those that have not come.
class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // never destroyed: detached workers may look at it until the process ends
    return *pool;
  }

  bool acquire() { return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire); }

  /// Makes `workers` workers awake, as many as the system grants. Only the owner calls it.
  void open(int workers) {
    while (num_workers_ < workers && start_worker()) {
    }
    workers = std::min(workers, num_workers_);
    wanted_.store(workers, std::memory_order_seq_cst);
    for (int i = 0; i < workers; ++i) {
      if (sleepers_[i].asleep.load(std::memory_order_seq_cst) == 0) continue;
      sleepers_[i].asleep.store(0, std::memory_order_seq_cst);
      sleepers_[i].asleep.notify_one();
    }
  }

  void close() {
    wanted_.store(0, std::memory_order_relaxed);
    busy_.store(false, std::memory_order_release);
  }

  /// f on this thread and on each of so many workers that comes while it runs here; where the session waits for workers, on all of them.
  void run(int workers, PoolSession::WorkerFn f, void* context) {
    f_ = f;
    context_ = context;
    const std::uint64_t job = (gate_.load(std::memory_order_relaxed) >> 32) + 1;
    all_come_ = waits_for(workers);
    left_.store(all_come_ ? workers : 0, std::memory_order_relaxed);
    gate_.store(job << 32 | static_cast<std::uint64_t>(workers) << 16, std::memory_order_release);
    work(0);
    while (left_.load(std::memory_order_acquire) > 0) sched_yield();
    gate_.fetch_and(~limit_bits, std::memory_order_relaxed);
    for (int i = 1; (gate_.load(std::memory_order_acquire) & inside_bits) != 0; ++i) spin(i);  // the worker inside may wait for this core
  }

  /// The same for tasks, which are shared out.
  void run(int num_threads, std::int64_t tasks, PoolSession::RangeFn f, void* context) {
    struct Job {
      PoolSession::RangeFn f;
      void* context;
      JobCount* taken;
      std::uint64_t number;
      std::int64_t tasks;
      int num_threads;
      bool own_only;
    };
    const int workers = static_cast<int>(std::min<std::int64_t>(num_threads - 1, tasks - 1));
    Job job{f, context, taken_.data(), ++num_shared_, tasks, num_threads, waits_for(workers)};
    run(workers, [](void* given, int worker) {
      const Job& j = *static_cast<const Job*>(given);
      return Shares(j.taken, j.number, j.tasks, j.num_threads, worker, j.own_only)
          .take([&](std::int64_t begin, std::int64_t end) { j.f(j.context, worker, begin, end); });
    }, &job);
  }

  void wait_for_workers(bool on) { waits_.store(on, std::memory_order_relaxed); }
  bool waits_for(int workers) const { return waits_.load(std::memory_order_relaxed) && workers <= num_workers_; }
  bool warm() const { return awake_.load(std::memory_order_relaxed) > 0; }

 private:
  static constexpr std::uint64_t limit_bits = 0xffff0000u, inside_bits = 0xffffu;

  void work(int worker) {
    call(worker, [&] { return f_(context_, worker); });
  }

  bool start_worker() {
    // A host's signal handlers run on the host's threads, but for what an instruction of the worker raises: blocked, that would end
    // the process without the handler.
    sigset_t sent, before;
    sigfillset(&sent);
    for (int raised : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&sent, raised);
    pthread_sigmask(SIG_SETMASK, &sent, &before);
    bool started = true;
    try {
      awake_.fetch_add(1, std::memory_order_relaxed);
      std::thread([this, index = num_workers_] { serve(index); }).detach();
      ++num_workers_;
    } catch (const std::system_error&) {
      awake_.fetch_sub(1, std::memory_order_relaxed);
      started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }

  bool wanted(int index) const { return wanted_.load(std::memory_order_seq_cst) > index; }

  void serve(int index) {
    pthread_setname_np(pthread_self(), ("burin-" + std::to_string(index + 1)).c_str());
    std::uint64_t last_job = 0;
    Clock::time_point idle_since = Clock::now();
    for (int spins = 1;; ++spins) {
      std::uint64_t gate = gate_.load(std::memory_order_acquire);
      if (static_cast<int>((gate & limit_bits) >> 16) > index && gate >> 32 != last_job) {
        if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed))
          continue;
        last_job = gate >> 32;
        work(index + 1);
        if (all_come_) left_.fetch_sub(1, std::memory_order_release);
        gate_.fetch_sub(1, std::memory_order_release);
        spins = 0;
        continue;
      }
      spin(1);
      if (spins % patience != 0) continue;
      if (spins >= patience * 32) sched_yield();  // a long serial stretch: let others have the core if they want it
      const Clock::time_point now = Clock::now();
      if (wanted(index)) {
        idle_since = now;
      } else if (now - idle_since > linger) {
        sleep(index);
        idle_since = Clock::now();
        spins = 0;
      }
    }
  }

  // Either the worker sees that it is wanted, or open() sees that it sleeps: both sides write before they read.
  void sleep(int index) {
    std::atomic<int>& asleep = sleepers_[index].asleep;
    asleep.store(1, std::memory_order_seq_cst);
    awake_.fetch_sub(1, std::memory_order_relaxed);
    if (wanted(index))
      asleep.store(0, std::memory_order_relaxed);
    else
      asleep.wait(1, std::memory_order_seq_cst);
    awake_.fetch_add(1, std::memory_order_relaxed);
  }

  alignas(64) std::atomic<std::uint64_t> gate_{0};  // job number : 32, limit : 16, inside : 16
  alignas(64) std::atomic<int> wanted_{0};          // workers that the open session keeps awake
  std::atomic<int> awake_{0};
  std::atomic<bool> waits_{false};
  alignas(64) std::atomic<bool> busy_{false};
  int num_workers_ = 0;
  // The current job: written by the owner while the gate is closed and nobody is inside.
  PoolSession::WorkerFn f_ = nullptr;
  void* context_ = nullptr;
  bool all_come_ = false;     // it does not end before all workers have done their part
  std::atomic<int> left_{0};  // then, how many have not
  std::uint64_t num_shared_ = 0;
  std::array<JobCount, max_threads> taken_;  // by the jobs that share out tasks
  std::array<Sleeper, max_threads> sleepers_;
};

struct Custom {
  std::mutex mutex;
  std::shared_ptr<const ParallelFor> function;
  std::atomic<bool> present{false};
};

Custom& custom() {
  static Custom* instance = new Custom;
  return *instance;
}

std::atomic<int> chosen_num_threads{0};

}  // namespace

int default_num_threads() {
  if (const int chosen = chosen_num_threads.load(std::memory_order_relaxed); chosen > 0) return chosen;
  // An exception leaves the static uninitialised: a wrong variable is reported by every call.
  static const int from_environment = [] {
    const char* text = std::getenv("BURIN_NUM_THREADS");
    if (text == nullptr || *text == '\0') return cores_of_this_process();
    int n = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, n);
    if (error != std::errc() || stop != end || n < 1 || n > max_threads)
      throw_bad_thread_count("BURIN_NUM_THREADS", 1, text);
    return n;
  }();
  return from_environment;
}

void set_default_num_threads(int n) {
  if (n < 0 || n > max_threads) throw_bad_thread_count("num_threads", 0, std::to_string(n));
  chosen_num_threads.store(n, std::memory_order_relaxed);
}

void set_parallel_for(ParallelFor parallel_for) {
  Custom& c = custom();
  std::lock_guard lock(c.mutex);
  c.function = parallel_for ? std::make_shared<const ParallelFor>(std::move(parallel_for)) : nullptr;
  c.present.store(c.function != nullptr, std::memory_order_release);
}

PoolSession::PoolSession(int num_threads) {
  if (num_threads <= 1 || in_task) return;
  num_threads = std::min(num_threads, max_threads);
  if (custom().present.load(std::memory_order_acquire)) {
    std::lock_guard lock(custom().mutex);
    custom_ = custom().function;
  }
  if (custom_ != nullptr) {
    num_threads_ = num_threads;
  } else if (Pool::instance().acquire()) {
    num_threads_ = num_threads;
    Pool::instance().open(num_threads - 1);
  }
}

PoolSession::~PoolSession() {
  if (has_workers()) Pool::instance().close();
}

void PoolSession::run(std::int64_t tasks, RangeFn f, void* context) {
  if (tasks <= 0) return;
  const auto range = [&](int worker, std::int64_t begin, std::int64_t end) {
    call(worker, [&] {
      f(context, worker, begin, end);
      return end - begin;
    });
  };
  if (!threaded() || tasks == 1) {
    range(0, 0, tasks);
  } else if (custom_ != nullptr) {
    (*custom_)(num_threads_, tasks, std::cref(range));
  } else {
    Pool::instance().run(num_threads_, tasks, f, context);
  }
}

void PoolSession::run(WorkerFn f, void* context) {
  BURIN_CHECK(has_workers());
  Pool::instance().run(num_threads_ - 1, f, context);
}

bool PoolSession::waits_for_workers() const { return has_workers() && Pool::instance().waits_for(num_threads_ - 1); }

bool inside_task() { return in_task; }

void spin(int nth) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
  if (nth % 512 == 0) sched_yield();
}

bool pool_is_warm() { return Pool::instance().warm(); }

std::int64_t tasks_run_by_worker(int worker) {
  return worker >= 0 && worker < max_threads ? tasks_run[worker].value.load(std::memory_order_relaxed) : 0;
}

void reset_worker_counters() {
  for (Counter& counter : tasks_run) counter.value.store(0, std::memory_order_relaxed);
}

void set_waits_for_workers(bool on) { Pool::instance().wait_for_workers(on); }

}  // namespace burin::runtime
