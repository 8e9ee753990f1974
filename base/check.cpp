#include "base/check.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace burin {
namespace {
thread_local CrashContext* innermost = nullptr;
}  // namespace

CrashContext::CrashContext(Describe describe, const void* data)
    : describe_(describe), data_(data), outer_(innermost) {
  innermost = this;
}

CrashContext::~CrashContext() { innermost = outer_; }

std::string save_crash_input(const std::string& text) {
  static std::atomic<int> written{0};
  const int earlier = written++;
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path(error) / ("burin-crash-" + std::to_string(getpid()) + (earlier == 0 ? "" : "-" + std::to_string(earlier)) + ".ir");
  std::ofstream file(path);
  file << text << std::flush;
  return file ? path.string() : "(could not be written)";
}

void print_crash_contexts() {
  CrashContext* context = innermost;
  innermost = nullptr;  // a failure inside describe must not come back here
  for (; context != nullptr; context = context->outer_)
    std::fprintf(stderr, "%s\n", context->describe_(context->data_).c_str());
  std::fflush(stderr);
}

void check_failed(const char* file, int line, const char* condition, const std::string& note) {
  std::fprintf(stderr, "burin: internal error at %s:%d: %s%s%s\n", file, line, condition, note.empty() ? "" : ": ",
               note.c_str());
  print_crash_contexts();
  std::abort();
}

}  // namespace burin
