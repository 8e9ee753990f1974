// The walk of a task over the tiles of the moving axis, and which of them it leaves out.
#include <algorithm>

#include "base/check.h"
#include "passes/lower/attention_emitter.h"

namespace burin::passes::lower {

void AttentionEmitter::emit_tile(const Affine& tile) {
  for (const Factor& factor : moving_) pack_moving(factor, tile);
  for (std::size_t i = 0; i < plan_.scores.size(); ++i) multiply_score(i);
  if (plan_.maximum.valid())
    sweep_rescaling(tile);
  else
    sweep(tile);
  for (const Part& part : parts_)
    for (BufferId buffer : part.buffers) clear_missing(buffer, tiles_.fixed, tile, part.form != PartForm::f32);
  for (const Product& product : products_) add_product(product);
}

ScalarId AttentionEmitter::is_below_zero(const Affine& a) {
  return b_.let(Op::lt, {b_.index(a, DType::i64), b_.constant(Literal::scalar_int(DType::i64, 0))}, DType::bool_);
}

// Once per task. Beyond the positions of the domain all numbers say the same.
void AttentionEmitter::bind_numbers(const TileNeeds& needs) {
  const auto wide = [&](std::int64_t value) { return b_.constant(Literal::scalar_int(DType::i64, value)); };
  ScalarId every;
  const auto or_else = [&](ScalarId more) {
    every = every.valid() ? b_.let(Op::bit_or, {every, more}, DType::bool_) : more;
  };
  at_[plan_.fixed] = at_[plan_.moving] = Affine(0);
  for (const RunTimeNumber& number : needs.numbers) {
    std::int64_t low = PositionReader::limit, high = -low;
    for (const auto* list : {&needs.needed, &needs.provided})
      for (const Affine& condition : *list) {
        const std::int64_t sign = condition.coefficient(number.var);
        if (sign == 0) continue;
        BURIN_CHECK(sign == 1 || sign == -1, "a condition on a multiple of a number");
        std::int64_t least = condition.constant, most = condition.constant;
        for (const auto& [var, coefficient] : condition.terms)
          if (var != number.var) (coefficient < 0 ? least : most) += coefficient * (plan_.extents[var.index] - 1);
        low = std::min(low, sign > 0 ? -most - 1 : least);
        high = std::max(high, sign > 0 ? -least : most + 1);
      }
    ScalarId value = emitter_->emit(number.value, placed(number.at));
    if (body_.type(number.value).dtype != DType::i64 && (low != 0 || number.may_wrap))
      value = b_.let(Op::convert, {value}, DType::i64);
    if (number.may_wrap) {
      or_else(b_.let(Op::ge, {value, wide(PositionReader::limit)}, DType::bool_));
      or_else(b_.let(Op::le, {value, wide(-PositionReader::limit)}, DType::bool_));
    }
    if (low != 0) {
      value = b_.let(Op::max, {value, wide(low)}, DType::i64);
      value = b_.let(Op::min, {value, wide(high)}, DType::i64);
      value = b_.let(Op::sub, {value, wide(low)}, DType::i64);
    }
    const VarId var = b_.bind(value, high - low + 1, IndexMode::clip, -1);
    numbers_[number.var] = Affine(var) + Affine(low);
  }
  for (const Affine& provided : needs.provided) {
    Affine here(provided.constant);
    for (const auto& [var, coefficient] : provided.terms) here = here + numbers_.at(var) * coefficient;
    or_else(is_below_zero(here));
  }
  if (!every.valid()) return;
  every_tile_ = bind_flag(every);
}

VarId AttentionEmitter::bind_flag(ScalarId flag) {
  const VarId var = b_.bind(b_.let(Op::convert, {flag}, DType::i32), 2, IndexMode::clip, -1);
  return var;
}

// exp gives 0 for what lies further below than this; -103.98 would do.
constexpr double far_below = -128;

VarId AttentionEmitter::bind_floors(const TileNeeds& needs, const Affine& tile) {
  ScalarId near;
  for (const FiniteFloor& floor : needs.floors) {
    at_[plan_.fixed] = at_[plan_.moving] = Affine(0);
    const bool lanes = floor.per_fixed;
    const AccId least = b_.acc(Reduce::min, DType::f32, lanes ? tiles_.lanes : 1);
    if (!floor.shift.valid())
      over_fixed(LoopKind::vector,
                 [&](const Affine& f) { b_.accumulate(least, b_.load(row_sums_.at(plan_.maximum), {f})); });
    else if (floor.per_fixed)
      over_fixed(LoopKind::vector,
                 [&](const Affine&) { b_.accumulate(least, emitter_->emit(floor.shift, placed(floor.at))); });
    else
      over_moving(tile, [&](const Affine&) { b_.accumulate(least, emitter_->emit(floor.shift, placed(floor.at))); });
    const ScalarId below =
        b_.let(Op::sub, {b_.constant(DType::f32, floor.value), b_.finish(least, DType::f32)}, DType::f32);
    // A NaN is not far above either.
    const ScalarId far = b_.let(Op::lt, {below, b_.constant(DType::f32, far_below)}, DType::bool_);
    const ScalarId counts = b_.let(Op::bit_not, {far}, DType::bool_);
    near = near.valid() ? b_.let(Op::bit_or, {near, counts}, DType::bool_) : counts;
  }
  return bind_flag(near);
}

// Somewhere in the tile means in its corner where the condition is greatest.
std::vector<Affine> AttentionEmitter::conditions_of(const TileNeeds& needs, const Affine& tile) {
  std::vector<Affine> conditions;
  VarId near_floor;
  for (const Affine& condition : needs.needed) {
    Affine positions(condition.constant), here;
    for (const auto& [var, coefficient] : condition.terms) {
      if (const auto number = numbers_.find(var); number != numbers_.end())
        here = here + number->second * coefficient;
      else
        positions = positions + Affine(var, coefficient);
    }
    std::vector<Affine> at = at_;
    at[plan_.fixed] = fixed_start_ + Affine(condition.coefficient(VarId{plan_.fixed}) > 0 ? tiles_.fixed - 1 : 0);
    at[plan_.moving] =
        tile * tiles_.moving + Affine(condition.coefficient(VarId{plan_.moving}) > 0 ? tiles_.moving - 1 : 0);
    std::swap(at, at_);
    here = here + at_axes(positions);
    std::swap(at, at_);
    const std::int64_t least = space_.range(here).first;
    if (least >= 0) continue;
    if (every_tile_.valid()) here = here + Affine(every_tile_, -least);
    if (!needs.floors.empty()) {
      if (!near_floor.valid()) near_floor = bind_floors(needs, tile);
      here = here + Affine(near_floor, -least);
    }
    conditions.push_back(space_.resolve(here));
  }
  return conditions;
}

void AttentionEmitter::emit_task() {
  clear_padding();
  for (const Factor& factor : fixed_) pack_fixed(factor);
  begin_sums();
  const TileNeeds needs = needed_in_tile(body_, plan_);
  bind_numbers(needs);
  b_.loop("tile", 0, {Affine(tiles_.moving_blocks)}, LoopKind::serial, 1, [&](VarId tile) {
    std::vector<Affine> conditions = conditions_of(needs, Affine(tile));
    if (conditions.empty())
      emit_tile(Affine(tile));
    else
      b_.when(std::move(conditions), [&] { emit_tile(Affine(tile)); });
  });
  finish_sums();
  finish_products();
}

}  // namespace burin::passes::lower
