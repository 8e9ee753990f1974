// The matmul lowering: register tiles over blocks of a fixed grid, k in panels, B packed when its vectors are not in
// memory as they are, epilogue on the tile. Loop order: task (batch, m block, n block), k panel, n tile, m tile.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "passes/lower/lower.h"
#include "passes/lower/matmul_plan.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

constexpr std::size_t max_unrolled_epilogue = 2;  // ops on the product that are cheap enough to be written once per row

class MatmulEmitter {
 public:
  MatmulEmitter(const Function& body, const Target& target, const MatmulPlan& plan, const MatmulLoops& loops,
                const InPlace& in_place)
      : body_(body),
        target_(target),
        plan_(plan),
        loops_(loops),
        in_place_(in_place),
        tiles_(choose_tiles(loops, plan.compute, target, multiplies_pairs(body, plan, loops, target))) {}

  Lowering run();

 private:
  void emit_task();
  void emit_panels(bool first_outer, bool last_outer);
  void emit_panel(const Affine& panel_start, std::int64_t depth, bool first, bool last);
  void pack_rhs(const Affine& panel_start, std::int64_t depth);
  void pack_lhs(const Affine& panel_start, std::int64_t depth);
  /// f for each packed element of a panel's k: in a loop over whole ones, then for one that k ends in.
  void over_steps(std::int64_t depth, LoopKind kind, const std::function<void(const Affine& step, std::int64_t k)>& f);
  ScalarId packed_value(ValueId operand, const std::vector<std::pair<Dim, std::size_t>>& axes, const Affine& first,
                        std::int64_t k, std::span<const Affine> inside);
  void emit_tile_row(const Affine& column_tile, std::int64_t columns, const Affine& panel_start, std::int64_t depth,
                     bool first, bool last);
  void emit_tile(const Affine& row_tile, std::int64_t rows, const Affine& column_tile, std::int64_t columns,
                 const Affine& panel_start, std::int64_t depth, bool first, bool last);
  void finish_tile(BufferId tile, std::int64_t rows, std::int64_t columns, const Affine& row, const Affine& column);
  std::vector<Affine> flats() const;
  Affine flat_of(Dim dim) const;
  /// For loops over tiles: f for each whole tile of the task's block, then for the rest when this block holds it.
  void over_tiles(const Affine& block, std::int64_t per_block, std::int64_t blocks, std::int64_t whole,
                  std::int64_t size, std::int64_t rest,
                  const std::function<void(const Affine& tile, std::int64_t extent)>& f);
  BufferId tile_buffer(std::int64_t rows, std::int64_t columns);
  /// A variable over the inner loop of a class that stands for `expression`.
  void stand_for(Dim dim, const Affine& expression);
  std::int64_t padded(std::int64_t columns) const { return (columns + tiles_.lanes - 1) / tiles_.lanes * tiles_.lanes; }
  bool pairs() const { return tiles_.unit == 2; }
  DType partial_dtype() const {
    if (!tiles_.sums_panels) return plan_.compute;
    const std::int64_t panels = loops_.size(Dim::k) / loops_.inner(Dim::k) *
                                ((loops_.inner(Dim::k) + tiles_.depth - 1) / tiles_.depth);
    return accumulator_dtype(Reduce::sum, plan_.compute, panels);
  }
  ScalarId converted(ScalarId value, DType from, DType to) {
    return from == to ? value : b_.let(Op::convert, {value}, to);
  }
  DType packed_dtype() const { return pairs() ? DType::u32 : plan_.compute; }
  /// Rows of packed A: apart by a little more than the panel, so that they do not fall into one set of the cache.
  std::int64_t lhs_stride() const {
    return (tiles_.steps(tiles_.depth) + tiles_.lanes - 1) / tiles_.lanes * tiles_.lanes + tiles_.lanes;
  }
  /// Where packed A keeps row r of a tile of its block at a step of k.
  Affine lhs_slot(const Affine& row_tile, const Affine& r, const Affine& step) const {
    const Affine slot = (row_tile - row_block_ * tiles_.row_block) * (tiles_.rows * lhs_stride());
    return lhs_along_m_ ? slot + step * tiles_.rows + r : slot + r * lhs_stride() + step;
  }
  void compute_downstream();

