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
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/errors.h"
#include "runtime/limits.h"

namespace burin::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// How long a worker without work keeps its core after the last session.
constexpr std::chrono::microseconds linger{100};
// Pauses between two looks at the clock or two yields.
constexpr int patience = 64;
// Each worker's share is taken in this many pieces, so that others can help a worker that was interrupted.
constexpr std::int64_t pieces_per_worker = 8;

thread_local bool in_task = false;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

int cores_of_this_process() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, max_threads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads);
}

struct alignas(64) Counter {
  std::atomic<std::int64_t> value{0};
};
std::array<Counter, max_threads> tasks_run;

void call(PoolSession::RangeFn f, void* context, int worker, std::int64_t begin, std::int64_t end) {
  const bool outer = std::exchange(in_task, true);
  f(context, worker, begin, end);
  in_task = outer;
  tasks_run[worker].value.fetch_add(end - begin, std::memory_order_relaxed);
}

// A worker's share of the tasks; whoever is done with his own takes from the others.
struct alignas(64) Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
};

struct alignas(64) Sleeper {
  std::atomic<int> asleep{0};
};

// The pool. One session owns it at a time (busy_). A job is announced by opening the gate: one word that holds the
// job's number, how many workers may enter, and how many are inside. The owner closes the gate when no task is left and
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

  void run(int num_threads, std::int64_t tasks, PoolSession::RangeFn f, void* context) {
    f_ = f;
    context_ = context;
    num_threads_ = num_threads;
    piece_ = std::max<std::int64_t>(1, tasks / (num_threads * pieces_per_worker));
    for (int i = 0; i < num_threads; ++i) {
      shares_[i].next.store(tasks / num_threads * i + std::min<std::int64_t>(i, tasks % num_threads),
                            std::memory_order_relaxed);
      shares_[i].end = tasks / num_threads * (i + 1) + std::min<std::int64_t>(i + 1, tasks % num_threads);
    }
    const std::uint64_t job = (gate_.load(std::memory_order_relaxed) >> 32) + 1;
    const std::uint64_t limit = static_cast<std::uint64_t>(std::min<std::int64_t>(num_threads - 1, tasks - 1));
    each_his_own_ = waits_.load(std::memory_order_relaxed) && static_cast<int>(limit) <= num_workers_;
    left_.store(each_his_own_ ? static_cast<int>(limit) : 0, std::memory_order_relaxed);
    gate_.store(job << 32 | limit << 16, std::memory_order_release);
    work(0);
    while (left_.load(std::memory_order_acquire) > 0) sched_yield();
    gate_.fetch_and(~limit_bits, std::memory_order_relaxed);
    for (int i = 1; (gate_.load(std::memory_order_acquire) & inside_bits) != 0; ++i) {
      pause();
      if (i % (patience * 8) == 0) sched_yield();  // the worker inside may wait for this core
    }
  }

  void wait_for_workers(bool on) { waits_.store(on, std::memory_order_relaxed); }
  bool warm() const { return awake_.load(std::memory_order_relaxed) > 0; }

 private:
  static constexpr std::uint64_t limit_bits = 0xffff0000u, inside_bits = 0xffffu;

  void work(int worker) {
    const int shares = each_his_own_ ? 1 : num_threads_;
    for (int i = 0; i < shares; ++i) {
      Share& share = shares_[worker + i < num_threads_ ? worker + i : worker + i - num_threads_];
      // Looking before taking keeps finished shares from being written by everybody.
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const std::int64_t begin = share.next.fetch_add(piece_, std::memory_order_relaxed);
        if (begin < share.end) call(f_, context_, worker, begin, std::min(begin + piece_, share.end));
      }
    }
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
        if (each_his_own_) left_.fetch_sub(1, std::memory_order_release);
        gate_.fetch_sub(1, std::memory_order_release);
        spins = 0;
        continue;
      }
      pause();
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
  PoolSession::RangeFn f_ = nullptr;
  void* context_ = nullptr;
  int num_threads_ = 1;
  std::int64_t piece_ = 1;
  bool each_his_own_ = false;  // nobody takes from another's share: all workers must come
  std::atomic<int> left_{0};   // then, how many have not done theirs
  std::array<Share, max_threads> shares_;
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
  if (threaded() && custom_ == nullptr) Pool::instance().close();
}

void PoolSession::run(std::int64_t tasks, RangeFn f, void* context) {
  if (tasks <= 0) return;
  if (!threaded() || tasks == 1) {
    call(f, context, 0, 0, tasks);
  } else if (custom_ != nullptr) {
    struct Job {
      RangeFn f;
      void* context;
    } job{f, context};
    (*custom_)(num_threads_, tasks, [&job](int worker, std::int64_t begin, std::int64_t end) {
      call(job.f, job.context, worker, begin, end);
    });
  } else {
    Pool::instance().run(num_threads_, tasks, f, context);
  }
}

bool inside_task() { return in_task; }

bool pool_is_warm() { return Pool::instance().warm(); }

std::int64_t tasks_run_by_worker(int worker) {
  return worker >= 0 && worker < max_threads ? tasks_run[worker].value.load(std::memory_order_relaxed) : 0;
}

void reset_worker_counters() {
  for (Counter& counter : tasks_run) counter.value.store(0, std::memory_order_relaxed);
}

void set_waits_for_workers(bool on) { Pool::instance().wait_for_workers(on); }

}  // namespace burin::runtime
