// The library's version, and the options of a program that embeds it.
#pragma once
#include <burin/standard.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace burin {

/// "0.1.0".
std::string_view version();

/// What an embedding program may replace. Burin installs no signal handlers and prints nothing unless asked.
struct Runtime {
  /// Threads of a call; 0: BURIN_NUM_THREADS, else one per core.
  int num_threads = 0;
  /// Runs f(worker, begin, end) over disjoint ranges covering 0..tasks-1 and returns when all are done.
  std::function<void(int num_threads, std::int64_t tasks,
                     const std::function<void(int worker, std::int64_t begin, std::int64_t end)>& f)>
      parallel_for = {};
  /// 64-byte aligned memory; null on failure, which becomes an error that names the number of bytes.
  std::function<void*(std::size_t bytes)> allocate = {};
  std::function<void(void* data, std::size_t bytes)> release = {};
  /// Takes the lines that BURIN_LOG_COMPILES and its like ask for; standard error unless given.
  std::function<void(std::string_view line)> log = {};
  /// The folder in which machine code outlives the process, an absolute path; "": none. Not given: BURIN_CACHE_DIR, else `burin` in the
  /// user's cache directory. It is made with mode 0700 if it is not there; one that is a symbolic link, another user's or open
  /// to others is not used, of which the log gets a line.
  std::optional<std::string> cache_directory = {};
};
/// Applies to everything made from here on. Throws for a number of threads below 0 or above 512.
void set_runtime(const Runtime& options);

}  // namespace burin
