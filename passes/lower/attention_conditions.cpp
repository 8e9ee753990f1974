// Comparisons of positions as conditions on tiles.
#include "passes/lower/attention_conditions.h"

#include <algorithm>

#include "passes/constants.h"

namespace burin::passes::lower {
namespace {

bool contains(const std::vector<Affine>& list, const Affine& a) { return std::ranges::find(list, a) != list.end(); }

void add_to(std::vector<Affine>& list, const std::vector<Affine>& more) {
  for (const Affine& a : more)
    if (!contains(list, a)) list.push_back(a);
}

void add_to(std::vector<FiniteFloor>& list, const std::vector<FiniteFloor>& more) {
  for (const FiniteFloor& floor : more) {
    const auto same = std::ranges::find_if(
        list, [&](const FiniteFloor& known) { return known.shift == floor.shift && known.at.flat == floor.at.flat; });
    if (same == list.end())
      list.push_back(floor);
    else
      same->value = std::max(same->value, floor.value);
  }
}

}  // namespace

void TileConditions::add(const TileConditions& more) {
  add_to(needed, more.needed);
  add_to(provided, more.provided);
  add_to(floors, more.floors);
}

TileConditions TileConditions::common(const TileConditions& a, const TileConditions& b) {
  TileConditions both{{}, a.provided, a.floors};
  for (const Affine& c : a.needed)
    if (contains(b.needed, c)) both.needed.push_back(c);
  add_to(both.provided, b.provided);
  add_to(both.floors, b.floors);
  return both;
}

PositionReader::PositionReader(const Function& body, const AttentionPlan& plan) : body_(body), plan_(plan) {
  for (std::size_t axis = 0; axis < plan.num_axes(); ++axis) b_.new_var("", plan.extents[axis]);
}

ElementEmitter& PositionReader::emitter() {
  if (!emitter_) emitter_.emplace(body_, b_, space_, std::vector<BufferId>(body_.args().size()));
  return *emitter_;
}

// Of axes alone, of neither of the two that a tile has.
bool PositionReader::stays(const Affine& a) const {
  return std::ranges::all_of(a.terms, [&](const auto& term) {
    return is_axis(term.first) && term.first.index != plan_.fixed && term.first.index != plan_.moving;
  });
}

// Whether the element is the same at all positions of a task.
bool PositionReader::stays(ValueId v, const Index& at) {
  const Affine flat = emitter().flat(at);
  if (stays(flat)) return true;
  if (body_.is_arg(v)) return false;
  for (const Known& known : known_)
    if (known.value == v && known.at == flat) return known.stays;
  const OpId op = body_.def(v);
  bool result = false;
  switch (const Op kind = body_.kind(op)) {
    case Op::constant:
      result = body_.attrs<Op::constant>(op).value.stores_one_element();
      break;
    case Op::iota:
      result = stays(emitter().dims(at)[static_cast<std::size_t>(body_.attrs<Op::iota>(op).axis)]);
      break;
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast:
    case Op::slice:
    case Op::reverse:
      result = stays(body_.operand(op, 0), emitter().move_index(op, at));
      break;
    default:
      result = (family_of(kind) == Family::elementwise || family_of(kind) == Family::compare) &&
               std::ranges::all_of(body_.operands(op), [&](ValueId operand) { return stays(operand, at); });
  }
  known_.push_back({v, flat, result});
  return result;
}

VarId PositionReader::number(ValueId v, const Index& at) {
  // Any position of the tile will do.
  Affine flat = emitter().flat(at);
  for (std::size_t axis : {plan_.fixed, plan_.moving}) flat = substitute(flat, VarId{axis}, Affine(0));
  for (const RunTimeNumber& known : numbers_)
    if (known.value == v && *known.at.flat == flat) return known.var;
  numbers_.push_back({v, Index::of_flat(at.shape, flat), kernel_.new_var("")});
  return numbers_.back().var;
}

Affine PositionReader::without_numbers(const Affine& a) const {
  Affine rest(a.constant);
  for (const auto& [var, coefficient] : a.terms)
    if (is_axis(var)) rest = rest + Affine(var, coefficient);
  return rest;
}

// Nothing when more than one number is left in it.
std::optional<Affine> PositionReader::sum_of(const Affine& a, const Affine& b, bool wraps) {
  const Affine sum = a + b;
  RunTimeNumber* only = nullptr;
  for (RunTimeNumber& number : numbers_) {
    const std::int64_t in_a = a.coefficient(number.var), in_b = b.coefficient(number.var);
    if (in_a == 0 && in_b == 0) continue;
    if (only != nullptr || (in_a != 0 && in_b != 0)) return std::nullopt;
    only = &number;
  }
  if (only != nullptr) only->may_wrap |= wraps;
  return sum;
}

std::optional<Affine> PositionReader::position(ValueId v, const Index& at) {
  const DType dtype = body_.type(v).dtype;
  if (!is_int(dtype)) return std::nullopt;
  const bool signed_word = dtype == DType::i32 || dtype == DType::i64;
  std::optional<Affine> found;
  const bool is_number = signed_word && stays(v, at);
  if (!body_.is_arg(v)) {
    const OpId op = body_.def(v);
    const auto operand = [&](std::size_t i) { return position(body_.operand(op, i), at); };
    switch (const Op kind = body_.kind(op)) {
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
        if (a && b) found = sum_of(*a, kind == Op::add ? *b : *b * -1, !is_number);
        break;
      }
      case Op::convert:
        found = operand(0);
        break;
      case Op::reshape:
      case Op::transpose:
      case Op::broadcast:
        found = position(body_.operand(op, 0), emitter().move_index(op, at));
        break;
      default:
        break;
    }
  }
  const bool has_number = found && std::ranges::any_of(numbers_, [&](const RunTimeNumber& number) {
                            return found->coefficient(number.var) != 0;
                          });
  // Computed as the text says, whatever its size.
  if (is_number && (!found || has_number)) return Affine(number(v, at));
  if (!found || !signed_word) return std::nullopt;
  for (const auto& [var, coefficient] : found->terms)
    if (!is_axis(var) && std::ranges::find(numbers_, var, &RunTimeNumber::var) == numbers_.end())
      return std::nullopt;  // divided at run time
  const auto [low, high] = space_.range(without_numbers(*found));
  if (low < -limit || high > limit) return std::nullopt;
  return found;
}