  const Function& body_;
  const Target& target_;
  const MatmulPlan& plan_;
  const MatmulLoops& loops_;
  const InPlace& in_place_;
  const MatmulTiles tiles_;

  LoweredKernel main_;
  BlockBuilder b_{main_.kernel};
  IndexSpace space_;
  std::optional<ElementEmitter> emitter_;
  std::vector<BufferId> args_, results_;
  std::vector<Affine> loop_value_;  // by loop: its variable, or the expression of the inner one
  Affine row_block_, column_block_;
  bool pack_ = false, direct_lhs_ = true;
  bool lhs_along_m_ = false;  // packed A holds the rows of a tile side by side, as they lie in memory
  bool along_k_ = false;      // neighbours in k of the right operand are neighbours in memory
  BufferId packed_, packed_lhs_, partial_, spilled_;
  std::vector<ValueId> downstream_;  // values made of the dot by elementwise and bijective ops, in order
  std::map<std::pair<std::int64_t, std::int64_t>, BufferId> tile_buffers_;
};

Affine MatmulEmitter::flat_of(Dim dim) const {
  Affine flat;
  std::int64_t stride = 1;
  const auto positions = loops_.of(dim);
  for (std::size_t i = positions.size(); i-- > 0;) {
    flat = flat + loop_value_[positions[i]] * stride;
    stride *= loops_.extents[positions[i]];
  }
  return flat;
}

std::vector<Affine> MatmulEmitter::flats() const {
  return {flat_of(Dim::batch), flat_of(Dim::m), flat_of(Dim::n), flat_of(Dim::k)};
}

void MatmulEmitter::stand_for(Dim dim, const Affine& expression) {
  const std::size_t i = loops_.of(dim).back();
  if (loops_.extents[i] == 1) {  // one spelling for the only position: an epilogue's way there and back must give the same
    loop_value_[i] = Affine(0);
    return;
  }
  const VarId var = b_.kernel().new_var("");
  space_.declare(var, loops_.extents[i], i, expression);
  loop_value_[i] = Affine(var);
}

BufferId MatmulEmitter::tile_buffer(std::int64_t rows, std::int64_t columns) {
  return tile_buffers_.at({rows, columns});
}

void MatmulEmitter::over_tiles(const Affine& block, std::int64_t per_block, std::int64_t blocks, std::int64_t whole,
                               std::int64_t size, std::int64_t rest,
                               const std::function<void(const Affine&, std::int64_t)>& f) {
  const std::int64_t most = std::min(per_block, whole);
  if (most == 1 && (blocks == 1 || whole == blocks)) {
    f(block, size);
  } else if (most == 1) {
    b_.when({Affine(whole - 1) - block * per_block}, [&] { f(block * per_block, size); });
  } else if (whole > 0) {
    std::vector<Affine> bounds = {Affine(most)};
    if (blocks > 1 && whole < blocks * per_block) bounds.push_back(Affine(whole) - block * per_block);
    b_.loop("", 0, bounds, LoopKind::serial, 1, [&](VarId i) {
      space_.declare(i, most);
      f(block * per_block + Affine(i), size);
    });
  }
  if (rest > 0) {
    const auto last = [&] { f(Affine(whole), rest); };
    if (blocks > 1)
      b_.when({block - Affine(blocks - 1)}, last);
    else
      last();
  }
}

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

