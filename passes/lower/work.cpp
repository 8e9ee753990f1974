#include "passes/lower/work.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace burin::passes::lower {
namespace {

using namespace ir;

// Of an op of which `asked` elements are asked for.
std::int64_t flops_of(const Function& f, OpId op, std::int64_t asked) {
  const Op kind = f.kind(op);
  const Type& result = f.type(f.result(op));
  if (kind == Op::dot_general) {
    const Shape& lhs = f.type(f.operand(op, 0)).shape;
    std::int64_t depth = 1;
    for (std::int64_t axis : f.attrs<Op::dot_general>(op).lhs_contract) depth *= lhs[static_cast<std::size_t>(axis)];
    return 2 * asked * depth;
  }
  if (!is_float(result.dtype)) return 0;
  if (family_of(kind) == Family::reduce) return result.size() == 0 ? 0 : asked * (f.type(f.operand(op, 0)).size() / result.size());
  const bool moves = kind == Op::select || kind == Op::convert;
  return family_of(kind) == Family::elementwise && !moves ? asked : 0;
}

// How many elements of each operand an op reads for `asked` elements of its result.
std::int64_t elements_read(const Function& f, OpId op, std::int64_t asked) {
  const Op kind = f.kind(op);
  const Family family = family_of(kind);
  if (family == Family::elementwise || family == Family::compare || family == Family::movement || kind == Op::gather) return asked;
  const std::int64_t size = f.type(f.result(op)).size();
  if (family == Family::reduce) return size == 0 ? 0 : asked * (f.type(f.operand(op, 0)).size() / size);
  return asked > 0 ? INT64_MAX : 0;  // any
}

}  // namespace

Work work_of(const Function& body) {
  Work work;
  // Kernels compute what is asked for: of a value that only a gather reads, what it takes.
  std::vector<std::int64_t> asked(body.num_values(), 0);
  const auto ask = [&](ValueId v, std::int64_t elements) {
    const std::int64_t size = body.type(v).size();
    asked[v.index] = elements >= size - asked[v.index] ? size : asked[v.index] + elements;
  };
  for (ValueId result : body.results()) {
    work.bytes += body.type(result).bytes();
    ask(result, INT64_MAX);
  }
  for (std::size_t i = body.num_ops(); i-- > 0;) {
    const OpId op{i};
    std::int64_t elements = 0;
    for (std::size_t r = 0; r < body.num_results(op); ++r) elements = std::max(elements, asked[body.result(op, r).index]);
    work.flops += flops_of(body, op, elements);
    for (ValueId operand : body.operands(op)) ask(operand, elements_read(body, op, elements));
  }
  for (ValueId arg : body.args()) work.bytes += asked[arg.index] * static_cast<std::int64_t>(size_of(body.type(arg).dtype));
  return work;
}

}  // namespace burin::passes::lower
