#include <algorithm>
#include <optional>

#include "ir/rewriter.h"
#include "ir/eval/eval.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

constexpr std::int64_t most_bytes = 64 << 10;

// Is every result bit of `op` laid down, so that evaluator and machine code cannot differ?
bool is_exact(const Function& f, OpId id) {
  const bool on_floats = f.record(id).num_operands > 0 && is_float(f.type(f.operand(id, 0)).dtype);
  switch (f.kind(id)) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_away:
    case Op::sqrt:
    case Op::is_finite:
    case Op::bit_not:
    case Op::popcount:
    case Op::count_leading_zeros:
    case Op::stop_gradient:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::max:
    case Op::min:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shift_left:
    case Op::shift_right_logical:
    case Op::shift_right_arithmetic:
    case Op::threefry2x32:
    case Op::select:
    case Op::clamp:
    case Op::convert:
    case Op::bitcast:
      return true;
    case Op::pow:
      return !on_floats;
    case Op::gather:
      return f.attrs<Op::gather>(id).mode == IndexMode::clip;  // mode error speaks when the program runs
    case Op::dynamic_slice:
    case Op::dynamic_update_slice:
      return true;
    default:
      break;
  }
  switch (family_of(f.kind(id))) {
    case Family::compare:
    case Family::movement:
      return true;
    case Family::reduce:
      return !on_floats;
    default:
      return false;
  }
}

// Does one stored element per operand give one stored element?
bool keeps_splats(Op op) {
  if (op == Op::pad || op == Op::concatenate) return false;
  const Family family = family_of(op);
  return family == Family::elementwise || family == Family::compare || family == Family::movement;
}

class Folder {
 public:
  explicit Folder(const Function& f) : f_(f), b_(f.name()), values_(f.num_values()), known_(f.num_values()) {}

  Function run() {
    for (ValueId arg : f_.args()) values_[arg.index] = b_.add_arg(f_.type(arg), f_.value_name(arg));
    f_.for_each_op([&](OpId op) {
      if (f_.kind(op) == Op::constant) known_[f_.result(op).index] = f_.attrs<Op::constant>(op).value;
      if (!fold(op)) copy(op);
    });
    std::vector<ValueId> results;
    for (ValueId result : f_.results()) results.push_back(value(result));
    return b_.finish(std::move(results));
  }

 private:
  bool fold(OpId op) {
    if (f_.num_results(op) != 1 || f_.record(op).num_operands == 0 || !is_exact(f_, op)) return false;
    std::vector<Literal> operands;
    bool splats = true;
    std::int64_t stored = 0;
    for (ValueId operand : f_.operands(op)) {
      if (!known_[operand.index]) return false;
      operands.push_back(*known_[operand.index]);
      const auto bytes = static_cast<std::int64_t>(operands.back().raw().size());
      splats &= bytes == static_cast<std::int64_t>(size_of(operands.back().dtype()));
      stored += bytes;
    }
    const Type& type = f_.type(f_.result(op));
    if (!(splats && keeps_splats(f_.kind(op)))) {
      if (type.bytes() > most_bytes) return false;
      if (f_.kind(op) == Op::broadcast && type.bytes() > stored) return false;
    }
    known_[f_.result(op).index] =
        evaluate_op(f_.kind(op), operands, f_.attributes(op), std::span(&type, 1), to_string(f_.location(op)))[0];
    return true;
  }

  // A folded value becomes an op only where an op that stays needs it.
  ValueId value(ValueId old) {
    ValueId& mapped = values_[old.index];
    if (!mapped.valid()) {
      b_.set_location(f_.location(f_.def(old)));
      mapped = b_.constant(*known_[old.index]);
      if (const auto name = f_.value_name(old); !name.empty()) b_.set_value_name(mapped, name);
    }
    return mapped;
  }

  void copy(OpId op) {
    std::vector<ValueId> operands;
    for (ValueId operand : f_.operands(op)) operands.push_back(value(operand));
    const ValueId first = b_.append_copy(f_, op, operands);
    for (std::size_t i = 0; i < f_.num_results(op); ++i) values_[f_.result(op, i).index] = ValueId{first.index + i};
  }

  const Function& f_;
  Builder b_;
  std::vector<ValueId> values_;                // by old value; invalid until it has a new one
  std::vector<std::optional<Literal>> known_;  // by old value
};

}  // namespace

Function fold_constants(const Function& f) {
  // What is folded first has constants alone for operands.
  const auto may_fold = [&](OpId op) {
    const auto operands = f.operands(op);
    return !operands.empty() && f.num_results(op) == 1 && is_exact(f, op) && std::all_of(operands.begin(), operands.end(), [&](ValueId v) {
      return !f.is_arg(v) && f.kind(f.def(v)) == Op::constant;
    });
  };
  return any_op(f, may_fold) ? Folder(f).run() : f;
}

}  // namespace burin::passes
