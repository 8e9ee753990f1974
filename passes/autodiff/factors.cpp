// One factor for what a tangent is multiplied with on several ways that meet again: x * sigmoid(x) has the tangent t * (s + x * s * (1 - s)),
// not t * s + t * x * s * (1 - s). The factor does not depend on the tangent, so it belongs to the forward function: backward
// needs one array instead of all that its parts are made of. (Preaccumulation of local Jacobians: Griewank and Walther, Evaluating
// Derivatives, 10.2.)
#include "ir/rewriter.h"
#include "passes/autodiff/rules.h"
#include "passes/constants.h"
#include "passes/passes.h"

namespace burin::passes::autodiff {
namespace {

class Gatherer {
 public:
  Gatherer(const Function& f, const std::vector<bool>& tangents)
      : f_(f), linear_(depends_on(f, tangents)), base_(f.num_values()), meets_(f.num_ops(), false), wanted_(f.num_values(), false) {}

  Function run() {
    for (ValueId arg : f_.args()) base_[arg.index] = arg;
    bool any = false;
    f_.for_each_op([&](OpId op) {
      for (std::size_t r = 0; r < f_.num_results(op); ++r) base_[f_.result(op, r).index] = f_.result(op, r);
      if (f_.num_results(op) == 1 && linear_[f_.result(op).index]) base_[f_.result(op).index] = find_base(op);
      any = any || meets_[op.index];
    });
    if (!any) return f_;
    for (std::size_t i = f_.num_ops(); i-- > 0;) {
      const OpId op{i};
      if (!meets_[i] && (f_.num_results(op) != 1 || !wanted_[f_.result(op).index])) continue;
      wanted_[f_.result(op).index] = true;
      if (base_[f_.result(op).index] == f_.result(op)) continue;
      for (ValueId operand : f_.operands(op)) wanted_[operand.index] = wanted_[operand.index] || linear_[operand.index];
    }
    Rewriter r(f_);
    std::vector<std::optional<ValueId>> factors(f_.num_values());  // none: one
    f_.for_each_op([&](OpId op) {
      r.b.set_location(f_.location(op));
      const bool scaled = f_.num_results(op) == 1 && wanted_[f_.result(op).index] && base_[f_.result(op).index] != f_.result(op);
      if (scaled) factors[f_.result(op).index] = factor(r, op, factors);
      if (meets_[op.index])
        r.replace(f_.result(op), r.b.mul(r[base_[f_.result(op).index]], *factors[f_.result(op).index]));
      else
        r.copy(op);
    });
    return remove_dead(r.finish());
  }

 private:
  // The value whose multiple the op's result is, element by element; the result itself when there is none.
  ValueId find_base(OpId op) {
    const ValueId result = f_.result(op);
    const auto operands = f_.operands(op);
    const auto same = [&](ValueId a, ValueId b) {  // ways that meet
      if (base_[a.index] != base_[b.index]) return result;
      meets_[op.index] = true;
      return base_[a.index];
    };
    switch (f_.kind(op)) {
      case Op::neg: return base_[operands[0].index];
      case Op::mul:
        if (linear_[operands[0].index] && linear_[operands[1].index]) return result;
        return base_[operands[linear_[operands[0].index] ? 0 : 1].index];
      case Op::div: return linear_[operands[1].index] ? result : base_[operands[0].index];
      case Op::add:
      case Op::sub: return linear_[operands[0].index] && linear_[operands[1].index] ? same(operands[0], operands[1]) : result;
      case Op::select:
        if (linear_[operands[0].index]) return result;
        if (is_constant(f_, operands[1], 0)) return base_[operands[2].index];
        if (is_constant(f_, operands[2], 0)) return base_[operands[1].index];
        return linear_[operands[1].index] && linear_[operands[2].index] ? same(operands[1], operands[2]) : result;
      default: return result;
    }
  }

  ValueId factor(Rewriter& r, OpId op, const std::vector<std::optional<ValueId>>& factors) {
    const Type& type = f_.type(f_.result(op));
    const auto operands = f_.operands(op);
    const auto of = [&](std::size_t i) {
      if (!linear_[operands[i].index]) return r[operands[i]];
      const auto& known = factors[operands[i].index];
      return known ? *known : r.b.full(type, 1);
    };
    switch (f_.kind(op)) {  // lists: C++ leaves open in which order it evaluates what a call is given
      case Op::neg: return r.b.neg(of(0));
      case Op::mul: {
        const std::size_t i = linear_[operands[0].index] ? 0 : 1;
        const auto& known = factors[operands[i].index];
        return known ? r.b.mul(*known, of(1 - i)) : of(1 - i);
      }
      case Op::div: return r.b.emit<Op::div>({of(0), of(1)});
      case Op::add: return r.b.emit<Op::add>({of(0), of(1)});
      case Op::sub: return r.b.emit<Op::sub>({of(0), of(1)});
      default: return r.b.emit<Op::select>({r[operands[0]], of(1), of(2)});
    }
  }

  const Function& f_;
  std::vector<bool> linear_;
  std::vector<ValueId> base_;  // by value
  std::vector<bool> meets_;    // by op: two ways from one base come together
  std::vector<bool> wanted_;   // by value: its factor
};

}  // namespace

Function gather_factors(const Function& f, const std::vector<bool>& tangents) { return Gatherer(f, tangents).run(); }

}  // namespace burin::passes::autodiff