void MatmulEmitter::finish_tile(BufferId tile, std::int64_t rows, std::int64_t columns, const Affine& row,
                                const Affine& column) {
  // Registers are named by constants, so a loop over the tile is written out row by row. What follows the product is
  // written once, over a copy of the tile in memory, unless it is next to nothing.
  const bool spill = downstream_.size() > max_unrolled_epilogue;
  const std::int64_t width = padded(columns);
  if (spill)
    b_.loop("r", 0, {Affine(rows)}, LoopKind::unroll, 1, [&](VarId r) {
      b_.loop("c", 0, {Affine(width)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        b_.store(spilled_, {Affine(r, tiles_.columns) + Affine(c)}, b_.load(tile, {Affine(r), Affine(c)}));
      });
    });
  b_.loop("r", 0, {Affine(rows)}, spill ? LoopKind::serial : LoopKind::unroll, 1, [&](VarId r) {
    space_.declare(r, rows);
    b_.loop("c", 0, {Affine(columns)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
      space_.declare(c, columns);
      emitter_->enter();
      stand_for(Dim::m, row + Affine(r));
      stand_for(Dim::n, column + Affine(c));
      const Affine dot_flat =
          (flat_of(Dim::batch) * plan_.m.size() + flat_of(Dim::m)) * plan_.n.size() + flat_of(Dim::n);
      const Index dot_index = Index::of_flat(body_.type(plan_.result).shape, dot_flat);
      emitter_->set_hook([&](ValueId v, const Index& at) -> std::optional<ScalarId> {
        if (v != plan_.result) return std::nullopt;
        BURIN_CHECK(emitter_->flat(at) == dot_flat, "an epilogue that reads another element of the product");
        const ScalarId value =
            spill ? b_.load(spilled_, {Affine(r, tiles_.columns) + Affine(c)}) : b_.load(tile, {Affine(r), Affine(c)});
        const DType dtype = body_.type(plan_.result).dtype;
        return dtype == plan_.compute ? value : b_.let(Op::convert, {value}, dtype);
      });
      // Where each value made of the dot keeps this element.
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
            Index same = found->second;
            same.shape = shape;
            where[v] = same;
          }
          break;
        }
      }
      for (std::size_t i = 0; i < body_.results().size(); ++i) {
        const ValueId v = body_.results()[i];
        emitter_->store(results_[i], where.at(v), emitter_->emit(v, where.at(v)));
      }
      emitter_->set_hook(nullptr);
      emitter_->leave();
    });
  });
}

void MatmulEmitter::emit_tile(const Affine& row_tile, std::int64_t rows, const Affine& column_tile,
                              std::int64_t columns, const Affine& panel_start, std::int64_t depth, bool first,
                              bool last) {
  const std::int64_t width = padded(columns);
  const BufferId tile = tile_buffer(rows, width);
  const Affine row = row_tile * tiles_.rows, column = column_tile * tiles_.columns;
  const Affine slot = (row_tile - row_block_ * tiles_.row_block) * tiles_.column_block +
                      (column_tile - column_block_ * tiles_.column_block);
  const auto over_tile = [&](const std::function<void(const Affine& r, const Affine& c)>& f) {
    b_.loop("r", 0, {Affine(rows)}, LoopKind::unroll, 1, [&](VarId r) {
      space_.declare(r, rows);
      b_.loop("c", 0, {Affine(width)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
        space_.declare(c, width);
        f(Affine(r), Affine(c));
      });
    });
  };
  const auto partial_at = [&](const Affine& r, const Affine& c) {
    return std::vector<Affine>{space_.resolve(slot * (tiles_.rows * tiles_.columns) + r * tiles_.columns + c)};
  };
  over_tile([&](const Affine& r, const Affine& c) {
    const bool from_zero = first || tiles_.sums_panels;
    b_.store(tile, {r, c}, from_zero ? b_.constant(plan_.compute, 0) : b_.load(partial_, partial_at(r, c)));
  });
  Stmt mma{.kind = StmtKind::mma};
  mma.buffer = tile;
  mma.row = b_.kernel().new_var("r");
  mma.column = b_.kernel().new_var("c");
  mma.depth = b_.kernel().new_var("k");
  space_.declare(mma.row, rows);
  space_.declare(mma.column, width);
  space_.declare(mma.depth, tiles_.steps(depth));
  mma.hi = {Affine(tiles_.steps(depth))};
  stand_for(Dim::m, row + Affine(mma.row));
  stand_for(Dim::n, column + Affine(mma.column));
  if (!pairs()) stand_for(Dim::k, panel_start + Affine(mma.depth));
  if (direct_lhs_) {
    const Index at = operand_index(body_.type(plan_.lhs).shape, plan_.lhs_axes, plan_, flats(), *emitter_);
    const auto place = find_place(body_, plan_.lhs, at, *emitter_);
    mma.a = args_[place->arg];
    mma.a_indices = {space_.resolve(place->offset)};
  } else {
    mma.a = packed_lhs_;
    mma.a_indices = {space_.resolve(lhs_slot(row_tile, Affine(mma.row), Affine(mma.depth)))};
  }
  if (pack_) {
    mma.b = packed_;
    mma.b_indices = {space_.resolve((column_tile - column_block_ * tiles_.column_block) *
                                        (tiles_.steps(tiles_.depth) * tiles_.columns) +
                                    Affine(mma.depth, width) + Affine(mma.column))};
  } else {
    const Index at = operand_index(body_.type(plan_.rhs).shape, plan_.rhs_axes, plan_, flats(), *emitter_);
    const auto place = find_place(body_, plan_.rhs, at, *emitter_);
    mma.b = args_[place->arg];
    mma.b_indices = {space_.resolve(place->offset)};
  }
  if (depth > 0) b_.push(std::move(mma));
  const auto sum_panels = [&](const Affine& r, const Affine& c) {
    const ScalarId value = converted(b_.load(tile, {r, c}), plan_.compute, partial_dtype());
    if (first || !tiles_.sums_panels) return value;
    return b_.let(Op::add, {b_.load(partial_, partial_at(r, c)), value}, partial_dtype());
  };
  if (!last) {
    over_tile([&](const Affine& r, const Affine& c) { b_.store(partial_, partial_at(r, c), sum_panels(r, c)); });
  } else {
    if (!first && tiles_.sums_panels)
      over_tile([&](const Affine& r, const Affine& c) {
        b_.store(tile, {r, c}, converted(sum_panels(r, c), partial_dtype(), plan_.compute));
      });
    finish_tile(tile, rows, columns, row, column);
  }
}

