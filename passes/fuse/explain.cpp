#include <fmt/format.h>

#include <map>

#include "base/counted.h"
#include "ir/function.h"
#include "passes/fuse/fuse.h"

namespace burin::passes {
namespace {

using namespace ir;

std::string place_of(const Function& f, OpId op) {
  const std::string where = to_string(f.location(op));
  return where.empty() ? "" : " (" + where + ")";
}

// Ops that do arithmetic: what a reader counts. Constants and moves cost no pass over memory of their own.
bool counts(Op op) {
  const Family family = family_of(op);
  return family != Family::movement && op != Op::constant && op != Op::iota;
}

// Why a kernel holds one op only: from what its operands and readers are.
std::string why_alone(const Function& f, OpId op, const std::vector<std::vector<OpId>>& readers) {
  bool from_memory = true;
  for (ValueId operand : f.operands(op)) from_memory = from_memory && f.is_arg(operand);
  bool is_result = false, feeds_matmul = false, feeds_other = false;
  for (std::size_t r = 0; r < f.num_results(op); ++r) {
    const ValueId v = f.result(op, r);
    for (ValueId result : f.results()) is_result = is_result || result == v;
    for (OpId reader : readers[v.index]) {
      const bool matmul = f.kind(reader) == Op::fusion && f.attrs<Op::fusion>(reader).kind == "matmul";
      (matmul ? feeds_matmul : feeds_other) = true;
    }
  }
  if (is_result && from_memory) return "it is all there is between arguments and a result";
  if (feeds_matmul) return "a matmul reads its result from memory, and no kernel before it has the same elements";
  if (is_result) return "its result leaves the function, and no kernel before it has the same elements";
  if (feeds_other) return "several kernels read its result, or the one that does walks other elements";
  return "nothing reads it";
}

}  // namespace

std::string explain_fusion(const Function& fused) {
  std::vector<std::vector<OpId>> readers(fused.num_values());
  fused.for_each_op([&](OpId op) {
    for (ValueId operand : fused.operands(op)) readers[operand.index].push_back(op);
  });
  std::string text;
  fused.for_each_op([&](OpId op) {
    if (fused.kind(op) != Op::fusion) {
      text += fmt::format("{}{}: no kernel\n", name(fused.kind(op)), place_of(fused, op));
      return;
    }
    const auto a = fused.attrs<Op::fusion>(op);
    std::size_t num_counted = 0;
    a.body->for_each_op([&](OpId inner) { num_counted += counts(a.body->kind(inner)); });
    text += fmt::format("{}: {}, reads {}, writes {}\n", a.body->name(), counted(a.body->num_ops(), "op"),
                        fused.operands(op).size(), fused.num_results(op));
    a.body->for_each_op([&](OpId inner) {
      text += fmt::format("  {} : {}{}", name(a.body->kind(inner)), to_string(a.body->type(a.body->result(inner))), place_of(*a.body, inner));
      if (num_counted == 1 && counts(a.body->kind(inner))) text += ": alone, " + why_alone(fused, op, readers);
      text += '\n';
    });
  });
  return text;
}

}  // namespace burin::passes
