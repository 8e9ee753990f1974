// What happens on a tile of the domain between its products, and to the sums when all tiles are done.
#include <algorithm>
#include <limits>
#include <memory>

#include "passes/lower/attention_emitter.h"

namespace burin::passes::lower {

void AttentionEmitter::begin_sums() {
  for (const auto& [op, buffer] : row_sums_) {
    const double start = op == plan_.maximum ? -std::numeric_limits<double>::infinity() : 0;
    b_.loop("f", 0, {Affine(tiles_.fixed)}, LoopKind::vector, tiles_.lanes,
            [&](VarId f) { b_.store(buffer, {Affine(f)}, b_.constant(DType::f32, start)); });
  }
  for (const Product& product : products_) {
    const BufferId sum = product.turned_sum.valid() ? product.turned_sum : product.sum;
    const Shape shape = b_.kernel().buffers[sum.index].shape;
    b_.loop("r", 0, {Affine(shape[0])}, LoopKind::serial, 1, [&](VarId r) {
      b_.loop("c", 0, {Affine(shape[1])}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        b_.store(sum, {Affine(r), Affine(c)}, b_.constant(DType::f32, 0));
      });
    });
  }
}

TileAxes AttentionEmitter::axes_of(ValueId v, const Index& at) {
  const auto along = [&](const Affine& a) {
    const auto varies = [&](std::size_t axis) {
      const auto& terms = at_[axis].terms;
      return std::ranges::any_of(terms, [&](const auto& term) { return a.coefficient(term.first) != 0; });
    };
    return TileAxes{varies(plan_.fixed), varies(plan_.moving)};
  };
  if (plan_.level[v.index] == AttentionLevel::row) return {true, false};
  if (body_.is_arg(v)) return along(emitter_->flat(at));
  const OpId op = body_.def(v);
  switch (family_of(body_.kind(op))) {
    case Family::elementwise:
    case Family::compare: {
      TileAxes axes{false, false};
      for (ValueId operand : body_.operands(op)) {
        const TileAxes its = axes_of(operand, at);
        axes = {axes.fixed || its.fixed, axes.moving || its.moving};
      }
      return axes;
    }
    default:
      break;
  }
  switch (body_.kind(op)) {
    case Op::constant:
      return {false, false};
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast:
    case Op::slice:
    case Op::reverse:
      return axes_of(body_.operand(op, 0), emitter_->move_index(op, at));
    default:
      return {};
  }
}

// Scores come from their tiles, each read once per position.
void AttentionEmitter::read_scores(const Affine& m, const Affine& f) {
  emitter_->set_hook(
      [this, m, f, known = std::map<ValueId, ScalarId>()](ValueId v, const Index&) mutable -> std::optional<ScalarId> {
        for (std::size_t i = 0; i < plan_.scores.size(); ++i) {
          if (body_.result(plan_.scores[i]) != v) continue;
          const auto [score, added] = known.try_emplace(v);
          if (added) score->second = b_.load(score_tiles_[i], {m, f});
          return score->second;
        }
        return std::nullopt;
      });
}

// A walk along the tile: what products sum is stored, what sums sum is added up, tile by tile.
void AttentionEmitter::sum_parts(const Affine& f, const Affine& tile,
                                 const std::function<PartOf(const Affine& m)>& part_at) {
  std::vector<std::pair<OpId, AccId>> running;
  for (OpId op : plan_.sums) running.emplace_back(op, b_.acc(Reduce::sum, DType::f32, 1));
  std::vector<std::vector<ScalarId>> values(parts_.size());  // of up to two positions
  const auto at_position = [&](const Affine& m) {
    read_scores(m, f);
    const PartOf part = part_at(m);
    for (const auto& [op, acc] : running) b_.accumulate(acc, part(summed_value(body_, plan_, op)));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const ScalarId value = part(parts_[i].value);
      const DType dtype = body_.type(parts_[i].value).dtype;
      const bool converts =
          parts_[i].form == PartForm::f32 && dtype != DType::f32 && !(plan_.maximum.valid() && dtype == DType::f16);
      values[i].push_back(converts ? b_.let(Op::convert, {value}, DType::f32) : value);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].form == PartForm::f32) b_.store(parts_[i].buffers[0], {m, f}, values[i].back());
    emitter_->set_hook(nullptr);
  };
  const auto store_pairs = [&](const Affine& row, const Part& part, ScalarId low, ScalarId high) {
    if (part.form == PartForm::pairs) return b_.store(part.buffers[0], {row, f}, paired(low, high));
    const auto lows = terms_of(low), highs = high.valid() ? terms_of(high) : std::array<ScalarId, 3>{};
    for (std::size_t term = 0; term < lows.size(); ++term)
      b_.store(part.buffers[term], {row, f}, paired_terms(lows[term], highs[term]));
  };
  if (std::ranges::any_of(parts_, [](const Part& part) { return part.form != PartForm::f32; })) {
    over_moving_pairs(tile, [&](const Affine& row, std::int64_t count) {
      for (auto& list : values) list.clear();
      for (std::int64_t u = 0; u < count; ++u) {
        const Affine m = row * 2 + Affine(u);
        at_moving(tile, m, [&] { at_position(m); });
      }
      for (std::size_t i = 0; i < parts_.size(); ++i)
        if (parts_[i].form != PartForm::f32)
          store_pairs(row, parts_[i], values[i][0], count == 2 ? values[i][1] : ScalarId{});
    });
  } else {
    over_moving(tile, [&](const Affine& m) {
      for (auto& list : values) list.clear();
      at_position(m);
    });
  }
  for (const auto& [op, acc] : running) {
    const ScalarId more = b_.finish(acc, DType::f32);
    ScalarId sum = b_.load(row_sums_.at(op), {f});
    if (plan_.maximum.valid()) sum = b_.let(Op::mul, {sum, b_.load(rescale_, {f})}, DType::f32);
    b_.store(row_sums_.at(op), {f}, b_.let(Op::add, {sum, more}, DType::f32));
  }
}

