#include "runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "runtime/buffer.h"
#include "runtime/errors.h"
#include "runtime/float_environment.h"
#include "runtime/limits.h"
#include "runtime/profile.h"
#include "runtime/shares.h"
#include "runtime/status.h"
#include "runtime/thread_pool.h"
#include "runtime/timeline.h"

namespace burin::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Steps that do not wait for one another are worth the other threads' help above the first cost together; a run is worth waking them above the
// third. What one of them writes lies in the caches of those who wrote it, from where others are slow to get it: there help has to spare as much as the
// second. A step below the first cost is done before others would have come.
constexpr double step_threshold_ns = 5e3;
constexpr double spared_threshold_ns = 20e3;
constexpr double wake_threshold_ns = 40e3;
// Into how many pieces a step is cut at most: the unit in which threads share it.
constexpr std::int64_t max_units = 512;
// Arenas kept for the next calls: as many as calls usually run at one time.
constexpr std::size_t max_kept = 4;

// What the walk over the table needs of a step, without its texts.
struct Row {
  BurinKernel entry;
  std::uint32_t first_arg;
  std::int64_t tasks;
  std::int64_t units;
  double beside_ns = 0;  // the cost of the steps, this one included, among which none waits for another
  std::int64_t first_task(std::int64_t unit) const {
    return tasks / units * unit + std::min<std::int64_t>(unit, tasks % units);
  }
};

// What threads take as a whole, in the order of the table: a step whose units they share, or a chain of steps too small for that, which is one unit.
struct Item {
  std::uint32_t first, last;  // rows
  std::uint32_t after;        // so many items must be done before it
  std::int64_t units;
};

// An argument that changes from call to call: an input, an output, or a kept value.
struct Resolved {
  std::uint32_t arg;
  std::uint32_t index;
  std::int64_t offset;
};

// Of a call that is recorded.
struct Recorder {
  Timeline* timeline = nullptr;
  std::uint32_t program = 0, call = 0;
  void tasks(std::uint32_t step, std::int64_t count, Clock::time_point start) const {
    timeline->tasks(program + 1 + step, call, count, start, Clock::now());
  }
};

std::int64_t elapsed_ns(Clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
}

void check_pointers(const char* kind, const std::vector<std::int64_t>& bytes, const void* const* pointers,
                    std::size_t count) {
  if (count != bytes.size()) throw_wrong_count(kind, bytes.size(), count);
  for (std::size_t i = 0; i < count; ++i)
    if (pointers[i] == nullptr && bytes[i] != 0) throw_null_pointer(kind, i, bytes[i]);
}

void check_table(const StepTable& table) {
  for (std::size_t i = 0; i < table.steps.size(); ++i) {
    const Step& step = table.steps[i];
    BURIN_CHECK(step.entry != nullptr, step.label);
    BURIN_CHECK(step.tasks >= 0 && step.scratch_bytes >= 0, step.label);
    BURIN_CHECK(std::size_t{step.first_arg} + step.num_args <= table.args.size(), step.label);
    BURIN_CHECK(step.after <= i && (i == 0 || table.steps[i - 1].after <= step.after), step.label);
    for (const std::uint32_t kept : step.unless) BURIN_CHECK(kept < table.kept_bytes.size(), step.label);
  }
  for (const BufferRef& ref : table.args) {
    const std::size_t count = ref.storage == Storage::input      ? table.input_bytes.size()
                              : ref.storage == Storage::output   ? table.output_bytes.size()
                              : ref.storage == Storage::constant ? table.constants.size()
                              : ref.storage == Storage::kept     ? table.kept_bytes.size()
                                                                 : 1;
    BURIN_CHECK(ref.index < count);
    std::int64_t bytes = 0;
    switch (ref.storage) {
      case Storage::input:
        bytes = table.input_bytes[ref.index];
        break;
      case Storage::output:
        bytes = table.output_bytes[ref.index];
        break;
      case Storage::arena:
        bytes = table.arena_bytes;
        break;
      case Storage::constant:
        bytes = static_cast<std::int64_t>(table.constants[ref.index].size());
        break;
      case Storage::kept:
        bytes = table.kept_bytes[ref.index];
        break;
    }
    BURIN_CHECK(ref.offset >= 0 && ref.offset <= bytes);
  }
}

}  // namespace

