// The products of an attention kernel on tiles of registers.
#include "passes/lower/attention_emitter.h"

namespace burin::passes::lower {

void AttentionEmitter::over_registers(BufferId tile, const std::function<void(const Affine&, const Affine&)>& f) {
  const Shape shape = b_.kernel().buffers[tile.index].shape;
  b_.loop("r", 0, {Affine(shape[0])}, LoopKind::unroll, 1, [&](VarId r) {
    b_.loop("c", 0, {Affine(shape[1])}, LoopKind::vector, tiles_.lanes, [&](VarId c) { f(Affine(r), Affine(c)); });
  });
}

Stmt AttentionEmitter::multiplication(BufferId tile, std::int64_t depth, bool on_tiles) {
  Stmt mma{.kind = StmtKind::mma};
  mma.buffer = tile;
  mma.row = b_.kernel().new_var("r");
  mma.column = b_.kernel().new_var("c");
  mma.depth = b_.kernel().new_var("k");
  mma.hi = {Affine(depth)};
  if (on_tiles) mma.block = tiles_.block;
  return mma;
}

void AttentionEmitter::multiply_score(std::size_t score) {
  const Factor &moving = moving_[moving_of_score_[score]], &fixed = fixed_[fixed_of_score_[score]];
  const std::int64_t rows = moving.on_tiles ? 2 * tiles_.block : tiles_.rows;
  const BufferId tile = register_tile(rows, tiles_.columns);
  b_.loop("j", 0, {Affine(tiles_.fixed / tiles_.columns)}, LoopKind::serial, 1, [&](VarId j) {
    b_.loop("i", 0, {Affine(tiles_.moving / rows)}, LoopKind::serial, 1, [&](VarId i) {
      over_registers(tile, [&](const Affine& r, const Affine& c) {
        b_.store(tile, {r, c}, b_.constant(DType::f32, 0));
      });
      Stmt mma = multiplication(tile, padded_steps(moving), moving.on_tiles);
      mma.a = moving.buffer;
      mma.a_indices = {Affine(i, rows) + Affine(mma.row), Affine(mma.depth)};
      mma.b = fixed.buffer;
      mma.b_indices = {Affine(mma.depth), Affine(j, tiles_.columns) + Affine(mma.column)};
      b_.push(std::move(mma));
      over_registers(tile, [&](const Affine& r, const Affine& c) {
        b_.store(score_tiles_[score], {Affine(i, rows) + r, Affine(j, tiles_.columns) + c}, b_.load(tile, {r, c}));
      });
    });
  });
}

// Each tile is summed from zero and added to the sum so far: errors grow with the number of tiles, not with that of
// terms.
void AttentionEmitter::add_product(const Product& product) {
  const Factor& moving = moving_[product.factor];
  if (moving.on_tiles) return add_on_tiles(product);
  const BufferId part = parts_[product.part].buffers[0];
  const std::int64_t width = b_.kernel().buffers[product.sum.index].shape[1];
  const auto columns_from = [&](const Affine& first, std::int64_t columns) {
    const BufferId tile = register_tile(tiles_.rows, columns);
    b_.loop("i", 0, {Affine(tiles_.fixed / tiles_.rows)}, LoopKind::serial, 1, [&](VarId i) {
      over_registers(tile, [&](const Affine& r, const Affine& c) {
        b_.store(tile, {r, c}, b_.constant(DType::f32, 0));
      });
      Stmt mma = multiplication(tile, tile_steps(moving.pairs), false);
      mma.a = part;
      mma.a_indices = {Affine(mma.depth), Affine(i, tiles_.rows) + Affine(mma.row)};
      mma.b = moving.buffer;
      mma.b_indices = {Affine(mma.depth), first + Affine(mma.column)};
      b_.push(std::move(mma));
      over_registers(tile, [&](const Affine& r, const Affine& c) {
        const std::vector<Affine> at = {Affine(i, tiles_.rows) + r, first + c};
        ScalarId sum = b_.load(product.sum, at);
        if (plan_.maximum.valid()) sum = b_.let(Op::mul, {sum, b_.load(rescale_, {at[0]})}, DType::f32);
        b_.store(product.sum, at, b_.let(Op::add, {sum, b_.load(tile, {r, c})}, DType::f32));
      });
    });
  };
  const std::int64_t pair = 2 * tiles_.lanes;
  if (width >= pair)
    b_.loop("j", 0, {Affine(width / pair)}, LoopKind::serial, 1, [&](VarId j) { columns_from(Affine(j, pair), pair); });
  if (width % pair != 0) columns_from(Affine(width - tiles_.lanes), tiles_.lanes);
}

// A tile instruction reads rows of k, and what is multiplied lies along the fixed axis: so the sum lies turned. Its
// blocks of k are summed apart, so tiles add to the sum itself.
void AttentionEmitter::add_on_tiles(const Product& product) {
  const Factor& moving = moving_[product.factor];
  const BufferId sum = product.turned_sum;
  const std::int64_t width = b_.kernel().buffers[sum.index].shape[0];
  if (plan_.maximum.valid())
    b_.loop("f", 0, {Affine(tiles_.fixed)}, LoopKind::vector, tiles_.columns, [&](VarId f) {
      const ScalarId scale = b_.load(rescale_, {Affine(f)});
      b_.loop("c", 0, {Affine(width)}, LoopKind::serial, 1, [&](VarId c) {
        const std::vector<Affine> at = {Affine(c), Affine(f)};
        b_.store(sum, at, b_.let(Op::mul, {b_.load(sum, at), scale}, DType::f32));
      });
    });
  const auto rows_from = [&](const Affine& first, std::int64_t rows) {
    const BufferId tile = register_tile(rows, tiles_.columns);
    b_.loop("j", 0, {Affine(tiles_.fixed / tiles_.columns)}, LoopKind::serial, 1, [&](VarId j) {
      const auto at = [&](const Affine& r, const Affine& c) {
        return std::vector<Affine>{first + r, Affine(j, tiles_.columns) + c};
      };
      over_registers(tile, [&](const Affine& r, const Affine& c) { b_.store(tile, {r, c}, b_.load(sum, at(r, c))); });
      for (const BufferId part : parts_[product.part].buffers) {
        Stmt mma = multiplication(tile, tile_steps(true), true);
        mma.a = moving.buffer;
        mma.a_indices = {first + Affine(mma.row), Affine(mma.depth)};
        mma.b = part;
        mma.b_indices = {Affine(mma.depth), Affine(j, tiles_.columns) + Affine(mma.column)};
        b_.push(std::move(mma));
      }
      over_registers(tile, [&](const Affine& r, const Affine& c) { b_.store(sum, at(r, c), b_.load(tile, {r, c})); });
    });
  };
  const std::int64_t two = 2 * tiles_.block;
  if (width >= two)
    b_.loop("i", 0, {Affine(width / two)}, LoopKind::serial, 1, [&](VarId i) { rows_from(Affine(i, two), two); });
  if (width % two != 0) rows_from(Affine(width - tiles_.block), tiles_.block);
}

// Vectors of fixed positions, which codegen turns into vectors of the inner axis.
void AttentionEmitter::turn_sum(const Product& product) {
  const std::int64_t width = b_.kernel().buffers[product.sum.index].shape[1];
  b_.loop("q", 0, {Affine(width / tiles_.lanes)}, LoopKind::serial, 1, [&](VarId q) {
    b_.loop("f", 0, {Affine(tiles_.fixed)}, LoopKind::vector, tiles_.lanes, [&](VarId f) {
      b_.loop("u", 0, {Affine(tiles_.lanes)}, LoopKind::unroll, 1, [&](VarId u) {
        const Affine c = Affine(q, tiles_.lanes) + Affine(u);
        b_.store(product.sum, {Affine(f), c}, b_.load(product.turned_sum, {c, Affine(f)}));
      });
    });
  });
}

}  // namespace burin::passes::lower
