// Recordings of hand-written kernels: what is in them, by thread, and what they cost.
#include "runtime/timeline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/executable.h"
#include "runtime/profile.h"
#include "runtime/thread_pool.h"
#include "tests/support/counting.h"

namespace burin::runtime {
namespace {

using Json = nlohmann::json;

/// Records for its life, which no run may outlast.
struct Recording {
  explicit Recording(std::int64_t limit = Timeline::default_limit, std::function<void(Timeline&)> on_full = {})
      : timeline(limit, std::move(on_full)) {
    record_on(&timeline);
  }
  ~Recording() { record_on(nullptr); }
  /// The events of one phase, "" for all.
  std::vector<Json> events(const std::string& phase) const {
    std::vector<Json> found;
    const Json all = Json::parse(timeline.json());
    for (const Json& event : all.at("traceEvents"))
      if (phase.empty() || event.at("ph") == phase) found.push_back(event);
    return found;
  }
  std::vector<Json> of_category(const std::string& category) const {
    std::vector<Json> found = events("X");
    std::erase_if(found, [&](const Json& event) { return event.at("cat") != category; });
    return found;
  }
  Timeline timeline;
};

// out[task] += 1, after a while that lets the others come
void count_slowly(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  for (std::int64_t i = begin; i < end; ++i) ++static_cast<std::int32_t*>(buffers[0])[i];
}
void count(void* const* buffers, std::int64_t begin, std::int64_t end, void*, BurinStatus*) {
  for (std::int64_t i = begin; i < end; ++i) ++static_cast<std::int32_t*>(buffers[0])[i];
}

/// `steps` steps, each of which adds 1 to each of `tasks` numbers.
StepTable counting_table(int steps, std::int64_t tasks, BurinKernel entry) {
  StepTable table;
  table.name = "counting";
  table.output_bytes = {4 * tasks};
  table.args = {{Storage::output, 0, 0}};
  for (int i = 0; i < steps; ++i) {
    Step step;
    step.entry = entry;
    step.num_args = 1;
    step.tasks = tasks;
    step.after = static_cast<std::uint32_t>(i);
    step.cost_ns = 1e6;
    step.label = "count_" + std::to_string(i) + " (a.cpp:" + std::to_string(i + 1) + ")";
    step.kernel = "count";
    table.steps.push_back(std::move(step));
  }
  return table;
}

std::vector<std::int32_t> run(const Executable& executable, std::int64_t tasks, const RunOptions& options) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(tasks));
  void* out = numbers.data();
  executable.run({}, {&out, 1}, options);
  return numbers;
}

TEST(Timeline, SaysWhichThreadRanWhat) {
  constexpr std::int64_t tasks = 515;
  const Executable executable(counting_table(3, tasks, count_slowly));
  set_waits_for_workers(true);
  Recording recording;
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(run(executable, tasks, {.num_threads = 8, .threading_threshold_ns = 0}),
              std::vector<std::int32_t>(tasks, 3));
  set_waits_for_workers(false);

  std::map<std::int64_t, std::string> names;
  for (const Json& event : recording.events("M"))
    if (event.at("name") == "thread_name") names[event.at("tid")] = event.at("args").at("name");
  EXPECT_EQ(names.size(), 8u);

  std::set<std::string> threads;
  std::set<std::string> seen;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> tasks_of;
  const std::vector<Json> kernels = recording.of_category("kernel");
  EXPECT_EQ(kernels.size(), 2u * 3 * 8);  // pieces that one thread takes of a step are one span
  for (const Json& event : kernels) {
    threads.insert(names.at(event.at("tid")));
    EXPECT_EQ(event.at("args").at("kernel"), "count");
    EXPECT_GT(event.at("dur").get<double>(), 100);  // microseconds
    EXPECT_LT(event.at("dur").get<double>(), 60e6);
    tasks_of[{event.at("args").at("call"), event.at("name")}] += event.at("args").at("tasks").get<std::int64_t>();
    EXPECT_TRUE(
        seen.insert(event.at("args").at("call").dump() + event.at("tid").dump() + event.at("name").dump()).second)
        << event;
  }
  EXPECT_EQ(threads, (std::set<std::string>{"main", "worker 1", "worker 2", "worker 3", "worker 4", "worker 5",
                                            "worker 6", "worker 7"}));
  ASSERT_EQ(tasks_of.size(), 6u);
  for (const auto& [what, n] : tasks_of) EXPECT_EQ(n, tasks) << what.second;
  EXPECT_EQ(tasks_of.begin()->first.second, "count_0 (a.cpp:1)");

  // A call surrounds its steps.
  const std::vector<Json> runs = recording.of_category("run");
  ASSERT_EQ(runs.size(), 2u);
  for (const Json& run : runs) {
    EXPECT_EQ(run.at("name"), "counting");
    const double start = run.at("ts"), end = start + run.at("dur").get<double>();
    for (const Json& event : kernels) {
      if (event.at("args").at("call") != run.at("args").at("call")) continue;
      EXPECT_GE(event.at("ts").get<double>(), start - 0.002);
      EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(), end + 0.002);
    }
  }
}

TEST(Timeline, HasProfiledAndEmptySteps) {
  const Executable executable(counting_table(2, 3, count)), empty(counting_table(2, 0, count));
  Recording recording;
  Profile profile;
  run(executable, 3, {.num_threads = 1, .profile = &profile});
  run(empty, 0, {.num_threads = 3, .threading_threshold_ns = 0});
  EXPECT_EQ(recording.of_category("kernel").size(), 2u);
  EXPECT_EQ(recording.of_category("run").size(), 2u);
}