struct Executable::Impl {
  // What one call owns while it runs.
  struct Workspace {
    std::shared_ptr<Buffer> memory;  // the arena, then one scratch block per thread
    int threads = 0;
    std::vector<void*> args;  // those into inputs and outputs are written by each call
    StatusSlot status;
    Recorder recorder;
    std::vector<bool> spared;  // by row, where a table has kept values: left out by this call

    // The table as threads share it, from that cost of a step on, and whether there is anything for a second one to do, of what cost.
    double threshold = -1;
    std::vector<Item> items;
    bool shareable = false;
    double shareable_ns = 0;
    // By item, of the call: how many units are done, then how many each thread's share has lost.
    std::vector<JobCount> counts;
    std::uint64_t call = 0;
    JobCount& done(std::size_t item) { return counts[item * static_cast<std::size_t>(threads + 1)]; }
    bool is_done(std::size_t item) { return done(item).of(call, std::memory_order_acquire) == items[item].units; }
  };

  // A call as its threads see it, or one step of it.
  struct Job {
    const Impl* impl;
    Workspace* workspace;
    std::uint32_t row = 0;
    int threads = 1;
    bool own_only = false;
  };

  explicit Impl(StepTable given) : table(std::move(given)) {
    check_table(table);
    kept.reserve(max_kept);
    for (const Step& step : table.steps) {
      scratch_stride = std::max(scratch_stride, round_up(step.scratch_bytes, alignment));
      rows.push_back({step.entry, step.first_arg, step.tasks, std::min(step.tasks, max_units)});
    }
    for (std::uint32_t first = 0, last; first < rows.size(); first = last) {
      double cost = 0;
      std::int64_t units = 0;
      for (last = first; last < rows.size() && (last == first || table.steps[last].after <= first); ++last) {
        cost += table.steps[last].cost_ns;
        units += rows[last].units;
      }
      for (std::uint32_t i = first; i < last; ++i) rows[i].beside_ns = cost;
      if (units > 1 && cost >= step_threshold_ns) ++num_shareable;
    }
    std::int64_t units = 0;
    for (std::uint32_t first = 0, i = 0; i < rows.size(); ++i) {
      for (units += rows[i].units; first < table.steps[i].after; ++first) units -= rows[first].units;
      most_units = std::max(most_units, units);
    }
    for (std::uint32_t i = 0; i < table.args.size(); ++i) {
      const BufferRef& ref = table.args[i];
      if (ref.storage == Storage::input) input_args.push_back({i, ref.index, ref.offset});
      if (ref.storage == Storage::output) output_args.push_back({i, ref.index, ref.offset});
      if (ref.storage == Storage::kept) kept_args.push_back({i, ref.index, ref.offset});
    }
  }

  int resolve_threads(int num_threads) const {
    if (num_threads < 0 || num_threads > max_threads)
      throw_bad_thread_count("num_threads", 0, std::to_string(num_threads));
    return num_threads > 0 ? num_threads : default_num_threads();
  }

  Held workspace_bytes(int threads) const {
    return {round_up(table.arena_bytes, alignment), threads * scratch_stride, threads};
  }

  /// No more threads than there are pieces that may run at one time.
  int useful_threads(int threads) const { return static_cast<int>(std::clamp<std::int64_t>(most_units, 1, threads)); }

  std::unique_ptr<Workspace> make_workspace(int threads) const {
    auto workspace = std::make_unique<Workspace>();
    workspace->memory = Buffer::allocate(workspace_bytes(threads).bytes());
    workspace->threads = threads;
    workspace->args.resize(table.args.size());
    if (!table.kept_bytes.empty()) workspace->spared.resize(rows.size());
    for (std::size_t i = 0; i < table.args.size(); ++i) {
      const BufferRef& ref = table.args[i];
      if (ref.storage == Storage::arena)
        workspace->args[i] = static_cast<std::byte*>(workspace->memory->data()) + ref.offset;
      if (ref.storage == Storage::constant)  // kernels read constants only
        workspace->args[i] = const_cast<std::byte*>(table.constants[ref.index].data()) + ref.offset;
    }
    return workspace;
  }