void MatmulEmitter::emit_panel(const Affine& panel_start, std::int64_t depth, bool first, bool last) {
  emitter_->enter();
  if (!direct_lhs_ && depth > 0) pack_lhs(panel_start, depth);
  if (pack_ && depth > 0) pack_rhs(panel_start, depth);
  over_tiles(column_block_, tiles_.column_block, tiles_.column_blocks, tiles_.column_tiles, tiles_.columns,
             tiles_.rest_columns, [&](const Affine& column_tile, std::int64_t columns) {
               over_tiles(row_block_, tiles_.row_block, tiles_.row_blocks, tiles_.row_tiles, tiles_.rows,
                          tiles_.rest_rows, [&](const Affine& row_tile, std::int64_t rows) {
                            emit_tile(row_tile, rows, column_tile, columns, panel_start, depth, first, last);
                          });
             });
  emitter_->leave();
}

void MatmulEmitter::emit_panels(bool first_outer, bool last_outer) {
  const std::int64_t k = loops_.inner(Dim::k);
  const std::int64_t whole = tiles_.depth > 0 ? k / tiles_.depth : 0, rest = k % tiles_.depth;
  const std::int64_t panels = whole + (rest > 0);
  if (k == 0) return emit_panel(0, 0, true, true);
  // The first and last panels differ in where tiles start and end; those between share a loop.
  std::int64_t done = 0;
  const auto one = [&](std::int64_t p) {
    emit_panel(Affine(p * tiles_.depth), p < whole ? tiles_.depth : rest, first_outer && p == 0,
               last_outer && p + 1 == panels);
  };
  one(done++);
  const std::int64_t middle_end = rest > 0 ? whole : whole - 1;
  if (middle_end - done > 1) {
    b_.loop("p", Affine(done), {Affine(middle_end)}, LoopKind::serial, 1, [&](VarId p) {
      space_.declare(p, middle_end);
      emit_panel(Affine(p, tiles_.depth), tiles_.depth, false, false);
    });
    done = middle_end;
  }
  while (done < panels) one(done++);
}

