#include "passes/lower/work.h"

#include <algorithm>
#include <vector>

namespace burin::passes::lower {
namespace {

using namespace ir;

std::int64_t flops_of(const Function& f, OpId op) {
  const Op kind = f.kind(op);
  const Type& result = f.type(f.result(op));
  if (kind == Op::dot_general) {
    const Shape& lhs = f.type(f.operand(op, 0)).shape;
    std::int64_t depth = 1;
    for (std::int64_t axis : f.attrs<Op::dot_general>(op).lhs_contract) depth *= lhs[static_cast<std::size_t>(axis)];
    return 2 * result.size() * depth;
  }
  if (!is_float(result.dtype)) return 0;
  if (family_of(kind) == Family::reduce) return f.type(f.operand(op, 0)).size();
  const bool moves = kind == Op::select || kind == Op::convert;
  return family_of(kind) == Family::elementwise && !moves ? result.size() : 0;
}

}  // namespace

Work work_of(const Function& body) {
  Work work;
  // By argument: read as a whole, or the elements that gathers take.
  std::vector<bool> whole(body.num_values(), false);
  std::vector<std::int64_t> taken(body.num_values(), 0);
  body.for_each_op([&](OpId op) {
    work.flops += flops_of(body, op);
    for (std::size_t k = 0; k < body.operands(op).size(); ++k) {
      const ValueId operand = body.operand(op, k);
      if (body.kind(op) == Op::gather && k == 0)
        taken[operand.index] += body.type(body.result(op)).size();
      else
        whole[operand.index] = true;
    }
  });
  for (ValueId result : body.results()) {
    work.bytes += body.type(result).bytes();
    whole[result.index] = true;
  }
  for (ValueId arg : body.args()) {
    const Type& type = body.type(arg);
    work.bytes += whole[arg.index] ? type.bytes()
                                   : std::min(type.bytes(), taken[arg.index] * static_cast<std::int64_t>(size_of(type.dtype)));
  }
  return work;
}

}  // namespace burin::passes::lower
