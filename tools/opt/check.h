// --check: what goes into the passes and what comes out of them, executed on the same data.
#pragma once
#include <cstdint>
#include <string>

#include "ir/target.h"
#include "tools/execute/input_text.h"

namespace opt {

struct CheckReport {
  bool agree = true;
  std::string text;  // one line for stderr: what ran and how close it had to be, or the first difference
};

/// Runs `before` and `after` through the evaluator (functions), the interpreter and, where this machine has the target,
/// machine code on data drawn from `seed`, and compares all results with those of `before` under the evaluator (of a
/// program: the interpreter). An input that makes it report an index must make all of them report one.
/// `file` is what `before` comes from. Throws burin::Error when the two do not take the same arguments.
CheckReport check(const tools::Unit& before, const std::string& file, const tools::Unit& after,
                  const burin::ir::Target& target, std::uint64_t seed, bool excess_precision);

}  // namespace opt
