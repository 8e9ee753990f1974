// Assembly as text, for tests that compare code.
#pragma once
#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace burin::test {

/// Labels that something jumps to, and instructions: what is left when no line is named.
inline std::string instructions(const std::string& assembly) {
  std::istringstream lines(assembly);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    const std::string_view word = std::string_view(line).substr(std::min(line.find_first_not_of(" \t"), line.size()));
    if (word.starts_with(".section") && word.find(".debug_") != std::string::npos) break;  // what follows is not code
    if (word.empty() || (word.starts_with(".") && !word.starts_with(".LBB"))) continue;
    text += line + "\n";
  }
  return text;
}

/// The lines that .loc names.
inline std::set<unsigned> lines_named(const std::string& assembly) {
  std::istringstream lines(assembly);
  std::set<unsigned> found;
  for (std::string word; lines >> word;)
    if (unsigned file = 0, line = 0; word == ".loc" && lines >> file >> line) found.insert(line);
  return found;
}

}  // namespace burin::test
