// Tables as text: sections of rows of named columns. What changed between two of them, cell by cell.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace burin::tables {

/// A title, the names of its columns and rows of as many cells. The first columns name what a row is about. No cell holds a blank;
/// a column "|" has nothing but "|" in it.
struct Section {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
using Table = std::vector<Section>;

/// Aligned, numbers to the right.
std::string print(const Table& table);
/// print's text; anything else gives an odd table, not an error.
Table parse(std::string_view text);
/// Without the columns from "|" on.
Table without_machine(Table table);
/// "" or a line for each cell that differs: "avx2, after 3 @rows_1: load 3 -> 4, text 1a2b3c4d -> 5e6f7081".
std::string difference(const Table& expected, const Table& found);

}  // namespace burin::tables
