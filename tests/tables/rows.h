// A program of the corpus as a table, and the texts whose digests stand in it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tests/tables/corpus.h"
#include "tests/tables/table.h"

namespace burin::tables {

struct Described {
  Table table;
  std::vector<std::pair<std::string, std::string>> texts;  // file name, text
};

/// Runs the whole compiler up to the LLVM IR that codegen emits (builds without code generation: up to kernels).
Described describe(const Program& program);

}  // namespace burin::tables
