// BURIN_TRACE=file: what happens when, for Perfetto and chrome://tracing. Inside the frontend and the tools only.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "passes/pipeline.h"

namespace burin::runtime {
class Timeline;
}

namespace burin::detail {

/// Null unless something is recorded; BURIN_TRACE starts that when it is set. Throws Error when its file cannot be
/// written. The file is there when the process exits, or when the limit is reached.
runtime::Timeline* timeline();

using PassObserver = std::function<void(const passes::Options::Event&)>;
/// `next`, and a span per pass when something is recorded. `function`: the name of what is compiled.
PassObserver record_passes(const std::string& function, PassObserver next = {});

/// A span from here to the end of the scope, when something is recorded.
class RecordedSpan {
 public:
  RecordedSpan(const char* name, std::string function);
  ~RecordedSpan();
  RecordedSpan(const RecordedSpan&) = delete;
  RecordedSpan& operator=(const RecordedSpan&) = delete;

 private:
  runtime::Timeline* timeline_;
  const char* name_;
  std::string function_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace burin::detail