void AttentionEmitter::sweep(const Affine& tile) {
  over_fixed(LoopKind::vector, [&](const Affine& f) {
    sum_parts(f, tile,
              [&](const Affine&) -> PartOf { return [&](ValueId v) { return emitter_->emit(v, placed(v)); }; });
  });
}

// exp(x - maximum) must be 0, not NaN, for x = -inf while nothing else has been seen.
ScalarId AttentionEmitter::finite_or_zero(ScalarId maximum) {
  const ScalarId lowest = b_.constant(DType::f32, -std::numeric_limits<double>::infinity());
  const ScalarId none = b_.let(Op::eq, {maximum, lowest}, DType::bool_);
  return b_.let(Op::select, {none, b_.constant(DType::f32, 0), maximum}, DType::f32);
}

// v without what is known per row, made of `power` for the exponential. `done`: what this walk has emitted at this
// position.
ScalarId AttentionEmitter::part_of(ValueId v, std::map<ValueId, ScalarId>& done,
                                   const std::function<ScalarId()>& power) {
  if (const auto known = done.find(v); known != done.end()) return known->second;
  const OpId op = body_.def(v);
  const Op kind = body_.kind(op);
  const DType dtype = body_.type(v).dtype;
  const auto part = [&](std::size_t operand) { return part_of(body_.operand(op, operand), done, power); };
  const auto given = [&](std::size_t operand) { return emitter_->emit(body_.operand(op, operand), placed(v)); };
  const auto is_part = [&](std::size_t operand) {
    return exponentials(body_, plan_, body_.operand(op, operand)).has_value();
  };
  ScalarId result;
  if (kind == Op::exp) {
    result = power();
  } else if (kind == Op::convert && dtype == DType::f16) {
    result = part(0);  // as it is summed, in f32
  } else if (kind == Op::neg || kind == Op::convert) {
    result = b_.let(kind, {part(0)}, dtype);
  } else if (kind == Op::mul || kind == Op::div) {
    const std::size_t mine = is_part(0) ? 0 : 1;
    result = part(mine);
    if (!plan_.reduced[body_.operand(op, 1 - mine).index]) result = b_.let(kind, {result, given(1 - mine)}, dtype);
  } else if (kind == Op::select) {
    const bool first = is_part(1);
    const ScalarId value = part(first ? 1 : 2), zero = b_.constant(Literal::scalar_int(dtype, 0)), condition = given(0);
    result = b_.let(Op::select, {condition, first ? value : zero, first ? zero : value}, dtype);
  } else {
    result = part(0);  // moved
  }
  return done[v] = result;
}

