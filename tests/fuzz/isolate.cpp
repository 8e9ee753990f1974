#include "tests/fuzz/isolate.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstring>
#include <exception>

namespace burin::fuzz {
namespace {

// What a file descriptor holds, its last few thousand characters.
std::string contents(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t from = size > 6000 ? size - 6000 : 0;
  std::string text(static_cast<std::size_t>(size - from), '\0');
  const ssize_t n = pread(file, text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

void write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(file, text.data() + at, text.size() - at);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace

void limit_time(unsigned seconds) {
  itimerval computed = {};
  computed.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &computed, nullptr);
  alarm(10 * seconds);
}

bool is_timeout(int signal) { return signal == SIGALRM || signal == SIGPROF; }

std::string isolated(const std::function<std::string()>& check, unsigned seconds) {
  const int result = memfd_create("result", 0), errors = memfd_create("errors", 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(errors, STDERR_FILENO);
    limit_time(seconds);
    std::string text;
    try {
      text = check();
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    write_all(result, text);
    _exit(text.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string text;
  if (WIFSIGNALED(status))
    text = is_timeout(WTERMSIG(status))
               ? "timeout"
               : "crash: signal " + std::to_string(WTERMSIG(status)) + "\n" + contents(errors);
  else if (WEXITSTATUS(status) != 0)
    text = contents(result).empty() ? "crash: exit " + std::to_string(WEXITSTATUS(status)) + "\n" + contents(errors)
                                    : contents(result);
  close(result);
  close(errors);
  return text;
}

std::string kind_of(const std::string& failure) {
  std::string kind;
  std::string first = failure.substr(0, 400);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const char c = first[i];
    const bool in_number =
        std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '-' && i + 1 < first.size() && std::isdigit(static_cast<unsigned char>(first[i + 1]))) || c == '.';
    if (!in_number) kind += c;
    if (c == '\n' && kind.find("burin:") != std::string::npos) break;
  }
  // What was found and expected differs from program to program.
  for (const char* cut : {" instead of", "[", "`"})
    if (const std::size_t at = kind.find(cut); at != std::string::npos) kind.resize(at);
  return kind.substr(0, 160);
}

}  // namespace burin::fuzz
