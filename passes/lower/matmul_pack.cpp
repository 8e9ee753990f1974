// Packing of a matmul's operands, with whatever is computed of them before they are multiplied.
#include "passes/lower/matmul_emitter.h"

namespace burin::passes::lower {
namespace {

// Blocks of the product that must read a side before it is packed once for all of them: below, a task packs its own.
// Pairs are half as large as what they are made of.
constexpr std::int64_t min_sharing_blocks = 3, min_sharing_blocks_of_pairs = 2;
// Multiply-adds, per byte of the second cache, below which one more kernel costs as much as it spares.
constexpr double min_sharing_work = 16;

}  // namespace

std::int64_t MatmulEmitter::rounds(Dim free) const {
  return loops_.size(Dim::batch) * (loops_.size(free) / loops_.inner(free)) * (loops_.size(Dim::k) / loops_.inner(Dim::k));
}

Affine MatmulEmitter::round_of(Dim free) const {
  Affine round;
  for (Dim dim : {Dim::batch, free, Dim::k}) {
    const auto positions = loops_.of(dim);
    for (std::size_t i = 0; i < positions.size() - (dim == Dim::batch ? 0 : 1); ++i)
      round = round * loops_.extents[positions[i]] + loop_value_[positions[i]];
  }
  return round;
}

Affine MatmulEmitter::lhs_slot(const Affine& row_tile, const Affine& r, const Affine& panel_start,
                               const Affine& step) const {
  const auto at = [&](const Affine& tile, const Affine& k) {
    return tile * lhs_tile_size() + (lhs_along_m_ ? k * tiles_.rows + r : r * lhs_stride() + k);
  };
  if (!shares_lhs_) return at(row_tile - row_block_ * tiles_.row_block, step);
  return at(round_of(Dim::m) * tiles_.all_row_tiles() + row_tile, tiles_.steps(panel_start) + step);
}

Affine MatmulEmitter::rhs_slot(const Affine& column_tile, std::int64_t width, const Affine& c,
                               const Affine& panel_start, const Affine& step) const {
  const auto at = [&](const Affine& tile, const Affine& k) { return tile * rhs_tile_size() + k * width + c; };
  if (!shares_rhs_) return at(column_tile - column_block_ * tiles_.column_block, step);
  return at(round_of(Dim::n) * tiles_.all_column_tiles() + column_tile, tiles_.steps(panel_start) + step);
}

// Sharing spares packing a side again for every block of the other one, and computing what it is made of; it costs memory
// for all of the side, which is to stay in the last cache.
bool MatmulEmitter::may_share(Dim other, std::int64_t blocks_of_other) const {
  double work = 1;
  for (std::int64_t extent : loops_.extents) work *= static_cast<double>(extent);
  return work >= min_sharing_work * static_cast<double>(target_.l2_bytes) &&
         loops_.size(other) / loops_.inner(other) * blocks_of_other >= (pairs() ? min_sharing_blocks_of_pairs : min_sharing_blocks);
}

void MatmulEmitter::choose_sharing() {
  shares_lhs_ = !direct_lhs_ && may_share(Dim::n, tiles_.column_blocks);
  shares_rhs_ = pack_ && may_share(Dim::m, tiles_.row_blocks);
  // What is shared holds all panels: its size is that of a side that is shared.
  const auto fits = [&](Dim free) {
    return shared_size(free) * static_cast<std::int64_t>(size_of(packed_dtype())) <= target_.l3_bytes;
  };
  shares_lhs_ = shares_lhs_ && fits(Dim::m);
  shares_rhs_ = shares_rhs_ && fits(Dim::n);
}

std::int64_t MatmulEmitter::shared_size(Dim free) const {
  return rounds(free) * (free == Dim::m ? tiles_.all_row_tiles() * lhs_tile_size() : tiles_.all_column_tiles() * rhs_tile_size());
}

LoweredKernel MatmulEmitter::run_packing() {
  const bool left = part_ == MatmulPart::lhs;
  Kernel& kernel = lowered_.kernel;
  kernel.name = body_.name() + (left ? "_pack_lhs" : "_pack_rhs");
  const ValueId side = left ? plan_.lhs : plan_.rhs;
  args_ = add_arguments(lowered_, body_, side);
  emitter_.emplace(body_, b_, space_, args_);
  open_grid();
  choose_places();
  const std::int64_t size = shared_size(left ? Dim::m : Dim::n);
  lowered_.params.push_back({Param::temp, left || !shares_lhs_ ? 0U : 1U});
  if (!left) lowered_.packs = rhs_matrix_;
  packs_halves_ = left && pairs() && !lhs_lies_along_m_;
  (left ? packed_lhs_ : packed_) = kernel.add_buffer({.name = "packed",
                                                      .dtype = packs_halves_ ? DType::bf16 : packed_dtype(),
                                                      .shape = Shape{packs_halves_ ? 2 * size : size},
                                                      .strides = {1},
                                                      .space = Space::out});
  kernel.cost = (0.2 + element_cost(body_, target_)) * static_cast<double>(size);
  emit_task();
  return std::move(lowered_);
}

void MatmulEmitter::over_steps(std::int64_t depth, LoopKind kind,
                               const std::function<void(const Affine&, std::int64_t)>& f) {
  const std::int64_t whole = depth / tiles_.unit;
  if (whole > 0)
    b_.loop("k", 0, {Affine(whole)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId k) {
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
  if (packs_halves_) return element(first);
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
  const auto over_column_tiles = [&](const std::function<void(const Affine& tile, std::int64_t columns)>& f) {
    over_tiles(column_block_, tiles_.column_block, tiles_.column_blocks, tiles_.column_tiles, tiles_.columns,
               tiles_.rest_columns, f);
  };
  const auto pack_one = [&](const Affine& tile, std::int64_t columns, const Affine& step, std::int64_t k, const Affine& c,
                            bool guarded) {
    emitter_->enter();
    stand_for(Dim::n, tile * tiles_.columns + c);
    const std::vector<Affine> inside(guarded ? 1 : 0, Affine(columns - 1) - c);
    const ScalarId value = packed_value(plan_.rhs, plan_.rhs_axes, panel_start + step * tiles_.unit, k, inside);
    b_.store(packed_, {space_.resolve(rhs_slot(tile, padded(columns), c, panel_start, step))}, value);
    emitter_->leave();
  };
  if (along_k_) {  // vectors of k, which codegen turns into vectors of n, one block of columns after another
    over_column_tiles([&](const Affine& tile, std::int64_t columns) {
      const std::int64_t whole = columns / tiles_.lanes, rest = columns % tiles_.lanes;
      const auto block = [&](const Affine& first, std::int64_t count) {
        over_steps(depth, LoopKind::vector, [&](const Affine& step, std::int64_t k) {
          b_.loop("c", 0, {Affine(count)}, LoopKind::unroll, 1, [&](VarId c) {
            pack_one(tile, columns, step, k, first + Affine(c), false);
          });
          if (count == tiles_.lanes) return;
          const ScalarId zero = b_.constant(packed_dtype(), 0);
          b_.loop("c", Affine(count), {Affine(tiles_.lanes)}, LoopKind::unroll, 1, [&](VarId c) {
            b_.store(packed_, {space_.resolve(rhs_slot(tile, padded(columns), first + Affine(c), panel_start, step))}, zero);
          });
        });
      };
      if (whole > 0) {
        b_.loop("q", 0, {Affine(whole)}, LoopKind::serial, 1, [&](VarId q) {
          block(Affine(q, tiles_.lanes), tiles_.lanes);
        });
      }
      if (rest > 0) block(Affine(whole * tiles_.lanes), rest);
    });
  } else {  // tile by tile at each step: memory is read in the order in which it lies
    over_steps(depth, LoopKind::serial, [&](const Affine& step, std::int64_t k) {
      over_column_tiles([&](const Affine& tile, std::int64_t columns) {
        b_.loop("c", 0, {Affine(padded(columns))}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
          pack_one(tile, columns, step, k, Affine(c), padded(columns) != columns);
        });
      });
    });
  }
  if (tiles_.padded_steps(depth) == tiles_.steps(depth)) return;
  over_column_tiles([&](const Affine& tile, std::int64_t columns) {
    b_.loop("k", Affine(tiles_.steps(depth)), {Affine(tiles_.padded_steps(depth))}, LoopKind::serial, 1, [&](VarId k) {
      b_.loop("c", 0, {Affine(padded(columns))}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        b_.store(packed_, {space_.resolve(rhs_slot(tile, padded(columns), Affine(c), panel_start, Affine(k)))},
                 b_.constant(packed_dtype(), 0));
      });
    });
  });
}

// Zeros for missing rows and steps of k.
void MatmulEmitter::clear_lhs(const Affine& tile, const Affine& panel_start, std::int64_t first_row, std::int64_t rows,
                              std::int64_t first_step, std::int64_t steps) {
  if (first_row == rows || first_step == steps) return;
  b_.loop("r", Affine(first_row), {Affine(rows)}, LoopKind::serial, 1, [&](VarId r) {
    if (packs_halves_) return store_halves(tile, Affine(r), panel_start, 2 * first_step, 2 * steps, {});
    b_.loop("k", Affine(first_step), {Affine(steps)}, LoopKind::vector, tiles_.lanes, [&](VarId k) {
      b_.store(packed_lhs_, {space_.resolve(lhs_slot(tile, Affine(r), panel_start, Affine(k)))}, b_.constant(packed_dtype(), 0));
    });
  });
}

// A row of pairs along k is a row of its elements: nothing is turned, so they are stored one by one. Zeros without a value.
void MatmulEmitter::store_halves(const Affine& tile, const Affine& r, const Affine& panel_start, std::int64_t from, std::int64_t to,
                                 const std::function<ScalarId(const Affine& k)>& value) {
  if (from == to) return;
  b_.loop("k", Affine(from), {Affine(to)}, LoopKind::vector, 2 * tiles_.lanes, [&](VarId k) {
    emitter_->enter();
    const ScalarId stored = value ? value(Affine(k)) : b_.constant(DType::bf16, 0);
    b_.store(packed_lhs_, {space_.resolve(lhs_slot(tile, r, panel_start, Affine(0)) * 2 + Affine(k))}, stored);
    emitter_->leave();
  });
}

void MatmulEmitter::pack_lhs(const Affine& panel_start, std::int64_t depth) {
  const auto over_row_tiles = [&](const std::function<void(const Affine& tile, std::int64_t rows)>& f) {
    over_tiles(row_block_, tiles_.row_block, tiles_.row_blocks, tiles_.row_tiles, tiles_.rows, tiles_.rest_rows, f);
  };
  const auto over_rows = [&](std::int64_t count, LoopKind kind, const std::function<void(const Affine&)>& f) {
    b_.loop("r", 0, {Affine(count)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId r) {
      f(Affine(r));
    });
  };
  const auto pack_one = [&](const Affine& tile, std::int64_t rows, const Affine& r, const Affine& step, std::int64_t k,
                            bool guarded = false) {
    emitter_->enter();
    stand_for(Dim::m, tile * tiles_.rows + r);
    const std::vector<Affine> inside(guarded ? 1 : 0, Affine(rows - 1) - r);
    const ScalarId value = packed_value(plan_.lhs, plan_.lhs_axes, panel_start + step * tiles_.unit, k, inside);
    b_.store(packed_lhs_, {space_.resolve(lhs_slot(tile, r, panel_start, step))}, value);
    emitter_->leave();
  };
  if (lhs_along_m_)  // memory is read in the order in which it lies
    return over_steps(depth, LoopKind::serial, [&](const Affine& step, std::int64_t k) {
      over_row_tiles([&](const Affine& tile, std::int64_t rows) {
        over_rows(rows, LoopKind::vector, [&](const Affine& r) { pack_one(tile, rows, r, step, k); });
      });
    });
  over_row_tiles([&](const Affine& tile, std::int64_t rows) {
    const std::int64_t height = tiles_.padded_rows(rows), steps = tiles_.steps(depth);
    // Vectors of rows, which codegen turns into vectors of k, so many steps at a time.
    const auto turned = [&](const Affine& first, std::int64_t count, std::int64_t k) {
      over_rows(padded(rows), LoopKind::vector, [&](const Affine& r) {
        b_.loop("k", 0, {Affine(count)}, LoopKind::unroll, 1, [&](VarId step) {
          pack_one(tile, rows, r, first + Affine(step), k, padded(rows) != rows);
        });
      });
    };
    if (turns_lhs()) {
      const std::int64_t whole = depth / tiles_.unit, vectors = whole / tiles_.lanes, rest = whole % tiles_.lanes;
      if (vectors > 0)
        b_.loop("q", 0, {Affine(vectors)}, LoopKind::serial, 1, [&](VarId q) {
          turned(Affine(q, tiles_.lanes), tiles_.lanes, tiles_.unit);
        });
      if (rest > 0) turned(Affine(vectors * tiles_.lanes), rest, tiles_.unit);
      if (depth % tiles_.unit != 0) turned(Affine(whole), 1, depth % tiles_.unit);
    } else {
      over_rows(rows, LoopKind::serial, [&](const Affine& r) {
        if (packs_halves_) {
          store_halves(tile, r, panel_start, 0, depth, [&](const Affine& k) {
            stand_for(Dim::m, tile * tiles_.rows + r);
            return packed_value(plan_.lhs, plan_.lhs_axes, panel_start + k, 1, {});
          });
          return store_halves(tile, r, panel_start, depth, 2 * steps, {});
        }
        over_steps(depth, LoopKind::vector,
                   [&](const Affine& step, std::int64_t k) { pack_one(tile, rows, r, step, k); });
      });
      clear_lhs(tile, panel_start, rows, height, 0, steps);
    }
    clear_lhs(tile, panel_start, 0, height, steps, tiles_.padded_steps(depth));
  });
}

}  // namespace burin::passes::lower
