// What happened when: spans by thread and the bytes held, as trace events for Perfetto and chrome://tracing. While
// nobody records it costs a look at one pointer per call and per allocation.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace burin::runtime {

/// A recording. Any thread may add to it at any time; a thread writes into blocks of its own, without a lock.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  /// At about 200 bytes of text each.
  static constexpr std::int64_t default_limit = 1'000'000;

  /// Keeps at most `limit` events, 48 bytes each. When they are used up, `on_full` is called once, by the thread that
  /// ends a run or a span: not from inside a kernel.
  explicit Timeline(std::int64_t limit = default_limit, std::function<void(Timeline&)> on_full = {});
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// A span of the calling thread. `category`: what viewers filter by; `function`: an argument of the event, "" for
  /// none.
  void span(std::string_view category, std::string_view name, std::string_view function, Clock::time_point start,
            Clock::time_point end);

  // ---- what executables add ----
  struct StepText {
    std::string_view label, kernel;
  };
  /// Keeps the texts of a program; a number that stands for it. Those of its steps follow.
  std::uint32_t add_program(std::string_view name, std::span<const StepText> steps);
  /// Differs from call to call.
  std::uint32_t next_call() { return next_call_.fetch_add(1, std::memory_order_relaxed); }
  /// Some tasks of a step, run by the calling thread. Pieces of one step and call that follow one another are one span.
  void tasks(std::uint32_t step, std::uint32_t call, std::int64_t count, Clock::time_point start,
             Clock::time_point end);
  /// A whole call.
  void run(std::uint32_t program, std::uint32_t call, Clock::time_point start, Clock::time_point end);
  /// Calls on_full when it is time.
  void tell_if_full();

  // ---- what buffers add ----
  void allocated(std::int64_t bytes);
  void released(std::int64_t bytes) { allocated(-bytes); }

  bool full() const { return full_.load(std::memory_order_relaxed); }
  std::int64_t limit() const { return limit_; }
  /// {"traceEvents": [...]} of what is recorded so far.
  std::string json() const;

  /// Tells timelines of a process apart, also those that are gone.
  std::uint32_t serial() const { return serial_; }

 private:
  enum class Kind : std::uint32_t { span, tasks, run, memory };
  struct Fixed {
    Kind kind;
    std::uint32_t name, detail;  // of a span: texts, of the name and the function; else a number of add_program
    std::uint32_t call;          // of a span: the text of its category
    std::int64_t start_ns;
  };
  struct Event {
    Fixed fixed;
    // Of tasks: both still grow while json() reads. Of memory: `count` is the bytes held.
    std::atomic<std::int64_t> end_ns, count;
  };
  struct Block;
  struct Track;

  Track& track();
  /// Drops it when the limit is reached.
  void add(Track& track, const Fixed& fixed, std::int64_t end_ns, std::int64_t count);
  std::uint32_t text(std::string_view text);
  std::int64_t ns(Clock::time_point time) const;
  void write(const Event& event, long thread, const std::vector<std::string>& quoted, std::string* out) const;

  const std::int64_t limit_;
  const std::uint32_t serial_;
  const Clock::time_point origin_;
  const std::function<void(Timeline&)> on_full_;
  std::atomic<bool> full_{false}, told_{false};
  std::atomic<std::uint32_t> next_call_{0};
  std::unique_ptr<Track> memory_;
  std::mutex memory_mutex_;
  std::int64_t held_ = 0;

  mutable std::mutex mutex_;   // of what is below
  std::int64_t reserved_ = 0;  // events in blocks
  std::vector<std::unique_ptr<Track>> tracks_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;
  struct Row {
    std::uint32_t label, kernel;  // texts
  };
  std::vector<Row> rows_;  // per program its own, then those of its steps
};

namespace detail {
inline constinit std::atomic<Timeline*> current_timeline{nullptr};
}

/// The one that records now; null when none does.
inline Timeline* recording() { return detail::current_timeline.load(std::memory_order_acquire); }
/// Ends the recording before it; what runs at that time may still add to that one.
inline Timeline* record_on(Timeline* timeline) {
  return detail::current_timeline.exchange(timeline, std::memory_order_acq_rel);
}

}  // namespace burin::runtime