  std::unique_ptr<Workspace> acquire(int threads) {
    std::unique_ptr<Workspace> workspace;
    {
      std::lock_guard lock(mutex);
      for (std::size_t i = kept.size(); i-- > 0 && workspace == nullptr;)
        if (kept[i]->threads >= threads) {
          workspace = std::move(kept[i]);
          kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
        }
      // One with too little scratch makes room for its successor, so that a call never holds both.
      if (workspace == nullptr && !kept.empty()) kept.pop_back();
    }
    return workspace != nullptr ? std::move(workspace) : make_workspace(threads);
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    std::lock_guard lock(mutex);
    if (kept.size() < max_kept) kept.push_back(std::move(workspace));
  }

  template <bool recorded>
  void run_row(std::uint32_t index, Workspace& workspace, std::int64_t begin, std::int64_t end, int worker) const {
    if (!workspace.spared.empty() && workspace.spared[index]) return;
    const Row& row = rows[index];
    const Clock::time_point start = recorded ? Clock::now() : Clock::time_point();
    BurinStatus status{&workspace.status, index};
    std::byte* scratch = static_cast<std::byte*>(workspace.memory->data());
    if (scratch != nullptr) scratch += round_up(table.arena_bytes, alignment) + worker * scratch_stride;
    row.entry(workspace.args.data() + row.first_arg, begin, end, scratch, &status);
    if constexpr (recorded) workspace.recorder.tasks(index, end - begin, start);
  }

  template <bool recorded>
  void run_units(std::uint32_t index, Workspace& workspace, std::int64_t begin, std::int64_t end, int worker) const {
    run_row<recorded>(index, workspace, rows[index].first_task(begin), rows[index].first_task(end), worker);
  }

  // A RangeFn over the units of Job::row.
  template <bool recorded>
  static void run_range(void* context, int worker, std::int64_t begin, std::int64_t end) {
    FloatEnvironment environment;
    const Job& job = *static_cast<const Job*>(context);
    job.impl->run_units<recorded>(job.row, *job.workspace, begin, end, worker);
  }

  template <bool recorded>
  void run_chain(std::uint32_t first, std::uint32_t last, Workspace& workspace, int worker) const {
    for (std::uint32_t i = first; i < last && !workspace.status.any_before(i); ++i)
      if (rows[i].tasks > 0) run_row<recorded>(i, workspace, 0, rows[i].tasks, worker);
  }

  // A WorkerFn: all threads walk over the items in one order. Each waits where it has something to do that needs what others are still doing, and for
  // nothing else: what nobody has begun it does itself. A step may be left undone where one before it has reported an index; those before
  // that one are done in any case, so the report that is kept is the same as if one thread had run them all.
  template <bool recorded>
  static std::int64_t walk(void* context, int worker) {
    FloatEnvironment environment;
    const Job& job = *static_cast<const Job*>(context);
    Workspace& w = *job.workspace;
    std::int64_t all = 0;
    std::uint32_t done = 0;  // so many items are known to be
    for (std::uint32_t i = 0; i < w.items.size(); ++i) {
      const Item& item = w.items[i];
      Shares shares(&w.done(i) + 1, w.call, item.units, job.threads, worker, job.own_only);
      if (w.is_done(i) || !shares.any_left()) continue;
      for (int turn = 1; done < item.after && !w.status.any_before(item.first);) {
        if (w.is_done(done))
          ++done;
        else
          spin(turn++);
      }
      if (w.status.any_before(item.first)) break;
      const std::int64_t units = shares.take([&](std::int64_t begin, std::int64_t end) {
        if (item.units > 1)
          job.impl->run_units<recorded>(item.first, w, begin, end, worker);
        else
          job.impl->run_chain<recorded>(item.first, item.last, w, worker);
      });
      if (units > 0) w.done(i).advance(w.call, units, item.units, std::memory_order_release);
      all += units;
    }
    return all;
  }

  template <bool recorded>
  void run_shared(PoolSession& session, Workspace& w) const {
    ++w.call;
    for (std::size_t i = 0; i < w.items.size() && !w.spared.empty(); ++i)
      if (std::all_of(w.spared.begin() + w.items[i].first, w.spared.begin() + w.items[i].last, [](bool spared) { return spared; }))
        w.done(i).advance(w.call, w.items[i].units, w.items[i].units, std::memory_order_relaxed);
    Job job{.impl = this, .workspace = &w, .threads = session.num_threads(), .own_only = session.waits_for_workers()};
    session.run(walk<recorded>, &job);
  }