TEST(Timeline, CountsTheBytesHeld) {
  std::shared_ptr<Buffer> before = Buffer::allocate(4096);
  StepTable table = counting_table(1, 5, count);
  table.arena_bytes = 1000;
  Recording recording;
  {
    const Executable executable(std::move(table));
    const auto out = Buffer::allocate(5 * 4);
    const auto nothing = Buffer::allocate(0);
    std::int32_t outside[3] = {};
    const auto borrowed = Buffer::borrow(outside, sizeof outside, nullptr);
    void* data = out->data();
    executable.run({}, {&data, 1}, {.num_threads = 1});
  }
  before.reset();  // was not counted when it came, and is not when it goes
  std::vector<std::int64_t> bytes;
  double at = 0;
  for (const Json& event : recording.events("C")) {
    EXPECT_EQ(event.at("name"), "memory");
    EXPECT_GE(event.at("ts").get<double>(), at);
    at = event.at("ts");
    bytes.push_back(event.at("args").at("bytes"));
  }
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{20, 20 + 1024, 1024, 0}));
}

TEST(Timeline, BuffersOfAnEarlierRecordingAreNotCountedInALaterOne) {
  std::shared_ptr<Buffer> buffer;
  {
    Recording first;
    buffer = Buffer::allocate(100);
    EXPECT_EQ(first.events("C").size(), 1u);
  }
  Recording second;
  buffer.reset();
  EXPECT_EQ(second.events("C").size(), 0u);
}

TEST(Timeline, ManyHostThreadsAddAtOnce) {
  constexpr int hosts = 6, calls = 50;
  constexpr std::int64_t tasks = 33;
  const Executable executable(counting_table(2, tasks, count));
  Recording recording;
  std::vector<std::thread> threads;
  for (int host = 0; host < hosts; ++host)
    threads.emplace_back([&] {
      for (int call = 0; call < calls; ++call) {
        const auto buffer = Buffer::allocate(8);
        EXPECT_EQ(run(executable, tasks, {.num_threads = 3, .threading_threshold_ns = 0}),
                  std::vector<std::int32_t>(tasks, 2));
        recording.timeline.span("compile", "a pass", "f", Timeline::Clock::now(), Timeline::Clock::now());
        if (call % 10 == 0) {
          EXPECT_TRUE(Json::accept(recording.timeline.json()));  // while others add
        }
      }
    });
  for (std::thread& thread : threads) thread.join();

  std::set<std::int64_t> call_numbers, tids;
  for (const Json& event : recording.of_category("run")) {
    call_numbers.insert(event.at("args").at("call").get<std::int64_t>());
    tids.insert(event.at("tid").get<std::int64_t>());
  }
  EXPECT_EQ(call_numbers.size(), std::size_t{hosts * calls});
  EXPECT_EQ(tids.size(), std::size_t{hosts});
  EXPECT_EQ(recording.of_category("compile").size(), std::size_t{hosts * calls});
  std::int64_t tasks_run = 0;
  for (const Json& event : recording.of_category("kernel"))
    tasks_run += event.at("args").at("tasks").get<std::int64_t>();
  EXPECT_EQ(tasks_run, 2 * tasks * hosts * calls);
  const std::vector<Json> memory = recording.events("C");
  ASSERT_FALSE(memory.empty());
  EXPECT_EQ(memory.back().at("args").at("bytes"), 0);
}

TEST(Timeline, EndsAtItsLimit) {
  const Executable executable(counting_table(3, 1, count));
  int told = 0;
  Recording recording(100, [&](Timeline& timeline) {
    ++told;
    EXPECT_TRUE(timeline.full());
    EXPECT_TRUE(Json::accept(timeline.json()));
    EXPECT_FALSE(inside_task());
  });
  for (int call = 0; call < 25; ++call) run(executable, 1, {.num_threads = 1});
  EXPECT_EQ(told, 0);
  EXPECT_EQ(recording.events("X").size(), 100u);
  for (int call = 0; call < 25; ++call) run(executable, 1, {.num_threads = 1});
  const auto buffer = Buffer::allocate(1);
  std::thread([&] { run(executable, 1, {.num_threads = 1}); }).join();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(recording.events("X").size() + recording.events("C").size(), 100u);
}

TEST(Timeline, AllocatesByTheBlock) {
  const Executable executable(counting_table(10, 1, count));
  Recording recording;
  std::int32_t number = 0;
  void* out = &number;
  executable.run({}, {&out, 1}, {.num_threads = 1});
  const std::int64_t before = test::calls_of_new();
  for (int call = 0; call < 1000; ++call) executable.run({}, {&out, 1}, {.num_threads = 1});
  EXPECT_LE(test::calls_of_new() - before, 2 * (11'000 / 4096 + 2));
  EXPECT_EQ(recording.of_category("kernel").size(), 10'010u);
}

TEST(Timeline, AnyTextIsValidJson) {
  Recording recording;
  const std::string odd = "a \"name\" \\ with\n\x01 and \xff, in \xc3\xa4";
  recording.timeline.span("compile", odd, odd, Timeline::Clock::now(), Timeline::Clock::now());
  const std::vector<Json> spans = recording.events("X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name"), "a \"name\" \\ with\n\x01 and \xef\xbf\xbd, in \xc3\xa4");
}

TEST(Timeline, NobodyRecordsUnlessAsked) {
  EXPECT_EQ(recording(), nullptr);
  Timeline timeline;
  EXPECT_EQ(record_on(&timeline), nullptr);
  EXPECT_EQ(recording(), &timeline);
  EXPECT_EQ(record_on(nullptr), &timeline);
  EXPECT_EQ(Json::parse(timeline.json()).at("traceEvents").size(), 1u);  // the process's name
}

}  // namespace
}  // namespace burin::runtime