void AttentionEmitter::sweep_rescaling(const Affine& tile) {
  const ValueId logits = body_.operand(plan_.maximum, 0);
  const BufferId maximum = row_sums_.at(plan_.maximum);
  over_fixed(LoopKind::vector, [&](const Affine& f) {
    const ScalarId before = b_.load(maximum, {f});
    const AccId highest = b_.acc(Reduce::max, DType::f32, 1, before);
    over_moving(tile, [&](const Affine& m) {
      read_scores(m, f);
      const ScalarId value = emitter_->emit(logits, placed(logits));
      b_.store(logits_, {m, f}, value);
      b_.accumulate(highest, value);
      emitter_->set_hook(nullptr);
    });
    const ScalarId now = b_.finish(highest, DType::f32);
    b_.store(maximum, {f}, now);
    const ScalarId below = finite_or_zero(now);
    b_.store(rescale_, {f}, b_.let(Op::exp, {b_.let(Op::sub, {before, below}, DType::f32)}, DType::f32));
    sum_parts(f, tile, [&](const Affine& m) -> PartOf {
      const auto power = [this, m, f, below, known = std::make_shared<ScalarId>()] {
        if (!known->valid())
          *known = b_.let(Op::exp, {b_.let(Op::sub, {b_.load(logits_, {m, f}), below}, DType::f32)}, DType::f32);
        return *known;
      };
      return [this, power, done = std::make_shared<std::map<ValueId, ScalarId>>()](ValueId v) {
        return part_of(v, *done, power);
      };
    });
  });
}

// What makes the sum what the body means by it: the distance of its own shift, then what is known per row.
std::vector<std::pair<Op, ScalarId>> AttentionEmitter::factors_of(ValueId summed, const Affine& f) {
  const auto found = exponentials(body_, plan_, summed);
  if (!found) return {};
  emitter_->set_hook([this, f](ValueId v, const Index&) -> std::optional<ScalarId> {
    for (const auto& [op, buffer] : row_sums_)
      if (body_.result(op) == v) return b_.load(buffer, {f});
    return std::nullopt;
  });
  const ValueId shift = found->shift(body_);
  const ScalarId below = finite_or_zero(b_.load(row_sums_.at(plan_.maximum), {f}));
  const ScalarId distance = b_.let(Op::sub, {below, emitter_->emit(shift, placed(shift))}, DType::f32);
  std::vector<std::pair<Op, ScalarId>> factors = {{Op::mul, b_.let(Op::exp, {distance}, DType::f32)}};
  for (const RowFactor& factor : found->factors)
    factors.emplace_back(factor.op, emitter_->emit(factor.value, placed(factor.value)));
  emitter_->set_hook(nullptr);
  return factors;
}

// In their order, for a factor may be made of another sum.
void AttentionEmitter::finish_sums() {
  at_[plan_.moving] = Affine(0);  // what is known per row is the same at each position
  if (plan_.maximum.valid())
    for (OpId op : plan_.sums)
      over_fixed(LoopKind::vector, [&](const Affine& f) {
        ScalarId sum = b_.load(row_sums_.at(op), {f});
        for (const auto& [how, factor] : factors_of(summed_value(body_, plan_, op), f))
          sum = b_.let(how, {sum, factor}, DType::f32);
        b_.store(row_sums_.at(op), {f}, sum);
      });
  for (std::size_t i = 0; i < body_.results().size(); ++i) {
    const ValueId v = body_.results()[i];
    if (plan_.level[v.index] != AttentionLevel::row) continue;
    over_fixed(LoopKind::vector, [&](const Affine& f) {
      emitter_->set_hook([&](ValueId asked, const Index&) -> std::optional<ScalarId> {
        for (const auto& [op, buffer] : row_sums_)
          if (body_.result(op) == asked) return b_.load(buffer, {f});
        return std::nullopt;
      });
      emitter_->store(results_[i], placed(v), emitter_->emit(v, placed(v)));
      emitter_->set_hook(nullptr);
    });
  }
}

void AttentionEmitter::finish_products() {
  const auto product_of = [&](ValueId v) {
    while (body_.kind(body_.def(v)) != Op::dot_general) v = body_.operand(body_.def(v), 0);
    return v;
  };
  for (const Product& product : products_) {
    const ValueId dot = body_.result(product.op);
    const std::int64_t inner = moving_[product.factor].inner;
    if (product.turned_sum.valid()) turn_sum(product);
    over_fixed(LoopKind::serial, [&](const Affine& f) {
      const auto factors = factors_of(summed_value(body_, plan_, product.op), f);
      b_.loop("c", 0, {Affine(inner)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        set_inner(inner == 1 ? Affine(0) : Affine(c));
        emitter_->enter();
        ScalarId sum = b_.load(product.sum, {f, Affine(c)});
        for (const auto& [how, factor] : factors) sum = b_.let(how, {sum, factor}, DType::f32);
        emitter_->set_hook([&](ValueId v, const Index&) { return v == dot ? std::optional(sum) : std::nullopt; });
        for (std::size_t i = 0; i < body_.results().size(); ++i) {
          const ValueId v = body_.results()[i];
          if (plan_.level[v.index] == AttentionLevel::out && product_of(v) == dot)
            emitter_->store(results_[i], placed(v), emitter_->emit(v, placed(v)));
        }
        emitter_->set_hook(nullptr);
        emitter_->leave();
      });
    });
  }
}

}  // namespace burin::passes::lower