  void start_profile(Profile& profile) const {
    if (profile.steps.size() == table.steps.size()) return;
    profile = {};
    for (const Step& step : table.steps) profile.steps.push_back({step.label, 0, step.tasks, 1});
  }

  /// From what cost on steps are shared.
  double sharing_threshold(double wanted, int threads) const {
    if (wanted >= 0) return wanted;
    if (num_shareable <= 1 || threads <= 1) return step_threshold_ns;
    return spared_threshold_ns * threads / (threads - 1);
  }

  /// Whether others are to help with the step or what may run beside it.
  bool stands_alone(std::uint32_t i, double threshold) const {
    return rows[i].beside_ns >= threshold && table.steps[i].cost_ns >= std::min(threshold, step_threshold_ns);
  }

  // Small steps are run by whoever comes first, as many in a row as there are.
  void cut(double threshold, Workspace& w) const {
    if (w.threshold == threshold) return;
    w.threshold = threshold;
    w.items.clear();
    w.items.reserve(rows.size());
    w.shareable = false;
    w.shareable_ns = 0;
    bool joins = false;  // the last item
    for (std::uint32_t i = 0, covering = 0; i < rows.size(); ++i) {
      const bool alone = stands_alone(i, threshold);
      if (!alone && joins) {
        w.items.back().last = i + 1;
      } else {
        w.items.push_back({i, i + 1, 0, alone ? std::max<std::int64_t>(rows[i].units, 1) : 1});
      }
      joins = !alone;
      Item& item = w.items.back();
      const std::uint32_t after = std::min(table.steps[i].after, item.first);
      while (covering < w.items.size() && w.items[covering].first < after) ++covering;
      item.after = covering;
      if (!alone || (item.units == 1 && item.after + 1 == w.items.size())) continue;
      w.shareable = true;
      w.shareable_ns += table.steps[i].cost_ns;
    }
    const std::size_t counts = w.items.size() * static_cast<std::size_t>(w.threads + 1);
    if (w.shareable && w.counts.size() < counts) w.counts = std::vector<JobCount>(counts);
  }

  /// Whether a run is worth the pool at all.
  bool worth_waking(double wanted, const Workspace& w) const {
    return w.shareable && (wanted >= 0 || pool_is_warm() || w.shareable_ns >= wake_threshold_ns);
  }

  // Which steps a call does without, and where kept values lie; where the caller does not say, in `own`.
  void place_kept(std::span<const KeptPlace> kept, Workspace& workspace, std::vector<std::shared_ptr<Buffer>>& own) const {
    if (table.kept_bytes.empty()) return;
    if (kept.empty())
      for (const std::int64_t bytes : table.kept_bytes) own.push_back(Buffer::allocate(bytes));
    BURIN_CHECK(kept.empty() || kept.size() == table.kept_bytes.size(), "a call with a wrong number of kept values");
    for (const Resolved& ref : kept_args)
      workspace.args[ref.arg] = static_cast<std::byte*>(kept.empty() ? own[ref.index]->data() : kept[ref.index].data) + ref.offset;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<std::uint32_t>& unless = table.steps[i].unless;
      const auto given = [&](std::uint32_t k) { return !kept.empty() && kept[k].given; };
      workspace.spared[i] = !unless.empty() && std::all_of(unless.begin(), unless.end(), given);
    }
  }

  template <bool recorded>
  void run_steps(int threads, const RunOptions& options, Workspace& workspace) const {
    const double threshold = sharing_threshold(options.threading_threshold_ns, threads);
    if (threads > 1) cut(threshold, workspace);
    PoolSession session(threads > 1 && worth_waking(options.threading_threshold_ns, workspace) ? threads : 1);
    FloatEnvironment environment;
    if (options.profile == nullptr && !session.threaded()) return run_chain<recorded>(0, static_cast<std::uint32_t>(rows.size()), workspace, 0);
    if (options.profile == nullptr && session.has_workers()) return run_shared<recorded>(session, workspace);
    for (std::uint32_t i = 0; i < rows.size() && !workspace.status.any(); ++i) {
      if (!workspace.spared.empty() && workspace.spared[i]) continue;
      const Clock::time_point start = Clock::now();
      const bool shared = session.threaded() && rows[i].units > 1 && stands_alone(i, threshold);
      Job job{.impl = this, .workspace = &workspace, .row = i};
      if (shared)
        session.run(rows[i].units, run_range<recorded>, &job);
      else
        run_chain<recorded>(i, i + 1, workspace, 0);
      if (options.profile == nullptr) continue;
      StepTime& time = options.profile->steps[i];
      time.ns += elapsed_ns(start);
      time.threads = shared ? static_cast<int>(std::min<std::int64_t>(rows[i].units, session.num_threads())) : 1;
    }
  }

  /// Its number in the timeline, which learns its texts at the first call.
  std::uint32_t program_in(Timeline& timeline) {
    const std::uint64_t known = known_as.load(std::memory_order_relaxed);
    if (known >> 32 == timeline.serial()) return static_cast<std::uint32_t>(known);
    std::vector<Timeline::StepText> texts;
    for (const Step& step : table.steps) texts.push_back({step.label, step.kernel});
    const std::uint32_t program = timeline.add_program(table.name, texts);
    known_as.store(std::uint64_t{timeline.serial()} << 32 | program, std::memory_order_relaxed);
    return program;
  }

  void run(int threads, const RunOptions& options, Workspace& workspace, Timeline* timeline) {
    if (timeline == nullptr) return run_steps<false>(threads, options, workspace);
    workspace.recorder = {timeline, program_in(*timeline), timeline->next_call()};
    const Clock::time_point start = Clock::now();
    run_steps<true>(threads, options, workspace);
    timeline->run(workspace.recorder.program, workspace.recorder.call, start, Clock::now());
  }

  StepTable table;
  std::atomic<std::uint64_t> known_as{0};  // serial of a timeline : 32, number in it : 32
  std::vector<Row> rows;
  std::vector<Resolved> input_args, output_args, kept_args;
  std::int64_t scratch_stride = 0;
  std::int64_t most_units = 0;
  std::int64_t num_shareable = 0;  // how often steps that do not wait for one another are above the first threshold
  std::mutex mutex;
  std::vector<std::unique_ptr<Workspace>> kept;
};

