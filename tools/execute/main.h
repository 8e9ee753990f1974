// How every tool ends: its exit status, and what it says when something goes wrong.
#pragma once
#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <iostream>
#include <new>
#include <string>

namespace tools {

inline constexpr int failed = 1, misused = 2;

/// The status of `body`, which parses the command line and does the work; `too_large` says what does not fit into memory.
inline int run_main(const char* tool, const CLI::App& app, const std::function<int()>& body,
                    const std::function<std::string()>& too_large) {
  try {
    return body();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : misused;
  } catch (const std::bad_alloc&) {
    std::cerr << tool << ": " << too_large() << '\n';
  } catch (const std::exception& error) {
    std::cerr << tool << ": " << error.what() << '\n';
  }
  return failed;
}

}  // namespace tools
