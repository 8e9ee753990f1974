// Runs a check in a child process, so that a crash of the compiler is a failure like any other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace burin::fuzz {

/// "" when the check passed; else its text, or "crash: " and what the child left on stderr, or "timeout". The calling
/// process must not have started threads.
std::string isolated(const std::function<std::string()>& check, unsigned seconds = 60);
/// Ends the process once it has computed for so many seconds from now, or ten times as long has passed: a machine that is busy or stopped
/// is no failure.
void limit_time(unsigned seconds);
/// Whether limit_time ends a process by this signal.
bool is_timeout(int signal);
/// Failures that are the same bug as far as one can tell: numbers and names of values dropped.
std::string kind_of(const std::string& failure);

}  // namespace burin::fuzz
