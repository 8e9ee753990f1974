#include "ir/eval/eval.h"
#include "ir/eval/rules.h"

namespace burin::ir::eval {

Literals evaluate(Tag<Op::call>, const Operands& in, const attrs::call& a) {
  return ir::evaluate(*a.body, in.literals);
}
Literals evaluate(Tag<Op::composite>, const Operands& in, const attrs::composite& a) {
  return ir::evaluate(*a.body, in.literals);
}
Literals evaluate(Tag<Op::custom_jvp>, const Operands& in, const attrs::custom_jvp& a) {
  return ir::evaluate(*a.body, in.literals);
}
Literals evaluate(Tag<Op::custom_vjp>, const Operands& in, const attrs::custom_vjp& a) {
  return ir::evaluate(*a.body, in.literals);
}
Literals evaluate(Tag<Op::checkpoint>, const Operands& in, const attrs::checkpoint& a) {
  return ir::evaluate(*a.body, in.literals);
}
Literals evaluate(Tag<Op::optimization_barrier>, const Operands& in, const attrs::optimization_barrier&) {
  return Literals(in.literals.begin(), in.literals.end());
}
Literals evaluate(Tag<Op::fusion>, const Operands& in, const attrs::fusion& a) {
  return ir::evaluate(*a.body, in.literals);
}

}  // namespace burin::ir::eval
