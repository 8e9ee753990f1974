#include "tests/tables/llvm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/hash.h"

namespace burin::tables {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line = line.substr(0, line.find(" ; "));
    while (line.ends_with(' ')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '$' || c == '-'; }

// An instruction: "  %name = rest" or "  rest".
struct Instruction {
  std::string_view name, rest;
  explicit Instruction(std::string_view line) : rest(line.substr(2)) {
    if (!rest.starts_with('%')) return;
    const std::size_t equal = rest.find(" = ");
    name = rest.substr(1, equal - 1);
    rest.remove_prefix(equal + 3);
  }
  std::string_view opcode() const { return rest.substr(0, rest.find(' ')); }
  bool acts() const {
    return name.empty() || (opcode() == "call" && rest.find("@llvm.") == std::string_view::npos);
  }
  bool reads() const { return opcode() == "load" || rest.find("@llvm.masked.") != std::string_view::npos; }
};

class Normaliser {
 public:
  std::string function(const Lines& lines) {
    defined_.clear(), hashes_.clear();
    std::size_t block = 0, phis = 0, allocas = 0, acts = 0;
    for (const std::string_view line : lines) {
      if (!line.empty() && line.ends_with(':')) {
        ++block, phis = acts = 0;
        hashes_[line.substr(0, line.size() - 1)] = fmt::format("block{}", block);
      }
      if (!line.starts_with("  ")) continue;
      const Instruction i(line);
      acts += i.acts() ? 1 : 0;
      if (i.opcode() == "phi") hashes_[i.name] = fmt::format("phi{}.{}", block, phis++);
      if (i.opcode() == "alloca") hashes_[i.name] = fmt::format("slot{}", allocas++);
      if (!i.name.empty()) defined_.insert_or_assign(i.name, std::pair(i, i.reads() ? fmt::format(" in {}.{}", block, acts) : std::string()));
    }
    std::string text;
    std::vector<std::string> done, free;
    const auto finish_block = [&] {
      std::sort(free.begin(), free.end());
      for (const auto* list : {&done, &free})
        for (const std::string& line : *list) text += line + "\n";
      done.clear(), free.clear();
    };
    for (const std::string_view line : lines) {
      if (!line.starts_with("  ")) {
        finish_block();
        continue;
      }
      const Instruction i(line);
      if (i.acts())
        done.push_back(with_hashes(i.rest));
      else
        free.push_back(with_hashes(i.rest) + defined_.at(i.name).second);
    }
    finish_block();
    return text;
  }

  // Operands as hashes; which number a set of attributes or metadata got is left out.
  std::string with_hashes(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      result += c;
      if (c != '%' && c != '!' && c != '#') continue;
      std::size_t end = at + 1;
      while (end < text.size() && in_name(text[end])) ++end;
      const std::string_view name = text.substr(at + 1, end - at - 1);
      if (c == '%')
        result += hash(name);
      else if (!name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])))
        result += name;
      at = end - 1;
    }
    return result;
  }

 private:
  const std::string& hash(std::string_view name) {
    if (const auto found = hashes_.find(name); found != hashes_.end()) return found->second;
    std::string text(name);  // an argument
    if (const auto found = defined_.find(name); found != defined_.end()) {
      Hasher hasher;
      hasher.add(with_hashes(found->second.first.rest) + found->second.second);
      text = hasher.finish().hex();
    }
    return hashes_[name] = text;
  }

  std::map<std::string_view, std::pair<Instruction, std::string>> defined_;
  std::map<std::string_view, std::string> hashes_;
};

}  // namespace

std::map<std::string, int, std::less<>> count_instructions(std::string_view text) {
  std::map<std::string, int, std::less<>> counts;
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with("  ")) continue;
    const Instruction i(line);
    std::string_view what = i.opcode();
    if (const std::size_t at = i.rest.find("@llvm."); at != std::string_view::npos && i.rest.find("call ") < at) {
      what = i.rest.substr(at + 1, i.rest.find('(', at) - at - 1);
    }
    ++counts[std::string(what)];
  }
  return counts;
}

std::string normal_form(std::string_view text) {
  Normaliser normaliser;
  std::string result;
  std::vector<std::string> rest;
  Lines function;
  for (const std::string_view line : lines_of(text)) {
    const bool inside = !function.empty();
    if (inside || line.starts_with("define")) function.push_back(line);
    if (!inside && !line.starts_with("define") && !line.starts_with(";")) rest.push_back(normaliser.with_hashes(line));
    if (line != "}" || !inside) continue;
    result += std::string(function[0]) + "\n" + normaliser.function(function);
    function.clear();
  }
  std::sort(rest.begin(), rest.end());
  for (const std::string& line : rest) result += line + "\n";
  return result;
}

}  // namespace burin::tables
