// Which tiles of the domain a mask hides as a whole, read off comparisons of positions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "passes/constants.h"
#include "passes/lower/attention_emitter.h"

namespace burin::passes::lower {
namespace {

using Conditions = std::vector<Affine>;

class MaskReader {
 public:
  MaskReader(const Function& body, const AttentionPlan& plan) : body_(body), plan_(plan) {
    for (std::size_t axis = 0; axis < plan.num_axes(); ++axis) space_.declare(kernel_.new_var(""), plan.extents[axis]);
  }

  // For what is made of the exponentials of the target.
  void look_at(OpId target) {
    rows_are_guarded_ = true;
    std::vector<ValueId> stack = {summed_value(body_, plan_, target)};
    std::set<ValueId> seen;
    while (!stack.empty() && rows_are_guarded_) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (body_.is_arg(v) || !seen.insert(v).second) continue;
      const OpId op = body_.def(v);
      const Op kind = body_.kind(op);
      if (kind == Op::exp || kind == Op::dot_general) continue;
      if (kind == Op::div) rows_are_guarded_ = is_nonzero(body_.operand(op, 1));
      for (ValueId operand : body_.operands(op)) stack.push_back(operand);
    }
  }

  // What must hold somewhere in a tile so that v, of the domain, is not zero all over it. Products with zero count as
  // zero.
  Conditions for_nonzero(ValueId v) {
    if (body_.is_arg(v)) return {};
    const OpId op = body_.def(v);
    const auto at = [&](std::size_t i) { return body_.operand(op, i); };
    switch (body_.kind(op)) {
      case Op::neg:
      case Op::convert:
      case Op::reshape:
      case Op::transpose:
      case Op::stop_gradient:
        return in_domain(at(0)) ? for_nonzero(at(0)) : Conditions{};
      case Op::div:
        return in_domain(at(0)) ? for_nonzero(at(0)) : Conditions{};
      case Op::mul: {
        Conditions all;
        for (std::size_t i : {0, 1})
          if (in_domain(at(i))) add(all, for_nonzero(at(i)));
        return all;
      }
      case Op::add:
      case Op::sub:
        return in_domain(at(0)) && in_domain(at(1)) ? common(for_nonzero(at(0)), for_nonzero(at(1))) : Conditions{};
      case Op::select:
        for (std::size_t i : {1, 2}) {
          if (!is_constant(at(3 - i), 0)) continue;
          Conditions all = in_domain(at(i)) ? for_nonzero(at(i)) : Conditions{};
          if (plan_.level[at(0).index] == AttentionLevel::free) add(all, for_value(at(0), place(v), i == 1));
          return all;
        }
        return {};
      case Op::exp: {
        if (body_.is_arg(at(0)) || body_.kind(body_.def(at(0))) != Op::sub) return {};
        const ValueId logits = body_.operand(body_.def(at(0)), 0), shift = body_.operand(body_.def(at(0)), 1);
        if (!in_domain(logits)) return {};
        Conditions all = above_lowest(logits);
        // Below a shift of -inf the exponential of -inf is NaN, not zero; the sum of a softmax made here sees to that
        // itself.
        const bool zero = plan_.maximum.valid() || (is_guarded(shift) && rows_are_guarded_) ||
                          every_row_has_one(all, same_along(shift, place(v)));
        return zero ? all : Conditions{};
      }
      default:
        return {};
    }
  }

  // What must hold somewhere in a tile so that v is not -inf all over it.
  Conditions above_lowest(ValueId v) {
    if (body_.is_arg(v)) return {};
    const OpId op = body_.def(v);
    const auto at = [&](std::size_t i) { return body_.operand(op, i); };
    const double lowest = -std::numeric_limits<double>::infinity();
    switch (body_.kind(op)) {
      case Op::convert:
      case Op::reshape:
      case Op::transpose:
      case Op::stop_gradient:
        return in_domain(at(0)) ? above_lowest(at(0)) : Conditions{};
      case Op::select:
        for (std::size_t i : {1, 2}) {
          if (!is_constant(at(3 - i), lowest)) continue;
          Conditions all = in_domain(at(i)) ? above_lowest(at(i)) : Conditions{};
          if (plan_.level[at(0).index] == AttentionLevel::free) add(all, for_value(at(0), place(v), i == 1));
          return all;
        }
        return {};
      default:
        return {};
    }
  }

