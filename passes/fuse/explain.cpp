#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "ir/rewriter.h"
#include "passes/fuse/attention.h"
#include "passes/fuse/fuse.h"
#include "passes/passes.h"

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

// How many elements the kernel of a fusion walks over: those of what a reduction reads, or else of its first result.
std::int64_t walked(const Function& f, OpId op) {
  const Body held = f.attrs<Op::fusion>(op).body;
  const Function& body = *held;
  std::int64_t domain = -1;
  body.for_each_op([&](OpId inner) {
    if (family_of(body.kind(inner)) == Family::reduce) domain = body.type(body.operand(inner, 0)).size();
  });
  return domain >= 0 || f.num_results(op) == 0 ? domain : f.type(f.result(op)).size();
}

std::string kind_of(const Function& f, OpId op) { return f.attrs<Op::fusion>(op).kind; }

// Why its only reader, another kernel, does not compute the result of `op` itself, or `op` what the reader computes.
std::string why_apart(const Function& f, OpId op, OpId reader) {
  if (walked(f, reader) != f.type(f.result(op)).size()) return "the kernel that reads its result walks other elements";
  const std::string mine = kind_of(f, op), other = kind_of(f, reader);
  if (mine == "matmul" && other == "rows")
    return "a matmul makes its result in tiles, and the reduction that reads it needs whole rows";
  return fmt::format("the kernel that reads its result walks the same elements, but {} and {} are two kernels here", mine, other);
}

// Why a kernel holds one op only: from what its operands and readers are.
std::string why_alone(const Function& f, OpId op, const std::vector<std::vector<OpId>>& readers) {
  const std::int64_t elements = walked(f, op);
  bool from_memory = true, follows = false;
  for (ValueId operand : f.operands(op)) {
    from_memory = from_memory && f.is_arg(operand);
    follows = follows || (!f.is_arg(operand) && f.kind(f.def(operand)) == Op::fusion && f.type(operand).size() == elements);
  }
  bool is_result = false, feeds_matmul = false;
  std::vector<OpId> kernels;
  for (std::size_t r = 0; r < f.num_results(op); ++r) {
    const ValueId v = f.result(op, r);
    for (ValueId result : f.results()) is_result = is_result || result == v;
    for (OpId reader : readers[v.index]) {
      if (f.kind(reader) != Op::fusion) continue;
      feeds_matmul = feeds_matmul || kind_of(f, reader) == "matmul";
      if (std::find(kernels.begin(), kernels.end(), reader) == kernels.end()) kernels.push_back(reader);
    }
  }
  const std::string before = follows ? "the kernel before it does not take it in" : "no kernel before it has the same elements";
  if (is_result && from_memory && kernels.empty()) return "it is all there is between arguments and a result";
  if (feeds_matmul) return "a matmul reads its result from memory, and " + before;
  if (is_result) return "its result leaves the function, and " + before;
  if (kernels.size() > 1) return "several kernels read its result";
  if (kernels.size() == 1) return why_apart(f, op, kernels[0]);
  return "no kernel reads it";
}

// The ops as they were before they were given to kernels.
Function without_kernels(const Function& fused) {
  Rewriter rewriter(fused);
  fused.for_each_op([&](OpId op) {
    if (fused.kind(op) != Op::fusion) {
      rewriter.copy(op);
      return;
    }
    const Body held = fused.attrs<Op::fusion>(op).body;
    const std::vector<ValueId> results = rewriter.b.inline_body(*held, rewriter.operands(op));
    for (std::size_t r = 0; r < results.size(); ++r) rewriter.replace(fused.result(op, r), results[r]);
  });
  return eliminate_common(rewriter.finish());
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
  // Softmax over products: why its scores are in memory, where they are.
  std::vector<fusion::AttentionNote> notes;
  fusion::take_attentions(without_kernels(fused), &notes);
  for (const fusion::AttentionNote& note : notes) {
    const std::string where = to_string(note.where);
    text += fmt::format("softmax over products{}: {}\n", where.empty() ? "" : " (" + where + ")",
                        note.why_not.empty() ? "attention, its scores live in tiles" : "no attention, " + note.why_not);
  }
  return text;
}

}  // namespace burin::passes
