#include "tests/tables/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

#include "base/hash.h"
#include "ir/kernel/program.h"
#include "ir/printer.h"
#include "passes/fuse/fuse.h"
#include "tests/support/kernel_table.h"
#include "tests/tables/llvm_text.h"
#if BURIN_WITH_LLVM
#include "codegen/codegen.h"
#endif

namespace burin::tables {

using namespace ir;

namespace {

using Cells = std::vector<std::string>;

// Lines of the program's file move when somebody writes a comment there.
std::string without_places(const std::string& text) {
  static const std::regex place("\\bx:[0-9]+");
  return std::regex_replace(text, place, "x");
}

std::string digest(const std::string& text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.finish().hex().substr(0, 8);
}

std::string text_of(const Function& f) {
  PrintOptions options;
  options.max_elements = -1;
  return print(f, options);
}

// ---- passes ----

Cells pass_row(const std::string& name, const Function& f, Described& d) {
  std::string text = without_places(text_of(f));
  Cells row = {name, fmt::format("{}", f.num_ops()), digest(text)};
  d.texts.emplace_back(fmt::format("{}_{}.ir", d.texts.size(), name), std::move(text));
  return row;
}

Function add_passes(const Program& program, Described& d) {
  Section section{"passes", {"pass", "ops", "text"}, {}};
  const auto functions = program.functions();
  for (const auto& [name, f] : functions) section.rows.push_back(pass_row(name, f, d));
  passes::Options options = program.options(functions.back().second);
  options.observer = [&](const passes::Options::Event& event) {
    if (event.changed) section.rows.push_back(pass_row(std::string(event.pass), *event.function, d));
  };
  Function fused = passes::run_function_passes(functions.back().second, options);
  std::string explained = without_places(passes::explain_fusion(fused));
  section.rows.push_back({"explained", fmt::format("{}", std::count(explained.begin(), explained.end(), '\n')), digest(explained)});
  d.texts.emplace_back("explained.txt", std::move(explained));
  d.table.push_back(std::move(section));
  return fused;
}

// ---- kernels ----

constexpr std::array statement_columns = {"loop", "unroll", "vector", "when", "let", "load", "load?", "store", "store?", "acc", "bind", "mma", "other"};

std::string_view column_of(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::loop: return s.loop_kind == LoopKind::serial ? "loop" : s.loop_kind == LoopKind::unroll ? "unroll" : "vector";
    case StmtKind::when: return "when";
    case StmtKind::let: return "let";
    case StmtKind::load: return s.conditions.empty() ? "load" : "load?";
    case StmtKind::store: return s.conditions.empty() ? "store" : "store?";
    case StmtKind::acc: return "acc";
    case StmtKind::bind: return "bind";
    case StmtKind::mma: return "mma";
    default: return "other";
  }
}

using Counts = std::map<std::string, int, std::less<>>;

void count(const Block& block, Counts& counts) {
  for (const Stmt& s : block) {
    ++counts[std::string(column_of(s))];
    count(s.body, counts);
  }
}

Cells kernel_cells(const Kernel& kernel, const std::string& text) {
  Cells cells = {fmt::format("{}", kernel.num_params()), fmt::format("{}", kernel.scratch_bytes()), fmt::format("{}", kernel.flops),
                 fmt::format("{}", kernel.bytes)};
  Counts counts;
  count(kernel.body, counts);
  for (const char* column : statement_columns) cells.push_back(fmt::format("{}", counts[column]));
  cells.push_back(digest(text));
  return cells;
}

// ---- LLVM ----

[[maybe_unused]] constexpr std::array llvm_columns = {"alloca", "load", "store", "masked", "gather", "shuffle", "fma", "call", "phi", "br", "other"};

// What is counted together; opcodes and intrinsics as count_instructions names them.
[[maybe_unused]] std::string_view llvm_column_of(std::string_view what) {
  if (what.starts_with("llvm.masked.gather") || what.starts_with("llvm.masked.scatter")) return "gather";
  if (what.starts_with("llvm.masked.")) return "masked";
  if (what.starts_with("llvm.fma")) return "fma";
  if (what.starts_with("llvm.")) return "call";
  if (what == "shufflevector" || what == "insertelement" || what == "extractelement") return "shuffle";
  for (const std::string_view column : llvm_columns)
    if (what == column) return column;
  return "other";
}

Cells llvm_cells([[maybe_unused]] const Kernel& kernel, [[maybe_unused]] const Target& target, [[maybe_unused]] const std::string& file,
                 [[maybe_unused]] Described& d) {
  Cells cells;
#if BURIN_WITH_LLVM
  const Kernel* const kernels[] = {&kernel};
  std::string text = codegen::emit_raw_llvm(kernels, target);
  Counts counts;
  for (const auto& [what, times] : count_instructions(text)) counts[std::string(llvm_column_of(what))] += times;
  cells.push_back("|");
  for (const char* column : llvm_columns) cells.push_back(fmt::format("{}", counts[column]));
  cells.push_back(digest(normal_form(text)));
  d.texts.emplace_back(file + ".ll", std::move(text));
#endif
  return cells;
}

Cells step_columns() {
  Cells columns = {"after", "kernel", "tasks", "args", "scratch", "flops", "bytes"};
  columns.insert(columns.end(), statement_columns.begin(), statement_columns.end());
  columns.push_back("text");
#if BURIN_WITH_LLVM
  columns.push_back("|");
  columns.insert(columns.end(), llvm_columns.begin(), llvm_columns.end());
  columns.push_back("llvm");
#endif
  return columns;
}

// What the steps are given and where it lies: the program's text before its kernels.
std::string plan_of(const ir::Program& program) {
  const std::string text = without_places(print(program));
  return text.substr(0, text.find("\nkernel @"));
}

std::string file_name(const Target& target) {
  std::string name = to_string(target);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

Cells kernel_row(const Kernel& kernel, std::uint32_t after, std::int64_t tasks, const Target& target, Described& d) {
  Cells row = {fmt::format("{}", after), "@" + kernel.name, fmt::format("{}", tasks)};
  const std::string file = fmt::format("{}.{}_{}", file_name(target), after, kernel.name);
  std::string text = without_places(print(kernel));
  const Cells cells = kernel_cells(kernel, text), machine = llvm_cells(kernel, target, file, d);
  row.insert(row.end(), cells.begin(), cells.end());
  row.insert(row.end(), machine.begin(), machine.end());
  d.texts.emplace_back(file + ".kernel", std::move(text));
  return row;
}

void add_kernels(const Function& fused, const passes::Options& options, const Target& target, Described& d, Section& memory) {
  const ir::Program program = passes::run_lowering(fused, target, options);
  std::string plan = plan_of(program);
  const auto aliases = std::count_if(program.aliases.begin(), program.aliases.end(), [](int a) { return a >= 0; });
  memory.rows.push_back({file_name(target), fmt::format("{}", program.steps.size()), fmt::format("{}", program.kernels.size()),
                         fmt::format("{}", test::waits(program)), fmt::format("{}", program.arena_bytes),
                         fmt::format("{}", program.plan.size()), fmt::format("{}", aliases), digest(plan)});
  d.texts.emplace_back(file_name(target) + ".plan", std::move(plan));
  Section section{to_string(target), step_columns(), {}};
  std::set<std::uint32_t> seen;
  for (const Step& step : program.steps)
    if (seen.insert(step.kernel).second)  // the plan says how often
      section.rows.push_back(kernel_row(program.kernels[step.kernel], step.after, step.tasks, target, d));
  d.table.push_back(std::move(section));
}

Described describe_kernel(const Program& program) {
  Described d;
  const Kernel kernel = parse_kernel(program.text(), "x");
  for (const Target& target : program.targets)
    d.table.push_back({to_string(target), step_columns(), {kernel_row(kernel, 0, kernel.num_tasks(), target, d)}});
  return d;
}

}  // namespace

Described describe(const Program& program) {
  if (program.is_kernel()) return describe_kernel(program);
  Described d;
  const Function fused = add_passes(program, d);
  passes::Options options = program.options(fused);
  options.observer = [&](const passes::Options::Event& event) {  // rematerialise
    if (event.function != nullptr && event.changed) d.table.front().rows.push_back(pass_row(std::string(event.pass), *event.function, d));
  };
  Section memory{"programs", {"target", "steps", "kernels", "waits", "arena", "values", "in_place", "text"}, {}};
  for (const Target& target : program.targets) add_kernels(fused, options, target, d, memory);
  d.table.insert(d.table.begin() + 1, std::move(memory));
  return d;
}

}  // namespace burin::tables
