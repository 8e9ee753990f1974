// 16-bit arithmetic in f32, rounded where a 16-bit value is asked for by something else than arithmetic: memory, a convert that the
// user wrote, a comparison, a result. Chains in between stay in f32; the converts stand in the text.
#include <optional>

#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

class Widener {
 public:
  explicit Widener(const Function& f) : f_(f), b_(f.name()), narrow_(f.num_values()), wide_(f.num_values()) {}

  Function run() {
    for (ValueId arg : f_.args()) narrow_[arg.index] = b_.add_arg(f_.type(arg), f_.value_name(arg));
    f_.for_each_op([&](OpId op) {
      b_.set_location(f_.location(op));
      if (widens(op))
        widen(op);
      else
        copy(op);
    });
    std::vector<ValueId> results;
    for (ValueId result : f_.results()) results.push_back(narrow(result));
    return b_.finish(std::move(results));
  }

 private:
  bool widens(OpId op) const {
    if (f_.num_results(op) != 1 || !is_half(f_.type(f_.result(op)).dtype)) return false;
    switch (f_.kind(op)) {
      case Op::convert:
      case Op::bitcast:
      case Op::stop_gradient: return false;
      case Op::reduce_sum:
      case Op::reduce_prod:
      case Op::reduce_max:
      case Op::reduce_min:
      case Op::dot_general: return true;
      default: return family_of(f_.kind(op)) == Family::elementwise;
    }
  }

  ValueId narrow(ValueId v) {
    ValueId& value = narrow_[v.index];
    if (!value.valid()) value = b_.convert(*wide_[v.index], f_.type(v).dtype);
    return value;
  }

  ValueId wide(ValueId v) {
    if (!is_half(f_.type(v).dtype)) return narrow(v);
    auto& value = wide_[v.index];
    if (!value) value = b_.convert(narrow_[v.index], DType::f32);
    return *value;
  }

  void widen(OpId op) {
    std::vector<ValueId> operands;
    const bool dot = f_.kind(op) == Op::dot_general;  // its operands are read as they are and summed in f32 anyway
    for (ValueId operand : f_.operands(op)) operands.push_back(dot ? narrow(operand) : wide(operand));
    std::vector<AttrValue> attributes(f_.attributes(op).begin(), f_.attributes(op).end());
    if (dot) attributes.back() = DType::f32;
    wide_[f_.result(op).index] = b_.append(f_.kind(op), operands, std::move(attributes));
  }

  void copy(OpId op) {
    std::vector<ValueId> operands;
    for (ValueId operand : f_.operands(op)) operands.push_back(narrow(operand));
    const ValueId first = b_.append_copy(f_, op, operands);
    for (std::size_t r = 0; r < f_.num_results(op); ++r) narrow_[f_.result(op, r).index] = ValueId{first.index + r};
  }

  const Function& f_;
  Builder b_;
  std::vector<ValueId> narrow_;
  std::vector<std::optional<ValueId>> wide_;
};

}  // namespace

ir::Function widen_half(const ir::Function& f) {
  const auto gives_half = [&](OpId op) { return f.num_results(op) == 1 && is_half(f.type(f.result(op)).dtype); };
  return any_op(f, gives_half) ? Widener(f).run() : f;
}

}  // namespace burin::passes