void MatmulEmitter::emit_task() {
  // Outer k loops run in order around the panels; first and last rounds are written out.
  const auto positions = loops_.of(Dim::k);
  std::int64_t rounds = 1;
  for (std::size_t i = 0; i + 1 < positions.size(); ++i) rounds *= loops_.extents[positions[i]];
  const auto set_round = [&](const std::function<Affine(std::size_t)>& value) {
    for (std::size_t i = 0; i + 1 < positions.size(); ++i) loop_value_[positions[i]] = value(i);
  };
  if (rounds == 1) {
    set_round([](std::size_t) { return Affine(0); });
    return emit_panels(true, true);
  }
  const auto fixed_round = [&](std::int64_t round, bool first, bool last) {
    std::vector<std::int64_t> digits(positions.size());
    for (std::size_t i = positions.size() - 1; i-- > 0;) {
      digits[i] = round % loops_.extents[positions[i]];
      round /= loops_.extents[positions[i]];
    }
    set_round([&](std::size_t i) { return Affine(digits[i]); });
    emit_panels(first, last);
  };
  fixed_round(0, true, rounds == 1);
  if (positions.size() == 2 && rounds > 3) {
    b_.loop("", Affine(1), {Affine(rounds - 1)}, LoopKind::serial, 1, [&](VarId var) {
      space_.declare(var, rounds - 1, positions[0]);
      loop_value_[positions[0]] = Affine(var);
      emit_panels(false, false);
    });
    return fixed_round(rounds - 1, false, true);
  }
  for (std::int64_t round = 1; round < rounds; ++round) fixed_round(round, false, round + 1 == rounds);
}

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

