#include "passes/constants.h"

namespace burin::passes {

using namespace ir;

bool is_constant(const Function& f, ValueId v, double value) {
  if (f.is_arg(v) || f.kind(f.def(v)) != Op::constant) return false;
  const Literal literal = f.attrs<Op::constant>(f.def(v)).value;
  return literal.stores_one_element() && literal.at(0) == value;
}

std::optional<double> spread_constant(const Function& f, ValueId v) {
  while (!f.is_arg(v) && (f.kind(f.def(v)) == Op::broadcast || f.kind(f.def(v)) == Op::reshape))
    v = f.operand(f.def(v), 0);
  if (f.is_arg(v) || f.kind(f.def(v)) != Op::constant) return std::nullopt;
  const Literal literal = f.attrs<Op::constant>(f.def(v)).value;
  return literal.stores_one_element() ? std::optional(literal.at(0)) : std::nullopt;
}

bool is_spread_constant(const Function& f, ValueId v, double value) { return spread_constant(f, v) == value; }

}  // namespace burin::passes
