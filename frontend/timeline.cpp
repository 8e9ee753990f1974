#include "frontend/timeline.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "base/message_ids.h"
#include "frontend/compile.h"
#include "frontend/io/file.h"
#include "runtime/timeline.h"

namespace burin::detail {
namespace {

constexpr std::string_view category = "compile";

/// The recording that BURIN_TRACE asks for, and its file.
class TraceFile {
 public:
  /// Null when the variable is not set; else one per process.
  static TraceFile* instance() {
    const char* path = std::getenv("BURIN_TRACE");
    if (path == nullptr || *path == '\0') return nullptr;
    static TraceFile* const only = [] {
      std::atexit([] { instance_->at_exit(); });
      return instance_ = new TraceFile;  // never destroyed: threads may record until the end
    }();
    return only;
  }

  /// Throws Error when the file cannot be written, again and again while the variable names such a one.
  void check() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::fine || state_ == State::written) return;
    state_ = State::refused;
    runtime::record_on(nullptr);
    path_ = named_path();
    struct stat status;
    const bool special = ::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
    // Something that a viewer can open stands there from the beginning, and not an earlier run's.
    const std::string empty = "{\"traceEvents\":[]}\n";
    try {
      if (!special) io::replace_file(path_, {std::as_bytes(std::span(empty))});
    } catch (const Error& error) {
      fail(Msg::trace_unwritable, error.what());
    }
    state_ = State::fine;
    runtime::record_on(&timeline_);
  }

 private:
  enum class State { unchecked, refused, fine, written };

  TraceFile()
      : path_(named_path()),
        process_(::getpid()),
        timeline_(runtime::Timeline::default_limit, [this](runtime::Timeline&) { at_limit(); }) {
    runtime::record_on(&timeline_);
  }

  // The process may change its folder.
  static std::string named_path() {
    const char* path = std::getenv("BURIN_TRACE");
    if (path == nullptr) path = "";
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.string();
  }

  /// "" or what went wrong.
  std::string write() {
    const std::lock_guard lock(mutex_);
    // A child made by fork is not what was to be recorded.
    if (state_ == State::refused || state_ == State::written || ::getpid() != process_) return "";
    state_ = State::written;
    runtime::record_on(nullptr);
    try {
      const std::string text = timeline_.json();
      io::replace_file(path_, {std::as_bytes(std::span(text))});
      return "";
    } catch (const std::exception& error) {
      return fmt::format("burin: BURIN_TRACE: {}", error.what());
    }
  }

  void at_limit() noexcept try {
    const std::string problem = write();
    log_line(
        problem.empty()
            ? fmt::format("burin: BURIN_TRACE: {} holds {} events, the most there can be; nothing more is recorded",
                          path_, timeline_.limit())
            : problem);
  } catch (...) {  // the sink's: a call that went well does not fail for it
  }
  void at_exit() {
    // The sink of log lines may be gone.
    if (const std::string problem = write(); !problem.empty()) std::cerr << problem << '\n';
  }

  static inline TraceFile* instance_ = nullptr;

  std::string path_;
  const pid_t process_;
  std::mutex mutex_;
  State state_ = State::unchecked;
  runtime::Timeline timeline_;
};

// Buffers count from the beginning of the process; that the file cannot be written is said later, to somebody who
// listens.
[[maybe_unused]] const TraceFile* const started_early = TraceFile::instance();

}  // namespace

runtime::Timeline* timeline() {
  if (TraceFile* file = TraceFile::instance()) file->check();
  return runtime::recording();
}

PassObserver record_passes(const std::string& function, PassObserver next) {
  if (timeline() == nullptr) return next;
  return [function, next = std::move(next)](const passes::Options::Event& event) {
    if (runtime::Timeline* timeline = runtime::recording())
      timeline->span(
          category, event.pass, function, event.start,
          event.start + std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double>(event.seconds)));
    if (next) next(event);
  };
}

RecordedSpan::RecordedSpan(const char* name, std::string function)
    : timeline_(timeline()), name_(name), function_(std::move(function)), start_(std::chrono::steady_clock::now()) {}

RecordedSpan::~RecordedSpan() {
  if (timeline_ != nullptr) timeline_->span(category, name_, function_, start_, std::chrono::steady_clock::now());
}

}  // namespace burin::detail
