#include "tests/support/kernel_table.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace burin::test {

using namespace ir;

namespace {

bool computes(Op op) { return family_of(op) != Family::movement && op != Op::constant && op != Op::iota; }

KernelRow row_of(const Function& f, OpId op) {
  const auto a = f.attrs<Op::fusion>(op);
  KernelRow row;
  std::string anchors;
  a.body->for_each_op([&](OpId inner) {
    const Op kind = a.body->kind(inner);
    if (!computes(kind)) return;
    const Family family = family_of(kind);
    if (family == Family::elementwise || family == Family::compare) {
      ++row.elementwise;
      return;
    }
    ++row.anchors;
    const Type& type = a.body->type(a.body->result(inner));
    if (kind == Op::dot_general) row.dots.push_back(type);
    anchors += fmt::format(" {} {}", name(kind), to_string(type));
  });
  row.text = fmt::format("{:<8}{} + {} elementwise ->", a.kind, anchors, row.elementwise);
  for (std::size_t r = 0; r < f.num_results(op); ++r) row.text += " " + to_string(f.type(f.result(op, r)));
  return row;
}

}  // namespace

std::vector<KernelRow> kernel_rows(const Function& fused) {
  std::vector<KernelRow> rows;
  fused.for_each_op([&](OpId op) {
    if (fused.kind(op) == Op::fusion) rows.push_back(row_of(fused, op));
  });
  return rows;
}

std::vector<KernelRow> step_rows(const Function& fused, const Program& program) {
  std::map<std::string, KernelRow, std::less<>> fusions;
  fused.for_each_op([&](OpId op) {
    if (fused.kind(op) == Op::fusion) fusions[fused.attrs<Op::fusion>(op).body->name()] = row_of(fused, op);
  });
  const auto part_of_fusion = [&](std::string_view label) -> std::string {
    for (const auto& [suffix, part] : {std::pair{"_columns", "columns"}, {"_pack_lhs", "left side"}, {"_pack_rhs", "right side"}})
      if (label.ends_with(suffix))
        if (const std::string_view fusion = label.substr(0, label.rfind(suffix)); fusions.contains(fusion))
          return fmt::format("{} of {}", part, fusion);
    return {};
  };
  std::vector<KernelRow> rows;
  for (const Step& step : program.steps) {
    const std::string label = step.label.substr(0, step.label.find(' '));  // without the place
    KernelRow row;
    if (const auto found = fusions.find(label); found != fusions.end()) {
      row = found->second;
    } else if (std::string part = part_of_fusion(label); !part.empty()) {
      row.helps = true;
      row.text = std::move(part);
    } else {
      row.text = step.label;
    }
    row.step = fmt::format("after {:<3} @{:<17}{:>3} task{}", step.after, program.kernels[step.kernel].name, step.tasks,
                           step.tasks == 1 ? " " : "s");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string step_table(const Function& fused, const Program& program) {
  std::string table;
  for (const KernelRow& row : step_rows(fused, program)) table += row.step + "  " + row.text + "\n";
  return table + fmt::format("{} steps, {} kernels, {} waits\n", program.steps.size(), program.kernels.size(), waits(program));
}

std::size_t waits(const Program& program) {
  std::set<std::uint32_t> all;
  for (const Step& step : program.steps) all.insert(step.after);
  return all.size() - all.count(0);
}

}  // namespace burin::test