 private:
  bool in_domain(ValueId v) const { return plan_.level[v.index] == AttentionLevel::domain; }
  const Index& place(ValueId v) const { return *plan_.place[v.index]; }
  static void add(Conditions& all, const Conditions& more) {
    for (const Affine& a : more)
      if (std::find(all.begin(), all.end(), a) == all.end()) all.push_back(a);
  }
  static Conditions common(const Conditions& a, const Conditions& b) {
    Conditions both;
    for (const Affine& c : a)
      if (std::find(b.begin(), b.end(), c) != b.end()) both.push_back(c);
    return both;
  }
  bool is_constant(ValueId v, double value) const {
    while (!body_.is_arg(v) && (body_.kind(body_.def(v)) == Op::broadcast || body_.kind(body_.def(v)) == Op::reshape))
      v = body_.operand(body_.def(v), 0);
    return passes::is_constant(body_, v, value);
  }

  // select(x == -inf, a finite number, x), spread.
  bool is_guarded(ValueId v) const {
    if (body_.is_arg(v)) return false;
    const OpId op = body_.def(v);
    switch (body_.kind(op)) {
      case Op::broadcast:
      case Op::reshape:
      case Op::transpose:
      case Op::stop_gradient:
        return is_guarded(body_.operand(op, 0));
      case Op::select:
        break;
      default:
        return false;
    }
    const ValueId condition = body_.operand(op, 0);
    if (body_.is_arg(condition) || body_.kind(body_.def(condition)) != Op::eq) return false;
    const OpId eq = body_.def(condition);
    return body_.operand(eq, 0) == body_.operand(op, 2) &&
           is_constant(body_.operand(eq, 1), -std::numeric_limits<double>::infinity()) &&
           is_constant(body_.operand(op, 1), 0);
  }

  // A constant, or select(x == -inf, a constant, ...), spread: what a row without keys is divided by.
  bool is_nonzero(ValueId v) const {
    if (body_.is_arg(v)) return false;
    const OpId op = body_.def(v);
    switch (body_.kind(op)) {
      case Op::constant:
        return !is_constant(v, 0) && body_.attrs<Op::constant>(op).value.stores_one_element();
      case Op::broadcast:
      case Op::reshape:
      case Op::transpose:
      case Op::convert:
      case Op::stop_gradient:
        return is_nonzero(body_.operand(op, 0));
      case Op::select:
        break;
      default:
        return false;
    }
    const ValueId condition = body_.operand(op, 0), given = body_.operand(op, 1);
    if (body_.is_arg(condition) || body_.kind(body_.def(condition)) != Op::eq || body_.is_arg(given)) return false;
    return is_constant(body_.operand(body_.def(condition), 1), -std::numeric_limits<double>::infinity()) &&
           is_nonzero(given);
  }

  // The axis of a tile along which the shift, spread to where v lies, stays the same.
  std::optional<std::size_t> same_along(ValueId shift, Index at) {
    while (!body_.is_arg(shift)) {
      const OpId op = body_.def(shift);
      if (const Op kind = body_.kind(op); kind != Op::broadcast && kind != Op::reshape && kind != Op::transpose) break;
      at = emitter().move_index(op, at);
      shift = body_.operand(op, 0);
    }
    const Affine flat = emitter().flat(at);
    const bool fixed = flat.coefficient(VarId{plan_.fixed}) != 0, moving = flat.coefficient(VarId{plan_.moving}) != 0;
    if (fixed == moving) return std::nullopt;
    return fixed ? plan_.moving : plan_.fixed;
  }

  // Does each row of the softmax hold a position where all conditions do? Known when there is one condition, from the
  // row that it suits least.
  bool every_row_has_one(const Conditions& conditions, std::optional<std::size_t> along) const {
    if (conditions.empty()) return true;
    if (conditions.size() != 1 || !along) return false;
    std::int64_t least = conditions[0].constant;
    for (const auto& [var, coefficient] : conditions[0].terms) {
      const bool best = var.index == *along;
      if ((coefficient > 0) == best) least += coefficient * (plan_.extents[var.index] - 1);
    }
    return least >= 0;
  }

