#include "tests/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace burin::tables {
namespace {

using Cells = std::vector<std::string>;

Cells split(const std::string& line) {
  std::istringstream words(line);
  Cells cells;
  for (std::string word; words >> word;) cells.push_back(word);
  return cells;
}

// A row by the cells before the first that is a count: "3 @rows_1" of `after` and kernel.
std::string name_of(const Section& section, const Cells& row) {
  return section.columns.size() > 1 && section.columns[1] == "kernel" ? fmt::format("after {} {}", row[0], row[1]) : row[0];
}

std::string changes(const Section& expected, const Cells& before, const Cells& after) {
  std::string text;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i]) text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", expected.columns[i], before[i], after[i]);
  return text;
}

std::string difference(const Section& expected, const Section& found) {
  if (expected.columns != found.columns)
    return fmt::format("{}: columns {} -> {}\n", expected.title, fmt::join(expected.columns, " "), fmt::join(found.columns, " "));
  std::string text;
  if (expected.rows.size() != found.rows.size())
    text += fmt::format("{}: {} rows -> {}\n", expected.title, expected.rows.size(), found.rows.size());
  for (std::size_t i = 0; i < std::min(expected.rows.size(), found.rows.size()); ++i) {
    if (expected.rows[i].size() != expected.columns.size()) return text + fmt::format("{}: row {} has too few cells\n", expected.title, i);
    if (expected.rows[i] != found.rows[i])
      text += fmt::format("{}, {}: {}\n", expected.title, name_of(expected, expected.rows[i]), changes(expected, expected.rows[i], found.rows[i]));
  }
  return text;
}

}  // namespace

std::string print(const Table& table) {
  std::string text;
  for (const Section& section : table) {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < section.columns.size(); ++i) {
      std::size_t width = section.columns[i].size();
      for (const Cells& row : section.rows) width = std::max(width, row[i].size());
      widths.push_back(width);
    }
    const auto line = [&](const Cells& cells) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        text += std::isdigit(static_cast<unsigned char>(cells[i][0])) || i > 1 ? fmt::format("{}{:>{}}", i ? " " : "", cells[i], widths[i])
                                                                               : fmt::format("{}{:<{}}", i ? " " : "", cells[i], widths[i]);
      text += "\n";
    };
    text += fmt::format("== {}\n", section.title);
    line(section.columns);
    for (const Cells& row : section.rows) line(row);
  }
  return text;
}

Table parse(std::string_view text) {
  Table table;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.starts_with("== "))
      table.push_back({line.substr(3), {}, {}});
    else if (!table.empty() && table.back().columns.empty())
      table.back().columns = split(line);
    else if (!table.empty())
      table.back().rows.push_back(split(line));
  }
  return table;
}

Table without_machine(Table table) {
  for (Section& section : table) {
    const auto bar = std::find(section.columns.begin(), section.columns.end(), "|");
    const auto kept = static_cast<std::size_t>(bar - section.columns.begin());
    section.columns.resize(kept);
    for (Cells& row : section.rows) row.resize(std::min(kept, row.size()));
  }
  return table;
}

std::string difference(const Table& expected, const Table& found) {
  std::string text;
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    if (i >= expected.size() || i >= found.size() || expected[i].title != found[i].title)
      return text + fmt::format("section {}: `{}` -> `{}`\n", i, i < expected.size() ? expected[i].title : "", i < found.size() ? found[i].title : "");
    text += difference(expected[i], found[i]);
  }
  return text;
}

}  // namespace burin::tables
