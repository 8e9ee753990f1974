// Checks of options that are numbers: the message says what the number may be and what was written.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace tools {

inline CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [=](std::string& text) {
    std::int64_t n = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, n);
    if (error == std::errc() && stop == end && n >= least && n <= most) return std::string();
    return fmt::format("expected a whole number from {} to {}, found `{}`", least, most, text);
  };
  return CLI::Validator(check, "", "");
}

inline CLI::Validator number_from_zero() {
  const auto check = [](std::string& text) {
    double x = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, x);
    if (error == std::errc() && stop == end && std::isfinite(x) && x >= 0) return std::string();
    return fmt::format("expected a number from 0 on, found `{}`", text);
  };
  return CLI::Validator(check, "", "");
}

}  // namespace tools