  std::optional<Affine> position(ValueId v, const Index& at) {
    if (body_.is_arg(v) || !is_int(body_.type(v).dtype)) return std::nullopt;
    const OpId op = body_.def(v);
    const DType dtype = body_.type(v).dtype;
    std::optional<Affine> found;
    const auto operand = [&](std::size_t i) { return position(body_.operand(op, i), at); };
    switch (body_.kind(op)) {
      case Op::iota:
        found = emitter().dims(at)[static_cast<std::size_t>(body_.attrs<Op::iota>(op).axis)];
        break;
      case Op::constant: {
        const Literal value = body_.attrs<Op::constant>(op).value;
        if (value.stores_one_element()) found = Affine(value.int_at(0));
        break;
      }
      case Op::add:
      case Op::sub: {
        const auto a = operand(0), b = operand(1);
        if (a && b) found = body_.kind(op) == Op::add ? *a + *b : *a - *b;
        break;
      }
      case Op::convert:
        if (is_int(body_.type(body_.operand(op, 0)).dtype)) found = operand(0);
        break;
      case Op::reshape:
      case Op::transpose:
      case Op::broadcast:
        found = position(body_.operand(op, 0), emitter().move_index(op, at));
        break;
      default:
        break;
    }
    if (!found || (dtype != DType::i32 && dtype != DType::i64)) return std::nullopt;
    for (const auto& [var, coefficient] : found->terms)
      if (var.index >= plan_.num_axes()) return std::nullopt;  // divided at run time
    const auto [low, high] = space_.range(*found);
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    if (low < -limit || high > limit) return std::nullopt;
    return found;
  }

  // What must hold somewhere in a tile so that v, a bool, is `wanted` somewhere.
  Conditions for_value(ValueId v, const Index& at, bool wanted) {
    if (body_.is_arg(v)) return {};
    const OpId op = body_.def(v);
    const Op kind = body_.kind(op);
    const auto operand = [&](std::size_t i) { return body_.operand(op, i); };
    switch (kind) {
      case Op::ge:
      case Op::gt:
      case Op::le:
      case Op::lt:
      case Op::eq: {
        const auto a = position(operand(0), at), b = position(operand(1), at);
        if (!a || !b) return {};
        const Affine up = *a - *b, down = *b - *a;
        if (kind == Op::eq) return wanted ? Conditions{up, down} : Conditions{};
        // a >= b, a > b, or their opposites b > a, b >= a.
        const bool above = (kind == Op::ge || kind == Op::gt) == wanted,
                   strict = (kind == Op::gt || kind == Op::lt) == wanted;
        return {(above ? up : down) - Affine(strict ? 1 : 0)};
      }
      case Op::bit_not:
        return for_value(operand(0), at, !wanted);
      case Op::bit_and:
      case Op::bit_or: {
        Conditions first = for_value(operand(0), at, wanted);
        const Conditions second = for_value(operand(1), at, wanted);
        if ((kind == Op::bit_and) != wanted) return common(first, second);
        add(first, second);
        return first;
      }
      case Op::select:
        for (std::size_t i : {1, 2}) {
          if (!is_constant(operand(3 - i), wanted ? 0 : 1)) continue;
          Conditions all = for_value(operand(0), at, i == 1);
          add(all, for_value(operand(i), at, wanted));
          return all;
        }
        return {};
      case Op::reshape:
      case Op::transpose:
      case Op::broadcast:
        return for_value(operand(0), emitter().move_index(op, at), wanted);
      default:
        return {};
    }
  }

  ElementEmitter& emitter() {
    if (!emitter_) emitter_.emplace(body_, b_, space_, std::vector<BufferId>(body_.args().size()));
    return *emitter_;
  }

  const Function& body_;
  const AttentionPlan& plan_;
  Kernel kernel_;  // nothing of it is kept
  BlockBuilder b_{kernel_};
  IndexSpace space_;
  std::optional<ElementEmitter> emitter_;
  bool rows_are_guarded_ = true;  // nothing divides by the sum of a row without keys
};

}  // namespace

std::vector<Affine> needed_in_tile(const Function& body, const AttentionPlan& plan) {
  MaskReader reader(body, plan);
  std::optional<Conditions> all;
  for (OpId target : plan.targets) {
    const ValueId summed = summed_value(body, plan, target);
    reader.look_at(target);
    const Conditions mine = target == plan.maximum ? reader.above_lowest(summed) : reader.for_nonzero(summed);
    if (!all) {
      all = mine;
      continue;
    }
    std::erase_if(*all, [&](const Affine& a) { return std::find(mine.begin(), mine.end(), a) == mine.end(); });
  }
  return all.value_or(Conditions{});
}

}  // namespace burin::passes::lower
