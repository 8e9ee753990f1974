// What is thrown, as text.
#pragma once
#include <string>

#include "base/error.h"

namespace burin::test {

/// The message of the Error that f throws; "no error" otherwise.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace burin::test
