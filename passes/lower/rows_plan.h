// What a rows fusion consists of: one domain, the axes its rows run along, and the pass over a row in which each value is known.
#pragma once
#include <vector>

#include "ir/function.h"

namespace burin::passes::lower {

using namespace ir;

enum class RowLevel : std::uint8_t {
  element,  // one value per element of the domain (or free of it: arguments, constants)
  row,      // one value per row: a reduction along it, or made of such
  column    // one value per column: a reduction over all rows, or made of such
};

struct RowsPlan {
  Shape domain;
  std::vector<bool> along;            // by axis of the domain: part of a row
  std::int64_t num_rows = 1, row_size = 1;
  std::vector<OpId> row_reductions, column_reductions;
  std::vector<RowLevel> level;        // by value; of arguments and constants: element
  std::vector<std::uint32_t> ready;   // by value: passes over the row that must be done before it can be computed
  std::uint32_t num_passes = 0;       // passes in which something is accumulated or stored
  std::vector<ValueId> saved;         // dear values of one pass that a later pass reads again
};

/// True when the body can be lowered row by row: every reduction is along one set of axes of one domain, or over exactly the
/// others; row results come back only to their own row, column results only to columns.
bool plan_rows(const Function& body, RowsPlan* plan);

}  // namespace burin::passes::lower
