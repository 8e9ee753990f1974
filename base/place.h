// Where a caller stands, for people.
#pragma once
#include <source_location>
#include <string>
#include <string_view>

namespace burin {

/// The file without its folders.
inline std::string_view file_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return path.substr(path.rfind('/') + 1);
}
/// "model.cpp:42", or "an unknown line".
inline std::string place_text(const std::source_location& where) {
  if (where.line() == 0) return "an unknown line";
  return std::string(file_of(where)) + ":" + std::to_string(where.line());
}

}  // namespace burin