Lowering MatmulEmitter::run() {
  Kernel& kernel = main_.kernel;
  kernel.name = body_.name();
  Parameters parameters = add_parameters(main_, body_, in_place_);
  args_ = std::move(parameters.args);
  results_ = std::move(parameters.results);
  emitter_.emplace(body_, b_, space_, args_);
  compute_downstream();
  const std::int64_t size = loops_.size(Dim::batch) * loops_.size(Dim::m) * loops_.size(Dim::n);
  kernel.cost = 2.0 * static_cast<double>(size) * static_cast<double>(loops_.size(Dim::k)) / 100.0 +
                element_cost(body_, target_) * static_cast<double>(size);
  if (size == 0) {
    Lowering done;
    done.kernels.push_back(std::move(main_));
    return done;
  }

  // The grid: batch, outer m, outer n, then blocks of the inner m and n.
  loop_value_.resize(loops_.extents.size());
  for (std::size_t i = 0; i < loops_.extents.size(); ++i) {
    const Dim dim = loops_.dims[i];
    if (dim == Dim::k || (dim != Dim::batch && i == loops_.of(dim).back())) continue;
    if (loops_.extents[i] == 1) continue;
    const VarId var = kernel.new_var("");
    kernel.tasks.emplace_back(var, loops_.extents[i]);
    space_.declare(var, loops_.extents[i], i);
    loop_value_[i] = Affine(var);
  }
  const auto block_var = [&](const char* name, std::int64_t blocks) {
    if (blocks <= 1) return Affine(0);
    const VarId var = kernel.new_var(name);
    kernel.tasks.emplace_back(var, blocks);
    space_.declare(var, blocks);
    return Affine(var);
  };
  row_block_ = block_var("mb", tiles_.row_blocks);
  column_block_ = block_var("nb", tiles_.column_blocks);

  // Can each side be read where it lies? Probed with variables that stand for whole loops.
  const std::vector<Affine> before = loop_value_;
  for (Dim dim : {Dim::m, Dim::n, Dim::k})
    for (std::size_t i : loops_.of(dim)) {
      if (dim != Dim::k && i != loops_.of(dim).back()) continue;
      const VarId var = kernel.new_var("");
      space_.declare(var, loops_.extents[i], i);
      loop_value_[i] = Affine(var);
    }
  const auto place_of = [&](ValueId v, const std::vector<std::pair<Dim, std::size_t>>& axes) {
    const std::size_t before_probe = kernel.body.size();
    auto place = find_place(body_, v, operand_index(body_.type(v).shape, axes, plan_, flats(), *emitter_), *emitter_);
    // An index that has to be divided at run time is no place that a tile can walk over; it is packed, where it is divided again.
    if (kernel.body.size() > before_probe) place.reset();
    kernel.body.resize(before_probe);
    return place;
  };
  const auto lhs_place = place_of(plan_.lhs, plan_.lhs_axes), rhs_place = place_of(plan_.rhs, plan_.rhs_axes);
  const VarId m_var = loop_value_[loops_.of(Dim::m).back()].terms[0].first;
  const VarId n_var = loop_value_[loops_.of(Dim::n).back()].terms[0].first;
  const VarId k_var = loop_value_[loops_.of(Dim::k).back()].terms[0].first;
  direct_lhs_ = lhs_place && !pairs();
  lhs_along_m_ = lhs_place && lhs_place->offset.coefficient(m_var) == 1 && lhs_place->offset.coefficient(k_var) != 1;
  // Rows a multiple of 2 KiB apart share few sets of the first cache: a tile's rows would push one another out.
  const std::int64_t row_bytes =
      lhs_place ? lhs_place->offset.coefficient(m_var) * static_cast<std::int64_t>(size_of(body_.type(plan_.lhs).dtype))
                : 0;
  if (row_bytes != 0 && row_bytes % 2048 == 0 && tiles_.rows > 4 && tiles_.column_block > 1) direct_lhs_ = false;
  const bool whole_vectors = tiles_.rest_columns % tiles_.lanes == 0;
  const bool reused = tiles_.row_block * tiles_.rows > 64 && loops_.inner(Dim::k) >= 128;
  const bool contiguous = rhs_place && rhs_place->offset.coefficient(n_var) == 1;
  pack_ = pairs() || !(contiguous && whole_vectors && !reused);
  along_k_ = rhs_place && rhs_place->offset.coefficient(k_var) == 1 && !contiguous &&
             tiles_.steps(tiles_.depth) >= tiles_.lanes;
  loop_value_ = before;

  const auto scratch = [&](const char* name, std::int64_t elements, DType dtype) {
    return kernel.add_buffer(
        {.name = name, .dtype = dtype, .shape = Shape{elements}, .strides = {1}, .space = Space::scratch});
  };
  if (pack_)
    packed_ = scratch("packed_b", tiles_.column_block * tiles_.steps(tiles_.depth) * tiles_.columns, packed_dtype());
  if (!direct_lhs_) packed_lhs_ = scratch("packed_a", tiles_.row_block * tiles_.rows * lhs_stride(), packed_dtype());
  if (loops_.size(Dim::k) > tiles_.depth)
    partial_ = scratch("partial", tiles_.row_block * tiles_.column_block * tiles_.rows * tiles_.columns, partial_dtype());
  if (downstream_.size() > max_unrolled_epilogue)
    spilled_ = scratch("tile", tiles_.rows * tiles_.columns, plan_.compute);
  for (std::int64_t rows : {tiles_.row_tiles > 0 ? tiles_.rows : 0, tiles_.rest_rows})
    for (std::int64_t columns : {tiles_.column_tiles > 0 ? tiles_.columns : 0, padded(tiles_.rest_columns)})
      if (rows > 0 && columns > 0 && !tile_buffers_.contains({rows, columns}))
        tile_buffers_[{rows, columns}] =
            kernel.add_buffer({.name = "tile" + std::to_string(rows) + "x" + std::to_string(columns),
                               .dtype = plan_.compute,
                               .shape = Shape{rows, columns},
                               .strides = {columns, 1},
                               .space = Space::tile});
  emit_task();
  Lowering done;
  done.kernels.push_back(std::move(main_));
  return done;
}

}  // namespace

Lowering lower_matmul(const Function& body, const Target& target, const InPlace& in_place) {
  MatmulPlan plan;
  BURIN_CHECK(plan_matmul(body, &plan), "not a matmul fusion");
  MatmulLoops loops = initial_loops(plan);
  for (;;) {
    try {
      return MatmulEmitter(body, target, plan, loops, in_place).run();
    } catch (const NeedSplit& need) {
      loops.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
