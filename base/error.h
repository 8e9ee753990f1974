// The one exception type that a user of Burin sees. It says what went wrong, where, what was expected and what was found.
#pragma once
#include <stdexcept>
#include <string>

namespace burin {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace burin