TileConditions PositionReader::conditions(ValueId v, const Index& at, bool wanted) {
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
      const auto difference = sum_of(*a, *b * -1, false);
      if (!difference || (kind == Op::eq && !wanted)) return {};
      const Affine up = *difference, down = up * -1;
      if (kind == Op::eq) return {{up, down}, {}, {}};
      // a >= b, a > b, or their opposites b > a, b >= a.
      const bool above = (kind == Op::ge || kind == Op::gt) == wanted,
                 strict = (kind == Op::gt || kind == Op::lt) == wanted;
      return {{(above ? up : down) - Affine(strict ? 1 : 0)}, {}, {}};
    }
    case Op::bit_not:
      return conditions(operand(0), at, !wanted);
    case Op::bit_and:
    case Op::bit_or: {
      TileConditions first = conditions(operand(0), at, wanted);
      const TileConditions second = conditions(operand(1), at, wanted);
      if ((kind == Op::bit_and) != wanted) return TileConditions::common(first, second);
      first.add(second);
      return first;
    }
    case Op::select:
      for (std::size_t i : {1, 2}) {
        if (!is_spread_constant(body_, operand(3 - i), wanted ? 0 : 1)) continue;
        TileConditions all = conditions(operand(0), at, i == 1);
        all.add(conditions(operand(i), at, wanted));
        return all;
      }
      return {};
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast:
      return conditions(operand(0), emitter().move_index(op, at), wanted);
    default:
      return {};
  }
}

}  // namespace burin::passes::lower
