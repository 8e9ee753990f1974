#include "ir/printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/element_text.h"
#include "ir/lexer.h"

namespace burin::ir {
namespace {

constexpr std::size_t max_width = 100;  // a longer head has one argument a line

void append_elements(std::string& out, const Literal& literal, std::size_t axis, std::int64_t& next) {
  if (axis == literal.shape().rank()) {
    out += element_text(literal, next++);
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < literal.shape()[axis]; ++i) {
    if (i > 0) out += ", ";
    append_elements(out, literal, axis + 1, next);
  }
  out += ']';
}

std::string abbreviated(const Literal& literal) {
  std::string text = "dense<";
  for (std::int64_t i = 0; i < 3; ++i) text += element_text(literal, i) + ", ";
  return text + "...>";
}

/// Gives out names of [A-Za-z0-9_.], each once. Names of digits alone are left to values without a name.
class Names {
 public:
  std::string unique(std::string_view wanted, std::string_view fallback) {
    std::string base;
    bool digits = true;
    for (char c : wanted) {
      const bool digit = c >= '0' && c <= '9';
      const bool plain = digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
      base += plain ? c : '_';
      digits &= digit;
    }
    if (digits) base = std::string(fallback) + base;
    if (used_.insert(base).second) return base;
    for (std::size_t& suffix = suffixes_[base];;)
      if (std::string name = fmt::format("{}_{}", base, ++suffix); used_.insert(name).second) return name;
  }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, std::size_t> suffixes_;
};

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string print_all(const Function& f) {
    function_names_[&f] = names_.unique(f.name(), "f");
    pending_.push_back(&f);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (i > 0) out_ += '\n';
      print_function(*pending_[i]);
    }
    return std::move(out_);
  }

 private:
  // Bodies are numbered where they are first met and printed later, so depth costs no stack.
  const std::string& name_of(const Function& body) {
    if (const auto found = function_names_.find(&body); found != function_names_.end()) return found->second;
    Hasher hasher;
    body.hash(hasher);
    for (auto [at, last] = by_hash_.equal_range(hasher.finish()); at != last; ++at)
      if (same_program(*at->second, body)) return function_names_[&body] = function_names_[at->second];
    by_hash_.emplace(hasher.finish(), &body);
    pending_.push_back(&body);
    return function_names_[&body] = names_.unique(body.name(), "f");
  }

  std::string attribute_text(const AttrValue& value) {
    return std::visit(
        [&]<class T>(const T& v) -> std::string {
          if constexpr (std::is_same_v<T, Int>)
            return std::to_string(v);
          else if constexpr (std::is_same_v<T, Ints>)
            return fmt::format("[{}]", fmt::join(v, ", "));
          else if constexpr (std::is_same_v<T, Str>)
            return quoted_string(v);
          else if constexpr (std::is_same_v<T, Literal>)
            return print(v, options_.max_elements);
          else if constexpr (std::is_same_v<T, Body>)
            return "@" + name_of(*v);
          else
            return std::string(name(v));
        },
        value);
  }

  void name_values(const Function& f) {
    Names names;
    std::size_t next = 0;
    values_.clear();
    values_.reserve(f.num_values());
    for (std::size_t i = 0; i < f.num_values(); ++i) {
      const std::string_view name = f.value_name(ValueId{i});
      values_.push_back(name.empty() ? std::to_string(next++) : names.unique(name, "_"));
    }
  }

  void print_head(const Function& f) {
    std::vector<std::string> args, results;
    for (ValueId arg : f.args()) args.push_back(fmt::format("%{}: {}", values_[arg.index], to_string(f.type(arg))));
    for (ValueId result : f.results()) results.push_back(to_string(f.type(result)));
    const std::string& name = function_names_[&f];
    const auto head = [&](std::string_view open, std::string_view separator) {
      return fmt::format("func @{}({}{}) -> ({}) {{\n", name, open, fmt::join(args, separator),
                         fmt::join(results, ", "));
    };
    const std::string one_line = head("", ", ");
    out_ += one_line.size() <= max_width + 1 || args.empty() ? one_line : head("\n    ", ",\n    ");
  }

  void print_op(const Function& f, OpId op) {
    out_ += "  ";
    for (std::size_t i = 0; i < f.num_results(op); ++i) append_value(f.result(op, i), i);
    if (f.num_results(op) > 0) out_ += " = ";
    out_ += name(f.kind(op));
    const auto operands = f.operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i == 0) out_ += ' ';
      append_value(operands[i], i);
    }
    if (f.kind(op) == Op::constant)
      out_ += ' ' + attribute_text(f.attributes(op)[0]);
    else
      print_attributes(f, op);
    for (std::size_t i = 0; i < f.num_results(op); ++i)
      out_ += (i == 0 ? " : " : ", ") + to_string(f.type(f.result(op, i)));
    if (options_.locations)
      if (const std::string where = to_string(f.location(op)); !where.empty()) out_ += "  // " + where;
    out_ += '\n';
  }

  void print_attributes(const Function& f, OpId op) {
    const auto rows = info(f.kind(op)).attributes;
    const auto values = f.attributes(op);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!is_default(values[i])) parts.push_back(fmt::format("{} = {}", rows[i].name, attribute_text(values[i])));
    if (!parts.empty()) out_ += fmt::format(" {{{}}}", fmt::join(parts, ", "));
  }

  void append_value(ValueId value, std::size_t position) {
    if (position > 0) out_ += ", ";
    out_ += '%';
    out_ += values_[value.index];
  }

  void print_function(const Function& f) {
    name_values(f);
    print_head(f);
    f.for_each_op([&](OpId op) { print_op(f, op); });
    out_ += "  return";
    for (std::size_t i = 0; i < f.results().size(); ++i) {
      if (i == 0) out_ += ' ';
      append_value(f.results()[i], i);
    }
    out_ += "\n}\n";
  }

  const PrintOptions& options_;
  std::string out_;
  Names names_;
  std::vector<const Function*> pending_;
  std::unordered_map<const Function*, std::string> function_names_;
  std::multimap<Hash128, const Function*> by_hash_;
  std::vector<std::string> values_;  // by value of the function being printed
};

}  // namespace

std::string print(const Literal& literal, std::int64_t max_elements) {
  if (literal.is_splat()) return element_text(literal, 0);
  if (literal.shape().size() == 0) return "[]";
  if (max_elements >= 0 && literal.shape().size() > max_elements) return abbreviated(literal);
  std::string text;
  std::int64_t next = 0;
  append_elements(text, literal, 0, next);
  return text;
}

std::string print(const Function& f, const PrintOptions& options) { return Printer(options).print_all(f); }

}  // namespace burin::ir
