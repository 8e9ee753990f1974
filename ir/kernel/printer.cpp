#include "ir/kernel/printer.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "ir/element_text.h"
#include "ir/kernel/kernel.h"
#include "ir/lexer.h"

namespace burin::ir {
namespace {

// Words that would read as something else where a variable may stand.
bool is_reserved(std::string_view word) {
  static const std::unordered_set<std::string_view> words = {"min", "if",     "else",   "and",
                                                             "in",  "vector", "unroll", "for"};
  return words.contains(word);
}

class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel) : kernel_(kernel) {
    for (const Buffer& buffer : kernel.buffers) {
      std::string name = identifier(buffer.name, "b" + std::to_string(buffer_names_.size()));
      while (std::ranges::find(buffer_names_, name) != buffer_names_.end()) name += "_";
      buffer_names_.push_back(std::move(name));
    }
  }

  std::string run(std::string_view kernel_name) {
    header(kernel_name);
    depth_ = 1;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Space space = kernel_.buffers[i].space;
      if (space == Space::scratch || space == Space::tile) line(buffer_text(i));
    }
    for (const Site& site : kernel_.sites) line("site " + quoted_string(site.message));
    block(kernel_.body);
    return text_ + "}\n";
  }
  std::vector<unsigned> run_for_lines(std::string_view kernel_name) {
    run(kernel_name);
    return statement_lines_;
  }
  std::string run_for(std::size_t statement) {
    wanted_ = statement;
    run("");
    return found_;
  }

 private:
  void header(std::string_view kernel_name) {
    const std::string head = "kernel @" + std::string(kernel_name) + "(";
    std::string tail = ")";
    if (!kernel_.tasks.empty()) {
      tail += " tasks (";
      for (std::size_t i = 0; i < kernel_.tasks.size(); ++i) {
        if (i > 0) tail += ", ";
        tail += define(kernel_.tasks[i].first) + " in " + std::to_string(kernel_.tasks[i].second);
      }
      tail += ")";
    }
    if (kernel_.cost != 0) tail += " cost " + element_text(Literal::scalar(f64, kernel_.cost), 0);
    if (kernel_.flops != 0) tail += " flops " + std::to_string(kernel_.flops);
    if (kernel_.bytes != 0) tail += " bytes " + std::to_string(kernel_.bytes);
    tail += " {\n";
    std::string one_line = head, wrapped = head;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Space space = kernel_.buffers[i].space;
      if (space == Space::scratch || space == Space::tile) continue;
      const std::string text = buffer_text(i);
      one_line += (one_line.size() > head.size() ? ", " : "") + text;
      wrapped += (wrapped.size() > head.size() ? ",\n    " : "\n    ") + text;
    }
    text_ = one_line.size() + tail.size() <= 121 ? one_line + tail : wrapped + tail;
    lines_ = static_cast<unsigned>(std::ranges::count(text_, '\n'));
  }

  std::string buffer_text(std::size_t i) const {
    static constexpr std::string_view spaces[] = {"in", "out", "inout", "scratch", "tile"};
    const Buffer& b = kernel_.buffers[i];
    std::string text = std::string(spaces[static_cast<int>(b.space)]) + " " + buffer_names_[i] + ": " +
                       to_string(Type{b.dtype, b.shape});
    if (b.strides != dense_strides(b.shape)) {
      text += " strides [";
      for (std::size_t axis = 0; axis < b.strides.size(); ++axis)
        text += (axis > 0 ? "," : "") + std::to_string(b.strides[axis]);
      text += "]";
    }
    return text;
  }

  // ---- names ----
  // Variables take their name when they come into scope, numbered values their number when they are defined: the text
  // depends on the order of definitions alone, not on the ids.
  std::string define(VarId var) {
    std::string name = var.index < kernel_.var_names.size() ? kernel_.var_names[var.index] : "";
    name = identifier(name, "i" + std::to_string(var_order_.size()));
    while (is_reserved(name) || vars_in_scope_.contains(name)) name += "_";
    vars_in_scope_.insert(name);
    scope_.push_back(name);
    var_order_.emplace(var, var_order_.size());
    return var_names_[var] = name;
  }
  void leave_scope(std::size_t size) {
    for (; scope_.size() > size; scope_.pop_back()) vars_in_scope_.erase(scope_.back());
  }
  std::string name(VarId var) const {
    const auto found = var_names_.find(var);
    return found == var_names_.end() ? "undefined" + std::to_string(var.index) : found->second;
  }
  std::string name(BufferId buffer) const {
    return buffer.index < buffer_names_.size() ? buffer_names_[buffer.index] : "undefined";
  }
  std::string define(ScalarId scalar) { return scalar_names_[scalar] = "%" + std::to_string(scalar_names_.size()); }
  std::string name(ScalarId scalar) const {
    const auto found = scalar_names_.find(scalar);
    return found == scalar_names_.end() ? "%undefined" + std::to_string(scalar.index) : found->second;
  }
  std::string define(AccId acc, Reduce reduce) {
    return acc_names_[acc] = "%" + std::string(burin::ir::name(reduce)) + std::to_string(acc_names_.size());
  }
  std::string name(AccId acc) const {
    const auto found = acc_names_.find(acc);
    return found == acc_names_.end() ? "%undefined" + std::to_string(acc.index) : found->second;
  }
  std::string arg(const Stmt& s, std::size_t i) const { return i < s.args.size() ? name(s.args[i]) : "%undefined"; }

  // ---- expressions ----
  std::string affine(const Affine& a) const {
    std::vector<std::pair<VarId, std::int64_t>> terms = a.terms;
    std::ranges::sort(terms, {}, [&](const auto& term) {
      const auto found = var_order_.find(term.first);
      return found == var_order_.end() ? var_order_.size() + term.first.index : found->second;
    });
    std::string text;
    const bool constant_first = terms.empty() || (terms[0].second < 0 && a.constant > 0);
    if (constant_first) text = std::to_string(a.constant);
    for (const auto& [var, coefficient] : terms) {
      const std::uint64_t size = coefficient < 0 ? 0 - static_cast<std::uint64_t>(coefficient) : coefficient;
      if (!text.empty())
        text += coefficient < 0 ? " - " : " + ";
      else if (coefficient < 0)
        text += size == 1 ? "-1*" : "-";  // a bare minus sign would begin a number
      if (size != 1) text += std::to_string(size) + "*";
      text += name(var);
    }
    if (!constant_first && a.constant != 0) {
      const std::uint64_t size = a.constant < 0 ? 0 - static_cast<std::uint64_t>(a.constant) : a.constant;
      text += (a.constant < 0 ? " - " : " + ") + std::to_string(size);
    }
    return text;
  }
  std::string list(const std::vector<Affine>& items, std::string_view between = ", ") const {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) text += (i > 0 ? std::string(between) : "") + affine(items[i]);
    return text;
  }
  std::string bound(const std::vector<Affine>& hi) const {
    return hi.size() == 1 ? affine(hi[0]) : "min(" + list(hi) + ")";
  }
  std::string conditions(const std::vector<Affine>& items) const { return "if " + list(items, " >= 0 and ") + " >= 0"; }
  std::string access(BufferId buffer, const std::vector<Affine>& indices) const {
    return name(buffer) + "[" + list(indices) + "]";
  }

  // ---- statements ----
  void line(const std::string& text) {
    text_ += std::string(2 * depth_, ' ') + text + "\n";
    ++lines_;
  }
  void statement(const std::string& text, std::string_view tail = "") {
    if (statements_++ == wanted_) found_ = text;
    statement_lines_.push_back(lines_ + 1);
    line(text + std::string(tail));
  }
  void block(const Block& body) {
    for (const Stmt& s : body) stmt(s);
  }
  void nested(const std::string& head, const Block& body) {
    statement(head, " {");
    ++depth_;
    block(body);
    --depth_;
    line("}");
  }
  void stmt(const Stmt& s) {
    const std::string type = " : " + std::string(burin::name(s.dtype));
    switch (s.kind) {
      case StmtKind::loop: {
        std::string range = " in " + affine(s.lo) + ".." + bound(s.hi);
        if (s.loop_kind == LoopKind::vector) range += " vector " + std::to_string(s.width);
        if (s.loop_kind == LoopKind::unroll) range += " unroll";
        const std::size_t outer = scope_.size();
        nested("for " + define(s.var) + range, s.body);
        return leave_scope(outer);
      }
      case StmtKind::when: {
        const std::size_t outer = scope_.size();
        nested(conditions(s.conditions), s.body);
        return leave_scope(outer);
      }
      case StmtKind::constant: {
        const std::string value = s.literal.valid() ? element_text(s.literal, 0) : "undefined";
        return statement(define(s.result) + " = constant " + value + type);
      }
      case StmtKind::index:
        return statement(define(s.result) + " = index " + affine(s.value) + type);
      case StmtKind::let: {
        std::string args;
        for (std::size_t i = 0; i < s.args.size(); ++i) args += (i > 0 ? ", " : " ") + name(s.args[i]);
        return statement(define(s.result) + " = " + std::string(burin::ir::name(s.op)) + args + type);
      }
      case StmtKind::load: {
        std::string text = "load " + access(s.buffer, s.indices);
        if (!s.conditions.empty()) text += " " + conditions(s.conditions) + " else " + arg(s, 0);
        return statement(define(s.result) + " = " + text);
      }
      case StmtKind::store: {
        std::string text = "store " + access(s.buffer, s.indices) + ", " + arg(s, 0);
        if (!s.conditions.empty()) text += " " + conditions(s.conditions);
        return statement(text);
      }
      case StmtKind::acc: {
        std::string text = std::string(burin::name(s.dtype)) + " " + std::string(burin::ir::name(s.reduce)) +
                           " lanes " + std::to_string(s.width);
        if (!s.args.empty()) text += " from " + arg(s, 0);
        return statement("acc " + define(s.acc, s.reduce) + ": " + text);
      }
      case StmtKind::accumulate:
        return statement("accumulate " + name(s.acc) + ", " + arg(s, 0));
      case StmtKind::finish:
        return statement(define(s.result) + " = finish " + name(s.acc) + type);
      case StmtKind::bind: {
        std::string text =
            " = " + arg(s, 0) + " in 0.." + std::to_string(s.extent) + " " + std::string(burin::ir::name(s.mode));
        if (s.site >= 0) text += " site " + std::to_string(s.site);
        return statement("bind " + define(s.var) + text);
      }
      case StmtKind::mma: {
        const std::size_t outer = scope_.size();
        std::string text = "mma " + name(s.buffer) + "[" + define(s.row) + ", ";
        text += define(s.column) + "] += ";
        const std::string depth = define(s.depth);
        text += access(s.a, s.a_indices) + " * " + access(s.b, s.b_indices) + " for " + depth + " in 0.." + bound(s.hi);
        if (s.block != 0) text += " blocks " + std::to_string(s.block);
        statement(text);
        return leave_scope(outer);
      }
    }
  }

  const Kernel& kernel_;
  std::string text_, found_;
  std::size_t statements_ = 0, wanted_ = static_cast<std::size_t>(-1);
  std::size_t depth_ = 0;
  unsigned lines_ = 0;
  std::vector<unsigned> statement_lines_;
  std::vector<std::string> buffer_names_, scope_;
  std::unordered_set<std::string> vars_in_scope_;
  std::unordered_map<VarId, std::string> var_names_;
  std::unordered_map<VarId, std::size_t> var_order_;
  std::unordered_map<ScalarId, std::string> scalar_names_;
  std::unordered_map<AccId, std::string> acc_names_;
};

}  // namespace

