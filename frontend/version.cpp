#include <burin/version.h>

#include <cstdlib>
#include <iostream>
#include <mutex>

#include "frontend/code_files.h"
#include "frontend/compile.h"
#include "runtime/buffer.h"
#include "runtime/thread_pool.h"

namespace burin {
namespace {

std::mutex log_mutex;
std::function<void(std::string_view)> log_sink;

}  // namespace

std::string_view version() { return BURIN_VERSION; }

void set_runtime(const Runtime& options) {
  runtime::set_default_num_threads(options.num_threads);
  runtime::set_parallel_for(options.parallel_for);
  runtime::set_allocator({options.allocate, options.release});
  detail::set_code_directory(options.cache_directory);
  const std::lock_guard lock(log_mutex);
  log_sink = options.log;
}

namespace detail {

void log_line(const std::string& line) {
  const std::lock_guard lock(log_mutex);
  if (log_sink) log_sink(line);
  else std::cerr << line << '\n';
}

bool environment_flag(const char* name, bool otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::string_view(text) != "0" : otherwise;
}

}  // namespace detail
}  // namespace burin
