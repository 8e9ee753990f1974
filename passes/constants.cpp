#include "passes/constants.h"

namespace burin::passes {

using namespace ir;

bool is_constant(const Function& f, ValueId v, double value) {
  if (f.is_arg(v) || f.kind(f.def(v)) != Op::constant) return false;
  const Literal literal = f.attrs<Op::constant>(f.def(v)).value;
  return literal.stores_one_element() && literal.at(0) == value;
}

bool is_spread_constant(const Function& f, ValueId v, double value) {
  while (!f.is_arg(v) && (f.kind(f.def(v)) == Op::broadcast || f.kind(f.def(v)) == Op::reshape))
    v = f.operand(f.def(v), 0);
  return is_constant(f, v, value);
}

}  // namespace burin::passes
