#include "passes/constants.h"

namespace burin::passes {

using namespace ir;

bool is_constant(const Function& f, ValueId v, double value) {
  if (f.is_arg(v) || f.kind(f.def(v)) != Op::constant) return false;
  const Literal literal = f.attrs<Op::constant>(f.def(v)).value;
  return literal.stores_one_element() && literal.at(0) == value;
}

}  // namespace burin::passes