Executable::Executable(StepTable table) : impl_(std::make_unique<Impl>(std::move(table))) {}
Executable::~Executable() = default;

void Executable::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     const RunOptions& options) const {
  Impl& impl = *impl_;
  check_pointers("inputs", impl.table.input_bytes, inputs.data(), inputs.size());
  check_pointers("outputs", impl.table.output_bytes, outputs.data(), outputs.size());
  const int threads = impl.useful_threads(impl.resolve_threads(options.num_threads));

  struct Lease {
    explicit Lease(Impl& from, int n) : impl(from), workspace(from.acquire(n)) {}
    ~Lease() { impl.give_back(std::move(workspace)); }
    Impl& impl;
    std::unique_ptr<Impl::Workspace> workspace;
  } lease(impl, threads);
  Impl::Workspace& workspace = *lease.workspace;
  workspace.status.clear();
  for (const Resolved& ref : impl.input_args)  // kernels write to an input only where the plan aliases it to an output
    workspace.args[ref.arg] = const_cast<std::byte*>(static_cast<const std::byte*>(inputs[ref.index])) + ref.offset;
  for (const Resolved& ref : impl.output_args)
    workspace.args[ref.arg] = static_cast<std::byte*>(outputs[ref.index]) + ref.offset;
  std::vector<std::shared_ptr<Buffer>> own;
  impl.place_kept(options.kept, workspace, own);

  if (Profile* profile = options.profile; profile != nullptr) {
    impl.start_profile(*profile);
    const Clock::time_point start = Clock::now();
    impl.run(threads, options, workspace, recording());
    profile->total_ns += elapsed_ns(start);
    ++profile->runs;
  } else {
    impl.run(threads, options, workspace, recording());
  }
  if (!workspace.status.any()) return;
  const IndexReport& report = workspace.status.first();
  const std::vector<std::string>& sites = impl.table.steps[report.step].sites;
  BURIN_CHECK(report.site >= 0 && static_cast<std::size_t>(report.site) < sites.size());
  throw_index_error(sites[static_cast<std::size_t>(report.site)], report.index, report.extent);
}

const StepTable& Executable::table() const { return impl_->table; }

Held Executable::held(int num_threads) const {
  return impl_->workspace_bytes(impl_->useful_threads(impl_->resolve_threads(num_threads)));
}

void Executable::release_arenas() const {
  std::lock_guard lock(impl_->mutex);
  impl_->kept.clear();
}

}  // namespace burin::runtime
