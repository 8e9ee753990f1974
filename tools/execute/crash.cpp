#include "tools/execute/crash.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>

#include "base/check.h"

namespace tools {
namespace {

// Printing allocates, which a handler may not count on; the process ends either way, and most often there is something to read.
[[maybe_unused]] void report(int signal) {
  std::signal(signal, SIG_DFL);
  if (signal != SIGABRT) std::fprintf(stderr, "burin: ended by signal %d\n", signal);  // who aborts has said why
  burin::print_crash_contexts();
  std::raise(signal);
}

}  // namespace

void report_crashes() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A stack of its own: the other may be used up.
  alignas(64) static std::array<std::byte, 256 << 10> memory;
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
#endif
}

}  // namespace tools