std::string_view name(Reduce reduce) {
  static constexpr std::string_view names[] = {"sum", "prod", "max", "min", "and", "or"};
  return names[static_cast<int>(reduce)];
}

std::string identifier(std::string_view name, std::string_view otherwise) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (text.empty()) return std::string(otherwise);
  if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) text.insert(0, "_");
  return text;
}

std::string print_kernel(const Kernel& kernel, std::string_view kernel_name) {
  return KernelPrinter(kernel).run(kernel_name);
}

std::string print_statement(const Kernel& kernel, std::size_t statement) {
  return KernelPrinter(kernel).run_for(statement);
}

std::vector<unsigned> statement_lines(const Kernel& kernel) {
  return KernelPrinter(kernel).run_for_lines(identifier(kernel.name, "kernel"));
}

std::string print_structure(const Kernel& kernel) {
  Kernel plain = kernel;
  plain.name = "k";
  for (Buffer& buffer : plain.buffers) buffer.name.clear();
  plain.var_names.clear();
  for (Site& site : plain.sites) site.message.clear();
  plain.cost = 0;
  plain.flops = plain.bytes = 0;
  return print(plain);
}

std::string print(const Kernel& kernel) { return print_kernel(kernel, identifier(kernel.name, "kernel")); }

}  // namespace burin::ir
