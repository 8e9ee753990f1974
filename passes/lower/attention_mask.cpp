// Which tiles of the domain a mask hides as a whole.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "passes/constants.h"
#include "passes/lower/attention_conditions.h"

namespace burin::passes::lower {
namespace {

using Conditions = TileConditions;

constexpr double lowest = -std::numeric_limits<double>::infinity();
constexpr double highest_floor = -1000;  // a number above is no mask's

class MaskReader {
 public:
  MaskReader(const Function& body, const AttentionPlan& plan) : body_(body), plan_(plan), positions_(body, plan) {}

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
          if (in_domain(at(i))) all.add(for_nonzero(at(i)));
        return all;
      }
      case Op::add:
      case Op::sub:
        return in_domain(at(0)) && in_domain(at(1)) ? Conditions::common(for_nonzero(at(0)), for_nonzero(at(1)))
                                                    : Conditions{};
      case Op::select:
        for (std::size_t i : {1, 2}) {
          if (!is_spread_constant(body_, at(3 - i), 0)) continue;
          Conditions all = in_domain(at(i)) ? for_nonzero(at(i)) : Conditions{};
          if (plan_.level[at(0).index] == AttentionLevel::free) all.add(positions_.conditions(at(0), place(v), i == 1));
          return all;
        }
        return {};
      case Op::exp: {
        if (body_.is_arg(at(0)) || body_.kind(body_.def(at(0))) != Op::sub) return {};
        const ValueId logits = body_.operand(body_.def(at(0)), 0);
        ValueId shift = body_.operand(body_.def(at(0)), 1);
        if (!in_domain(logits)) return {};
        double highest = lowest;
        Conditions all = above_lowest(logits, &highest);
        if (highest > lowest) {
          auto floor = floor_below(shift, place(v), highest);
          if (all.needed.empty() || !floor) return {};
          all.floors.push_back(*std::move(floor));
          return all;
        }
        // Below a shift of -inf the exponential of -inf is NaN, not zero; the sum of a softmax made here sees to that
        // itself.
        if (plan_.maximum.valid() || (is_guarded(shift) && rows_are_guarded_)) return all;
        Index at = place(v);
        const auto every_row = every_row_has_one(all, same_along(&shift, &at));
        if (!every_row) return {};
        all.add({{}, *every_row, {}});
        return all;
      }
      default:
        return {};
    }
  }

  // What must hold somewhere in a tile so that the maximum grows.
  Conditions for_maximum(ValueId logits) {
    double highest = lowest;
    Conditions all = above_lowest(logits, &highest);
    if (highest > lowest) all.floors.push_back({highest, {}, {}, true});
    return all;
  }

  const std::vector<RunTimeNumber>& numbers() const { return positions_.numbers(); }

  // What must hold somewhere in a tile so that v is above `highest` somewhere, which grows to what hides it.
  Conditions above_lowest(ValueId v, double* highest) {
    if (body_.is_arg(v)) return {};
    const OpId op = body_.def(v);
    const auto at = [&](std::size_t i) { return body_.operand(op, i); };
    switch (body_.kind(op)) {
      case Op::convert: {
        double before = lowest;
        const Conditions all = in_domain(at(0)) ? above_lowest(at(0), &before) : Conditions{};
        return before > lowest ? Conditions{} : all;  // which rounds what is finite
      }
      case Op::reshape:
      case Op::transpose:
      case Op::stop_gradient:
        return in_domain(at(0)) ? above_lowest(at(0), highest) : Conditions{};
      case Op::select:
        for (std::size_t i : {1, 2}) {
          const auto hidden = spread_constant(body_, at(3 - i));
          if (!hidden || !(*hidden <= highest_floor)) continue;
          *highest = std::max(*highest, *hidden);
          Conditions all = in_domain(at(i)) ? above_lowest(at(i), highest) : Conditions{};
          if (plan_.level[at(0).index] == AttentionLevel::free) all.add(positions_.conditions(at(0), place(v), i == 1));
          return all;
        }
        return {};
      default:
        return {};
    }
  }

  // Below the maximum so far where that is made here.
  std::optional<FiniteFloor> floor_below(ValueId shift, Index at, double highest) {
    if (plan_.maximum.valid()) return FiniteFloor{highest, {}, {}, true};
    const auto along = same_along(&shift, &at);
    if (!along || body_.type(shift).dtype != DType::f32) return std::nullopt;
    return FiniteFloor{highest, shift, Index::of_flat(at.shape, positions_.emitter().flat(at)), *along == plan_.moving};
  }

 private:
  bool in_domain(ValueId v) const { return plan_.level[v.index] == AttentionLevel::domain; }
  const Index& place(ValueId v) const { return *plan_.place[v.index]; }
  bool is_constant(ValueId v, double value) const { return is_spread_constant(body_, v, value); }

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

  // The axis of a tile along which the shift, spread to where it is subtracted, stays the same; shift and place become
  // those of the value that is spread.
  std::optional<std::size_t> same_along(ValueId* shift, Index* at) {
    while (!body_.is_arg(*shift)) {
      const OpId op = body_.def(*shift);
      if (const Op kind = body_.kind(op); kind != Op::broadcast && kind != Op::reshape && kind != Op::transpose) break;
      *at = positions_.emitter().move_index(op, *at);
      *shift = body_.operand(op, 0);
    }
    const Affine flat = positions_.emitter().flat(*at);
    const bool fixed = flat.coefficient(VarId{plan_.fixed}) != 0, moving = flat.coefficient(VarId{plan_.moving}) != 0;
    if (fixed == moving) return std::nullopt;
    return fixed ? plan_.moving : plan_.fixed;
  }

  // What must be >= 0 so that each row of the softmax holds a position where all conditions do: its first or its last.
  // Nothing when neither need be one.
  std::optional<std::vector<Affine>> every_row_has_one(const Conditions& conditions,
                                                       std::optional<std::size_t> along) const {
    if (conditions.needed.empty()) return std::vector<Affine>{};
    if (!along) return std::nullopt;
    std::optional<std::vector<Affine>> best;
    for (const std::int64_t position : {std::int64_t{0}, plan_.extents[*along] - 1})
      if (auto provided = provided_at(position, conditions, *along); provided && (!best || provided->empty()))
        best = std::move(provided);
    return best;
  }

  // From the row that suits each condition least.
  std::optional<std::vector<Affine>> provided_at(std::int64_t position, const Conditions& conditions,
                                                 std::size_t along) const {
    std::vector<Affine> provided;
    for (const Affine& condition : conditions.needed) {
      Affine least(condition.constant);
      for (const auto& [var, coefficient] : condition.terms) {
        if (var.index == along)
          least.constant += coefficient * position;
        else if (var.index >= plan_.num_axes())
          least = least + Affine(var, coefficient);
        else if (coefficient < 0)
          least.constant += coefficient * (plan_.extents[var.index] - 1);
      }
      if (!least.is_constant())
        provided.push_back(least);
      else if (least.constant < 0)
        return std::nullopt;
    }
    return provided;
  }

  const Function& body_;
  const AttentionPlan& plan_;
  PositionReader positions_;
  bool rows_are_guarded_ = true;  // nothing divides by the sum of a row without keys
};

}  // namespace

TileNeeds needed_in_tile(const Function& body, const AttentionPlan& plan) {
  MaskReader reader(body, plan);
  std::optional<Conditions> all;
  for (OpId target : plan.targets) {
    const ValueId summed = summed_value(body, plan, target);
    reader.look_at(target);
    const Conditions mine = target == plan.maximum ? reader.for_maximum(summed) : reader.for_nonzero(summed);
    all = all ? Conditions::common(*all, mine) : mine;
  }
  TileNeeds needs;
  if (all) needs.add(*all);
  for (const RunTimeNumber& number : reader.numbers()) {
    const auto mentions = [&](const Affine& a) { return a.coefficient(number.var) != 0; };
    if (std::ranges::any_of(needs.needed, mentions) || std::ranges::any_of(needs.provided, mentions))
      needs.numbers.push_back(number);
  }
  return needs;
}

}  // namespace burin::passes::lower
