// What follows a product element by element, on the tile.
#include "base/check.h"
#include "passes/lower/matmul_emitter.h"

namespace burin::passes::lower {

// Values that follow from the dot element by element.
void MatmulEmitter::compute_downstream() {
  std::vector<bool> follows(body_.num_values(), false);
  follows[plan_.result.index] = true;
  body_.for_each_op([&](OpId op) {
    bool any = false;
    for (ValueId operand : body_.operands(op)) any = any || follows[operand.index];
    if (!any) return;
    follows[body_.result(op).index] = true;
    downstream_.push_back(body_.result(op));
  });
}

// Where each value made of the dot keeps the element that the dot keeps at `dot_index`.
std::map<ValueId, Index> MatmulEmitter::downstream_places(const Index& dot_index) {
  std::map<ValueId, Index> where = {{plan_.result, dot_index}};
  for (ValueId v : downstream_) {
    const OpId op = body_.def(v);
    const Shape& shape = body_.type(v).shape;
    for (ValueId operand : body_.operands(op)) {
      const auto found = where.find(operand);
      if (found == where.end()) continue;
      if (body_.kind(op) == Op::transpose) {
        const Ints permutation = body_.attrs<Op::transpose>(op).permutation;
        const std::vector<Affine> from = emitter_->dims(found->second);
        std::vector<Affine> to;
        for (std::int64_t axis : permutation) to.push_back(from[static_cast<std::size_t>(axis)]);
        where[v] = Index::of_dims(shape, to);
      } else if (body_.kind(op) == Op::reshape) {
        where[v] = Index::of_flat(shape, emitter_->flat(found->second));
      } else {
        BURIN_CHECK(shape == body_.type(operand).shape, "an epilogue that is not element by element");
        where[v] = found->second;
      }
      break;
    }
  }
  return where;
}

Index MatmulEmitter::dot_index() const {
  return Index::of_flat(body_.type(plan_.result).shape,
                        (flat_of(Dim::batch) * plan_.m.size() + flat_of(Dim::m)) * plan_.n.size() + flat_of(Dim::n));
}

void MatmulEmitter::finish_tile(BufferId tile, std::int64_t rows, std::int64_t columns, const Affine& row,
                                const Affine& column) {
  // Registers are named by constants, so a loop over the tile is written out row by row. What follows the product is
  // written once, over a copy of the tile in memory, unless it is next to nothing.
  const bool spill = downstream_.size() > max_unrolled_epilogue;
  const std::int64_t width = padded(columns);
  if (spill)
    b_.loop("r", 0, {Affine(tiles_.padded_rows(rows))}, LoopKind::unroll, 1, [&](VarId r) {
      b_.loop("c", 0, {Affine(width)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        b_.store(spilled_, {Affine(r, tiles_.columns) + Affine(c)}, b_.load(tile, {Affine(r), Affine(c)}));
      });
    });
  b_.loop("r", 0, {Affine(rows)}, spill ? LoopKind::serial : LoopKind::unroll, 1, [&](VarId r) {
    b_.loop("c", 0, {Affine(columns)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
      emitter_->enter();
      stand_for(Dim::m, row + Affine(r));
      stand_for(Dim::n, column + Affine(c));
      const Index at_dot = dot_index();
      emitter_->set_hook([&](ValueId v, const Index& at) -> std::optional<ScalarId> {
        if (v != plan_.result) return std::nullopt;
        BURIN_CHECK(emitter_->flat(at) == *at_dot.flat, "an epilogue that reads another element of the product");
        const ScalarId value =
            spill ? b_.load(spilled_, {Affine(r, tiles_.columns) + Affine(c)}) : b_.load(tile, {Affine(r), Affine(c)});
        const DType dtype = body_.type(plan_.result).dtype;
        return dtype == plan_.compute ? value : b_.let(Op::convert, {value}, dtype);
      });
      const std::map<ValueId, Index> where = downstream_places(at_dot);
      for (std::size_t i = 0; i < body_.results().size(); ++i) {
        const ValueId v = body_.results()[i];
        const ScalarId value = emitter_->emit(v, where.at(v));
        emitter_->store(results_[i], where.at(v), value);
        if (const auto half = halves_.find(static_cast<std::uint32_t>(i)); half != halves_.end())
          b_.store(half->second, {half_at(row + Affine(r), column + Affine(c))}, as_half(b_, value, body_.type(v).dtype));
      }
      emitter_->set_hook(nullptr);
      emitter_->leave();
    });
  });
}

}  // namespace burin::passes::lower
