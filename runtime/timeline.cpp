#include "runtime/timeline.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace burin::runtime {
namespace {

std::uint32_t next_serial() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, as trace events have them.
std::string microseconds(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

}  // namespace

struct Timeline::Block {
  explicit Block(std::size_t n) : capacity(n), events(new Event[n]) {}
  const std::size_t capacity;
  std::unique_ptr<Event[]> events;
  std::atomic<std::size_t> size{0};
  std::atomic<Block*> next{nullptr};
};

struct Timeline::Track {
  ~Track() {
    for (Block* block = first.load(); block != nullptr;) delete std::exchange(block, block->next.load());
  }
  long thread = 0;
  int order = 0;  // from top to bottom
  std::string name;
  std::atomic<Block*> first{nullptr};
  // The writer's own.
  Block* block = nullptr;
  Event* last = nullptr;
};

Timeline::Timeline(std::int64_t limit, std::function<void(Timeline&)> on_full)
    : limit_(limit), serial_(next_serial()), origin_(Clock::now()), on_full_(std::move(on_full)), memory_(new Track) {}

Timeline::~Timeline() = default;

std::int64_t Timeline::ns(Clock::time_point time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin_).count();
}

Timeline::Track& Timeline::track() {
  struct Place {
    std::uint32_t serial;
    Track* track;
  };
  thread_local Place place{0, nullptr};
  if (place.serial == serial_) return *place.track;
  auto track = std::make_unique<Track>();
  track->thread = syscall(SYS_gettid);
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  const std::string_view worker = "burin-";  // what the pool calls its threads
  const std::lock_guard lock(mutex_);
  if (track->thread == getpid()) {
    track->name = "main";
  } else if (std::string_view(name).starts_with(worker)) {
    track->name = "worker " + std::string(name + worker.size());
    track->order = 10'000 + std::atoi(name + worker.size());
  } else {
    track->order = 1 + static_cast<int>(tracks_.size());
    track->name = fmt::format("thread {}", track->order);
  }
  place = {serial_, track.get()};
  tracks_.push_back(std::move(track));
  return *place.track;
}

void Timeline::add(Track& track, const Fixed& fixed, std::int64_t end_ns, std::int64_t count) {
  Block* block = track.block;
  if (block == nullptr || block->size.load(std::memory_order_relaxed) == block->capacity) {
    if (full()) return;
    const std::lock_guard lock(mutex_);
    // Threads that come for a moment take little.
    const std::int64_t n = std::min<std::int64_t>(block == nullptr ? 64 : 4096, limit_ - reserved_);
    if (n <= 0) return full_.store(true, std::memory_order_relaxed);
    reserved_ += n;
    auto* fresh = new Block(static_cast<std::size_t>(n));
    (block == nullptr ? track.first : block->next).store(fresh, std::memory_order_release);
    block = track.block = fresh;
  }
  const std::size_t place = block->size.load(std::memory_order_relaxed);
  track.last = &block->events[place];
  track.last->fixed = fixed;
  track.last->end_ns.store(end_ns, std::memory_order_relaxed);
  track.last->count.store(count, std::memory_order_relaxed);
  block->size.store(place + 1, std::memory_order_release);  // from here on json() may read it
}

std::uint32_t Timeline::text(std::string_view text) {
  const auto [at, fresh] = numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(&at->first);
  return at->second;
}

std::uint32_t Timeline::add_program(std::string_view name, std::span<const StepText> steps) {
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<std::uint32_t>(rows_.size());
  rows_.push_back({text(name), text("")});
  for (const StepText& step : steps) rows_.push_back({text(step.label), text(step.kernel)});
  return number;
}

void Timeline::span(std::string_view category, std::string_view name, std::string_view function,
                    Clock::time_point start, Clock::time_point end) {
  if (!full()) {
    Fixed fixed{Kind::span, 0, 0, 0, ns(start)};
    {
      const std::lock_guard lock(mutex_);
      fixed.name = text(name);
      fixed.detail = text(function);
      fixed.call = text(category);
    }
    add(track(), fixed, ns(end), 0);
  }
  tell_if_full();
}

