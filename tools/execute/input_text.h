// What the tools read: text of a Function, or of a Program, from a file or from stdin.
#pragma once
#include <optional>
#include <string>

#include "ir/function.h"
#include "ir/kernel/program.h"

namespace tools {

/// Exactly one of the two is set.
struct Unit {
  std::optional<burin::ir::Function> function;
  std::optional<burin::ir::Program> program;
};

/// The whole file, or stdin for "-". Throws burin::Error naming the path and the reason.
std::string read_text(const std::string& path);
/// A text that begins with `program` is a Program, which must satisfy its invariants, a single kernel a Program of one
/// step; everything else is a Function. Throws burin::Error with file, line and column.
Unit parse_unit(const std::string& text, const std::string& path);

}  // namespace tools
