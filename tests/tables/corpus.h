// The programs whose tables are kept: tests/tables/corpus.txt, a line each.
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ir/function.h"
#include "ir/target.h"
#include "passes/pipeline.h"

namespace burin::tables {

struct Program {
  std::string name;                     // folder, file and words: of the file in tests/tables/expected, without .txt
  std::string path;                     // IR text, or that of a kernel: .kernel
  std::vector<std::string> transforms;  // gradient, tangent, batch, in this order of application
  std::vector<ir::Target> targets;
  std::int64_t memory_budget = -1;
  bool donated = false, kept = false, excess_precision = true, fused = true;

  bool is_kernel() const { return path.ends_with(".kernel"); }
  std::string text() const;
  /// As read, then as each transform leaves it; the last is what is compiled. With the name of each.
  std::vector<std::pair<std::string, ir::Function>> functions() const;
  passes::Options options(const ir::Function& f) const;
  friend std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.path; }
};

/// Throws std::runtime_error for a line that says something else.
std::vector<Program> corpus();

}  // namespace burin::tables