void Timeline::tasks(std::uint32_t step, std::uint32_t call, std::int64_t count, Clock::time_point start,
                     Clock::time_point end) {
  if (full()) return;
  Track& mine = track();
  Event* last = mine.last;
  if (last != nullptr && last->fixed.kind == Kind::tasks && last->fixed.name == step && last->fixed.call == call) {
    last->end_ns.store(ns(end), std::memory_order_relaxed);
    last->count.store(last->count.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  } else {
    add(mine, {Kind::tasks, step, 0, call, ns(start)}, ns(end), count);
  }
}

void Timeline::run(std::uint32_t program, std::uint32_t call, Clock::time_point start, Clock::time_point end) {
  if (!full()) add(track(), {Kind::run, program, 0, call, ns(start)}, ns(end), 0);
  tell_if_full();
}

void Timeline::tell_if_full() {
  if (full() && on_full_ && !told_.exchange(true)) on_full_(*this);
}

void Timeline::allocated(std::int64_t bytes) {
  const std::lock_guard lock(memory_mutex_);
  held_ += bytes;
  const std::int64_t now = ns(Clock::now());
  if (!full()) add(*memory_, {Kind::memory, 0, 0, 0, now}, now, held_);
}

void Timeline::write(const Event& event, long thread, const std::vector<std::string>& quoted, std::string* out) const {
  const Fixed& fixed = event.fixed;
  const std::int64_t end = event.end_ns.load(std::memory_order_relaxed),
                     count = event.count.load(std::memory_order_relaxed);
  const auto complete = [&](const std::string& name, const std::string& category, const std::string& args) {
    fmt::format_to(
        std::back_inserter(*out),
        ",\n{{\"ph\":\"X\",\"name\":{},\"cat\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}", name,
        category, getpid(), thread, microseconds(fixed.start_ns), microseconds(end - fixed.start_ns), args);
  };
  switch (fixed.kind) {
    case Kind::span:
      return complete(quoted[fixed.name], quoted[fixed.call], "\"function\":" + quoted[fixed.detail]);
    case Kind::tasks:
      return complete(
          quoted[rows_[fixed.name].label], "\"kernel\"",
          fmt::format("\"kernel\":{},\"tasks\":{},\"call\":{}", quoted[rows_[fixed.name].kernel], count, fixed.call));
    case Kind::run:
      return complete(quoted[rows_[fixed.name].label], "\"run\"", fmt::format("\"call\":{}", fixed.call));
    case Kind::memory:
      fmt::format_to(std::back_inserter(*out),
                     ",\n{{\"ph\":\"C\",\"name\":\"memory\",\"pid\":{},\"ts\":{},\"args\":{{\"bytes\":{}}}}}", getpid(),
                     microseconds(fixed.start_ns), count);
  }
}

std::string Timeline::json() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const std::string* text : texts_) texts.push_back(json_text(*text));
  const auto metadata = [](const char* name, long thread, const std::string& args) {
    return fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{{}}}}}", name, getpid(), thread,
                       args);
  };
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" +
                    metadata("process_name", getpid(), "\"name\":" + json_text(program_invocation_short_name));
  const auto write_all = [&](const Track& track) {
    for (const Block* block = track.first.load(std::memory_order_acquire); block != nullptr;
         block = block->next.load(std::memory_order_acquire)) {
      const std::size_t size = block->size.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < size; ++i) write(block->events[i], track.thread, texts, &out);
    }
  };
  for (const std::unique_ptr<Track>& track : tracks_) {
    out += ",\n" + metadata("thread_name", track->thread, "\"name\":" + json_text(track->name));
    out += ",\n" + metadata("thread_sort_index", track->thread, fmt::format("\"sort_index\":{}", track->order));
    write_all(*track);
  }
  write_all(*memory_);
  return out + "\n]}\n";
}

}  // namespace burin::runtime
