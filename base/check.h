// BURIN_CHECK guards Burin's own invariants: a failure is a bug in Burin, never a user's mistake, and aborts.
// A crash context (the pass that runs, the IR it holds) is printed with it when someone has set one.
#pragma once
#include <string>

namespace burin {

/// Writes what a crash context wants to leave behind to a file among the temporary ones, another one for each call; its path, or
/// "(could not be written)".
std::string save_crash_input(const std::string& text);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& note);

/// Prints the contexts of this thread to stderr, innermost first, once: what a tool's handler of signals calls, as check_failed does.
void print_crash_contexts();

/// Text printed by check_failed before aborting, for example the running pass and its input. Scopes nest per thread.
class CrashContext {
 public:
  using Describe = std::string (*)(const void* data);
  CrashContext(Describe describe, const void* data);
  ~CrashContext();
  CrashContext(const CrashContext&) = delete;
  CrashContext& operator=(const CrashContext&) = delete;

 private:
  friend void print_crash_contexts();
  Describe describe_;
  const void* data_;
  CrashContext* outer_;
};

}  // namespace burin

#define BURIN_CHECK(condition, ...)                                                                      \
  do {                                                                                                   \
    if (!(condition)) ::burin::check_failed(__FILE__, __LINE__, #condition, ::std::string{__VA_ARGS__}); \
  } while (false)
