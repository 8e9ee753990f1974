// Packing of a matmul's operands, with whatever is computed of them before they are multiplied.
#include "passes/lower/matmul_emitter.h"

namespace burin::passes::lower {

void MatmulEmitter::over_steps(std::int64_t depth, LoopKind kind,
                               const std::function<void(const Affine&, std::int64_t)>& f) {
  const std::int64_t whole = depth / tiles_.unit;
  if (whole > 0)
    b_.loop("k", 0, {Affine(whole)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId k) {
      space_.declare(k, whole);
      f(Affine(k), tiles_.unit);
    });
  if (depth % tiles_.unit != 0) f(Affine(whole), depth % tiles_.unit);
}

// The element of `operand` at k = first, in the dtype that is multiplied; of pairs the low half, with first + 1 above
// it while `k` values are left. Zero where one of `inside` is negative.
ScalarId MatmulEmitter::packed_value(ValueId operand, const std::vector<std::pair<Dim, std::size_t>>& axes,
                                     const Affine& first, std::int64_t k, std::span<const Affine> inside) {
  const auto element = [&](const Affine& at_k) {
    stand_for(Dim::k, at_k);
    const Index at = operand_index(body_.type(operand).shape, axes, plan_, flats(), *emitter_);
    return inside.empty() ? emitter_->emit(operand, at) : emitter_->emit_under(operand, at, inside);
  };
  if (!pairs()) {
    const ScalarId value = element(first);
    return body_.type(operand).dtype == plan_.compute ? value : b_.let(Op::convert, {value}, plan_.compute);
  }
  const auto half = [&](const Affine& at_k) {
    return b_.let(Op::convert, {b_.let(Op::bitcast, {element(at_k)}, DType::u16)}, DType::u32);
  };
  const ScalarId low = half(first);
  if (k == 1) return low;
  const ScalarId high = b_.let(Op::shift_left, {half(first + Affine(1)), b_.constant(DType::u32, 16)}, DType::u32);
  return b_.let(Op::bit_or, {low, high}, DType::u32);
}

// Vectors of n that lie in memory one after another are read where they are, unless a long walk over rows would wear
// out the cache's sets; everything else is packed: [n tile][k][columns], missing columns filled with zeros.
void MatmulEmitter::pack_rhs(const Affine& panel_start, std::int64_t depth) {
  over_tiles(
      column_block_, tiles_.column_block, tiles_.column_blocks, tiles_.column_tiles, tiles_.columns,
      tiles_.rest_columns, [&](const Affine& tile, std::int64_t columns) {
        const Affine slot =
            (tile - column_block_ * tiles_.column_block) * (tiles_.steps(tiles_.depth) * tiles_.columns);
        const auto pack_one = [&](const Affine& step, std::int64_t k, const Affine& c, bool guarded) {
          emitter_->enter();
          stand_for(Dim::n, tile * tiles_.columns + c);
          const std::vector<Affine> inside(guarded ? 1 : 0, Affine(columns - 1) - c);
          const ScalarId value = packed_value(plan_.rhs, plan_.rhs_axes, panel_start + step * tiles_.unit, k, inside);
          b_.store(packed_, {space_.resolve(slot + step * padded(columns) + c)}, value);
          emitter_->leave();
        };
        if (along_k_) {  // vectors of k, which codegen turns into vectors of n, one block of columns after another
          const std::int64_t whole = columns / tiles_.lanes, rest = columns % tiles_.lanes;
          const auto block = [&](const Affine& first, std::int64_t count) {
            over_steps(depth, LoopKind::vector, [&](const Affine& step, std::int64_t k) {
              b_.loop("c", 0, {Affine(count)}, LoopKind::unroll, 1, [&](VarId c) {
                space_.declare(c, count);
                pack_one(step, k, first + Affine(c), false);
              });
              if (count == tiles_.lanes) return;
              const ScalarId zero = b_.constant(packed_dtype(), 0);
              b_.loop("c", Affine(count), {Affine(tiles_.lanes)}, LoopKind::unroll, 1, [&](VarId c) {
                space_.declare(c, tiles_.lanes);
                b_.store(packed_, {space_.resolve(slot + step * padded(columns) + first + Affine(c))}, zero);
              });
            });
          };
          if (whole > 0) {
            b_.loop("q", 0, {Affine(whole)}, LoopKind::serial, 1, [&](VarId q) {
              space_.declare(q, whole);
              block(Affine(q, tiles_.lanes), tiles_.lanes);
            });
          }
          if (rest > 0) block(Affine(whole * tiles_.lanes), rest);
          return;
        }
        over_steps(depth, LoopKind::serial, [&](const Affine& step, std::int64_t k) {
          b_.loop("c", 0, {Affine(padded(columns))}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
            space_.declare(c, padded(columns));
            pack_one(step, k, Affine(c), padded(columns) != columns);
          });
        });
      });
}

void MatmulEmitter::pack_lhs(const Affine& panel_start, std::int64_t depth) {
  over_tiles(
      row_block_, tiles_.row_block, tiles_.row_blocks, tiles_.row_tiles, tiles_.rows, tiles_.rest_rows,
      [&](const Affine& tile, std::int64_t rows) {
        const auto over_rows = [&](LoopKind kind, const std::function<void(const Affine&)>& f) {
          b_.loop("r", 0, {Affine(rows)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId r) {
            space_.declare(r, rows);
            f(Affine(r));
          });
        };
        const auto pack_one = [&](const Affine& r, const Affine& step, std::int64_t k) {
          emitter_->enter();
          stand_for(Dim::m, tile * tiles_.rows + r);
          const ScalarId value = packed_value(plan_.lhs, plan_.lhs_axes, panel_start + step * tiles_.unit, k, {});
          b_.store(packed_lhs_, {space_.resolve(lhs_slot(tile, r, step))}, value);
          emitter_->leave();
        };
        if (lhs_along_m_)
          over_steps(depth, LoopKind::serial, [&](const Affine& step, std::int64_t k) {
            over_rows(LoopKind::vector, [&](const Affine& r) { pack_one(r, step, k); });
          });
        else
          over_rows(LoopKind::serial, [&](const Affine& r) {
            over_steps(depth, LoopKind::vector, [&](const Affine& step, std::int64_t k) { pack_one(r, step, k); });
          });
      });
}

}  // namespace burin::passes::lower
