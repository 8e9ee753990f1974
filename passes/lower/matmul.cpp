// The matmul lowering: register tiles over blocks of a fixed grid, k in panels, B packed when its vectors are not in
// memory as they are, epilogue on the tile. Loop order: task (batch, m block, n block), k panel, n tile, m tile.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "passes/lower/matmul_emitter.h"
#include "passes/lower/rows_plan.h"

namespace burin::passes::lower {

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
  loop_value_[i] = Affine(space_.stand_for(expression, loops_.extents[i], i));
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

void MatmulEmitter::emit_tile(const Affine& row_tile, std::int64_t rows, const Affine& column_tile,
                              std::int64_t columns, const Affine& panel_start, std::int64_t depth, bool first,
                              bool last) {
  const std::int64_t width = padded(columns), height = tiles_.padded_rows(rows), steps = tiles_.padded_steps(depth);
  const BufferId tile = tile_buffer(height, width);
  const Affine row = row_tile * tiles_.rows, column = column_tile * tiles_.columns;
  const Affine slot = (row_tile - row_block_ * tiles_.row_block) * tiles_.column_block +
                      (column_tile - column_block_ * tiles_.column_block);
  const auto over_tile = [&](const std::function<void(const Affine& r, const Affine& c)>& f) {
    b_.loop("r", 0, {Affine(height)}, LoopKind::unroll, 1, [&](VarId r) {
      b_.loop("c", 0, {Affine(width)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
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
  mma.row = b_.new_var("r", height);
  mma.column = b_.new_var("c", width);
  mma.depth = b_.new_var("k", steps);
  mma.hi = {Affine(steps)};
  mma.block = tiles_.block;
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
    mma.a_indices = {space_.resolve(lhs_slot(row_tile, Affine(mma.row), panel_start, Affine(mma.depth)))};
  }
  if (pack_) {
    mma.b = packed_;
    mma.b_indices = {space_.resolve(rhs_slot(column_tile, width, Affine(mma.column), panel_start, Affine(mma.depth)))};
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
  const auto packs = [&](MatmulPart side, bool packed, bool shared) {
    return depth > 0 && packed && (part_ == side || (part_ == MatmulPart::product && !shared));
  };
  if (packs(MatmulPart::lhs, !direct_lhs_, shares_lhs_)) pack_lhs(panel_start, depth);
  if (packs(MatmulPart::rhs, pack_, shares_rhs_)) pack_rhs(panel_start, depth);
  if (part_ != MatmulPart::product) return emitter_->leave();
  const auto over_columns = [&](const std::function<void(const Affine&, std::int64_t)>& f) {
    over_tiles(column_block_, tiles_.column_block, tiles_.column_blocks, tiles_.column_tiles, tiles_.columns, tiles_.rest_columns, f);
  };
  const auto over_rows = [&](const std::function<void(const Affine&, std::int64_t)>& f) {
    over_tiles(row_block_, tiles_.row_block, tiles_.row_blocks, tiles_.row_tiles, tiles_.rows, tiles_.rest_rows, f);
  };
  const auto tile = [&](const Affine& row_tile, std::int64_t rows, const Affine& column_tile, std::int64_t columns) {
    emit_tile(row_tile, rows, column_tile, columns, panel_start, depth, first, last);
  };
  // Rows of a result that no cache holds are written as they lie in memory; else a panel of the right side stays in the first cache.
  if (first && last && stores_much())
    over_rows([&](const Affine& row_tile, std::int64_t rows) {
      over_columns([&](const Affine& column_tile, std::int64_t columns) { tile(row_tile, rows, column_tile, columns); });
    });
  else
    over_columns([&](const Affine& column_tile, std::int64_t columns) {
      over_rows([&](const Affine& row_tile, std::int64_t rows) { tile(row_tile, rows, column_tile, columns); });
    });
  emitter_->leave();
}

void MatmulEmitter::emit_panels(bool first_outer, bool last_outer) {
  const std::int64_t k = loops_.inner(Dim::k);
  const std::int64_t whole = k / tiles_.depth, rest = k % tiles_.depth;
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
      space_.set_loop(var, positions[0]);
      loop_value_[positions[0]] = Affine(var);
      emit_panels(false, false);
    });
    return fixed_round(rounds - 1, false, true);
  }
  for (std::int64_t round = 1; round < rounds; ++round) fixed_round(round, false, round + 1 == rounds);
}

// The grid: batch, outer m, outer n, then blocks of the inner m and n; of a packing kernel, those of its side.
void MatmulEmitter::open_grid() {
  const auto skips = [&](Dim dim) {
    return (part_ == MatmulPart::lhs && dim == Dim::n) || (part_ == MatmulPart::rhs && dim == Dim::m);
  };
  loop_value_.resize(loops_.extents.size());
  for (std::size_t i = 0; i < loops_.extents.size(); ++i) {
    const Dim dim = loops_.dims[i];
    if (dim == Dim::k || skips(dim) || (dim != Dim::batch && i == loops_.of(dim).back())) continue;
    if (loops_.extents[i] == 1) continue;
    const VarId var = b_.task("", loops_.extents[i]);
    space_.set_loop(var, i);
    loop_value_[i] = Affine(var);
  }
  const auto block_var = [&](const char* name, std::int64_t blocks) {
    return blocks > 1 ? Affine(b_.task(name, blocks)) : Affine(0);
  };
  if (part_ != MatmulPart::rhs) row_block_ = block_var("mb", tiles_.row_blocks);
  if (part_ != MatmulPart::lhs) column_block_ = block_var("nb", tiles_.column_blocks);
}

// Addresses so many bytes apart, one for each step of a panel, meet in the sets of the first cache, whose ways are of 4 KiB.
bool MatmulEmitter::overfills_sets(std::int64_t bytes_apart) const {
  constexpr std::int64_t way_bytes = 4096;
  return std::min(tiles_.depth, loops_.inner(Dim::k)) * std::gcd(bytes_apart, way_bytes) > target_.l1_bytes;
}

// How each side is read: where it lies, or packed, by each task or once for all.
void MatmulEmitter::choose_places() {
  Kernel& kernel = lowered_.kernel;
  // Probed with variables that stand for whole loops.
  const std::vector<Affine> before = loop_value_;
  for (Dim dim : {Dim::m, Dim::n, Dim::k})
    for (std::size_t i : loops_.of(dim)) {
      if (dim != Dim::k && i != loops_.of(dim).back()) continue;
      const VarId var = b_.new_var("", loops_.extents[i]);
      space_.set_loop(var, i);
      loop_value_[i] = Affine(var);
    }
  compute_downstream();
  // The results say first how loops are split. Where operands disagree, it is they who divide at run time: two places to
  // store to must be told apart.
  const std::size_t no_division = kernel.body.size();
  for (const auto& [v, place] : downstream_places(dot_index())) emitter_->flat(place);
  BURIN_CHECK(kernel.body.size() == no_division, "a result whose place has to be divided at run time");
  // Can each side be read where it lies?
  const auto place_of = [&](ValueId v, const std::vector<std::pair<Dim, std::size_t>>& axes) {
    const std::size_t before_probe = kernel.body.size();
    auto place = find_largest_place(body_, v, operand_index(body_.type(v).shape, axes, plan_, flats(), *emitter_), *emitter_);
    // An index that has to be divided at run time is no place that a tile can walk over; it is packed, where it is divided again.
    if (kernel.body.size() > before_probe) place.reset();
    kernel.body.resize(before_probe);
    return place;
  };
  const auto lhs_place = place_of(plan_.lhs, plan_.lhs_axes), rhs_place = place_of(plan_.rhs, plan_.rhs_axes);
  const bool lhs_in_memory = is_moved_argument(body_, plan_.lhs), rhs_in_memory = is_moved_argument(body_, plan_.rhs);
  const VarId m_var = loop_value_[loops_.of(Dim::m).back()].terms[0].first;
  const VarId n_var = loop_value_[loops_.of(Dim::n).back()].terms[0].first;
  const VarId k_var = loop_value_[loops_.of(Dim::k).back()].terms[0].first;
  direct_lhs_ = lhs_place && lhs_in_memory && !pairs();
  lhs_lies_along_m_ = lhs_place && lhs_place->offset.coefficient(m_var) == 1 && lhs_place->offset.coefficient(k_var) != 1;
  lhs_along_m_ = lhs_lies_along_m_ && tiles_.block == 0;
  const auto bytes_apart = [&](const std::optional<Place>& place, ValueId side, VarId var) {
    return place ? place->offset.coefficient(var) * static_cast<std::int64_t>(size_of(body_.type(side).dtype)) : 0;
  };
  // Rows a multiple of 2 KiB apart share few sets of the first cache: a tile's rows would push one another out. Steps of k so far apart are
  // neither prefetched nor on one page; nearer ones share sets when a panel of them is read again.
  const bool several_column_tiles = tiles_.column_block > 1 || may_share(Dim::n, tiles_.column_blocks);
  const std::int64_t lhs_apart = bytes_apart(lhs_place, plan_.lhs, lhs_lies_along_m_ ? k_var : m_var);
  const bool slow_lhs = lhs_lies_along_m_ ? lhs_apart >= 2048 || overfills_sets(lhs_apart) : lhs_apart != 0 && lhs_apart % 2048 == 0;
  if (slow_lhs && tiles_.rows > 4 && several_column_tiles) direct_lhs_ = false;
  const bool whole_vectors = tiles_.rest_columns % tiles_.lanes == 0;
  const bool contiguous = rhs_place && rhs_place->offset.coefficient(n_var) == 1;
  const std::int64_t rows = may_share(Dim::m, tiles_.row_blocks) ? loops_.size(Dim::m) : tiles_.row_block * tiles_.rows;
  const bool slow_rhs = contiguous && overfills_sets(bytes_apart(rhs_place, plan_.rhs, k_var));
  const bool reused = rows > 64 && (slow_rhs || (tiles_.row_block * tiles_.rows > 64 && loops_.inner(Dim::k) >= 128));
  pack_ = pairs() || !(contiguous && rhs_in_memory && whole_vectors && !reused);
  rhs_along_k_ = rhs_place && rhs_place->offset.coefficient(k_var) == 1 && !contiguous;
  along_k_ = rhs_along_k_ && tiles_.steps(tiles_.depth) >= tiles_.lanes;
  can_keep_ = place_kept();
  if (part_ == MatmulPart::rhs) rhs_matrix_ = find_matrix();
  loop_value_ = before;
  choose_sharing();
}

void MatmulEmitter::add_scratch() {
  Kernel& kernel = lowered_.kernel;
  const auto scratch = [&](const char* name, std::int64_t elements, DType dtype) {
    return kernel.add_buffer(
        {.name = name, .dtype = dtype, .shape = Shape{elements}, .strides = {1}, .space = Space::scratch});
  };
  if (pack_ && !shares_rhs_)
    packed_ = scratch("packed_b", tiles_.column_block * rhs_tile_size(), packed_dtype());
  if (!direct_lhs_ && !shares_lhs_) packed_lhs_ = scratch("packed_a", tiles_.row_block * lhs_tile_size(), packed_dtype());
  if (loops_.size(Dim::k) > tiles_.depth)
    partial_ = scratch("partial", tiles_.row_block * tiles_.column_block * tiles_.rows * tiles_.columns, partial_dtype());
  if (downstream_.size() > max_unrolled_epilogue)
    spilled_ = scratch("tile", tiles_.rows * tiles_.columns, plan_.compute);
  for (std::int64_t rows : {tiles_.row_tiles > 0 ? tiles_.rows : 0, tiles_.padded_rows(tiles_.rest_rows)})
    for (std::int64_t columns : {tiles_.column_tiles > 0 ? tiles_.columns : 0, padded(tiles_.rest_columns)})
      if (rows > 0 && columns > 0 && !tile_buffers_.contains({rows, columns}))
        tile_buffers_[{rows, columns}] =
            kernel.add_buffer({.name = "tile" + std::to_string(rows) + "x" + std::to_string(columns),
                               .dtype = plan_.compute,
                               .shape = Shape{rows, columns},
                               .strides = {columns, 1},
                               .space = Space::tile});
}

bool MatmulEmitter::sums_along_memory() {
  if (loops_.size(Dim::m) != 1 || loops_.inner(Dim::k) < 2 * tiles_.lanes || loops_.size(Dim::n) == 0) return false;
  args_ = add_arguments(lowered_, body_, plan_.result);
  emitter_.emplace(body_, b_, space_, args_);
  open_grid();
  choose_places();
  return rhs_along_k_;
}

Lowering MatmulEmitter::run() {
  Kernel& kernel = lowered_.kernel;
  kernel.name = body_.name();
  Parameters parameters = add_parameters(lowered_, body_, in_place_);
  args_ = std::move(parameters.args);
  results_ = std::move(parameters.results);
  emitter_.emplace(body_, b_, space_, args_);
  const std::int64_t size = loops_.size(Dim::batch) * loops_.size(Dim::m) * loops_.size(Dim::n);
  const double flops_per_ns = tiles_.block != 0 ? 1000 : 100;
  kernel.cost = 2.0 * static_cast<double>(size) * static_cast<double>(loops_.size(Dim::k)) / flops_per_ns +
                element_cost(body_, target_) * static_cast<double>(size);
  Lowering done;
  if (size > 0) {
    open_grid();
    choose_places();
    if (!kept_.empty() && !can_keep_) return {};
    const auto share = [&](MatmulPart part, Dim free) {
      const Shape packed = {shared_size(free)};
      done.kernels.push_back(MatmulEmitter(body_, target_, plan_, loops_, in_place_, kept_, part).run_packing());
      lowered_.params.push_back({Param::temp, static_cast<std::uint32_t>(done.temps.size())});
      done.temps.push_back({packed_dtype(), packed});
      return kernel.add_buffer(
          {.name = part == MatmulPart::lhs ? "packed_a" : "packed_b", .dtype = packed_dtype(), .shape = packed, .strides = {1}, .space = Space::in});
    };
    if (shares_lhs_) packed_lhs_ = share(MatmulPart::lhs, Dim::m);
    if (shares_rhs_) packed_ = share(MatmulPart::rhs, Dim::n);
    add_kept();
    add_scratch();
    emit_task();
    for (std::size_t i = 0; i < kept_.size(); ++i)
      store_packed(b_, tiles_.lanes, kept_[i].matrix, halves_.at(kept_[i].result), kept_buffers_[i], blocks_of(kept_turned_ ? Dim::n : Dim::m),
                   blocks_of(kept_turned_ ? Dim::m : Dim::n));
    done.keeps = !kept_.empty();
  }
  done.main = done.kernels.size();
  done.kernels.push_back(std::move(lowered_));
  return done;
}

Lowering lower_matmul(const Function& body, const Target& target, const InPlace& in_place, std::span<const KeptPack> kept) {
  MatmulPlan plan;
  BURIN_CHECK(plan_matmul(body, &plan), "not a matmul fusion");
  MatmulLoops loops = initial_loops(plan);
  // Rows are read before results are stored, but for another row's sake too: what is overwritten stays with tiles.
  const bool overwrites = std::any_of(in_place.begin(), in_place.end(), [](std::int32_t arg) { return arg >= 0; });
  for (;;) {
    try {
      if (!overwrites && MatmulEmitter(body, target, plan, loops, in_place, {}).sums_along_memory()) {
        const Function sums = as_sums(body, plan);
        if (RowsPlan rows; plan_rows(sums, &rows)) return lower_rows(sums, target);
      }
      if (Lowering done = MatmulEmitter(body, target, plan, loops, in_place, kept).run(); !done.kernels.empty()) return done;
      kept = {};
    } catch (const NeedSplit& need) {
      loops.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
