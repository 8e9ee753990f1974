// Text of a Function. parse(print(f)) is f, value names and locations aside.
#pragma once
#include <string>

#include "ir/function.h"

namespace burin::ir {

struct PrintOptions {
  bool locations = false;              // "// model.cpp:42, in block0/attn" behind each op
  std::int64_t max_elements = 32;      // a longer constant prints abbreviated and then does not parse; -1: in full
};

/// One function per body reached from `f`, `f` first; bodies are referred to as @name, equal bodies are printed once.
std::string print(const Function& f, const PrintOptions& options = {});
/// "[1.5, 2]": a literal's elements as nested lists; one element for a splat. Floats print shortest and exact, inf and
/// nan by name, a NaN other than the default quiet one by its bits (0x7FC00001).
std::string print(const Literal& literal, std::int64_t max_elements = -1);

}  // namespace burin::ir
