// Factors of an attention kernel's products, as they lie to be multiplied.
#include <algorithm>

#include "passes/lower/attention_emitter.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {

// Rows of a tile beyond the axis: zeros, so that a product over all rows may take them along.
void AttentionEmitter::clear_missing(BufferId buffer, std::int64_t width, const Affine& tile, bool pairs) {
  const std::int64_t extent = plan_.extents[plan_.moving];
  if (extent % tiles_.moving == 0) return;
  const DType dtype = b_.kernel().buffers[buffer.index].dtype;
  const std::int64_t rows = tile_steps(pairs);
  b_.loop("m", Affine(pairs ? (extent + 1) / 2 : extent) - tile * rows, {Affine(rows)}, LoopKind::serial, 1,
          [&](VarId m) {
            b_.loop("c", 0, {Affine(width)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
              b_.store(buffer, {Affine(m), Affine(c)}, b_.constant(Literal::scalar_int(dtype, 0)));
            });
          });
}

ScalarId AttentionEmitter::paired(ScalarId low, ScalarId high) {
  const auto bits = [&](ScalarId value) {
    return b_.let(Op::convert, {b_.let(Op::bitcast, {value}, DType::u16)}, DType::u32);
  };
  if (!high.valid()) return bits(low);
  const ScalarId above =
      b_.let(Op::shift_left, {bits(high), b_.constant(Literal::scalar_int(DType::u32, 16))}, DType::u32);
  return b_.let(Op::bit_or, {bits(low), above}, DType::u32);
}

// Each takes the upper eight bits of what is left, so the remainders are exact. Where nothing is left of `value`, an
// infinity included, stands far less than it rounds: a zero times an infinity of the other factor would be NaN.
std::array<ScalarId, 3> AttentionEmitter::terms_of(ScalarId value) {
  const ScalarId upper_half = b_.constant(Literal::scalar_int(DType::u32, 0xffff0000));
  const ScalarId hardly = b_.let(Op::mul, {value, b_.constant(DType::f32, 0x1p-40)}, DType::f32);
  std::array<ScalarId, 3> terms;
  for (std::size_t i = 0;; ++i) {
    terms[i] = b_.let(Op::bit_and, {b_.let(Op::bitcast, {value}, DType::u32), upper_half}, DType::u32);
    if (i + 1 == terms.size()) return terms;
    const ScalarId taken = b_.let(Op::bitcast, {terms[i]}, DType::f32),
                   all = b_.let(Op::eq, {value, taken}, DType::bool_);
    value = b_.let(Op::select, {all, hardly, b_.let(Op::sub, {value, taken}, DType::f32)}, DType::f32);
  }
}

ScalarId AttentionEmitter::paired_terms(ScalarId low, ScalarId high) {
  const ScalarId below =
      b_.let(Op::shift_right_logical, {low, b_.constant(Literal::scalar_int(DType::u32, 16))}, DType::u32);
  return high.valid() ? b_.let(Op::bit_or, {below, high}, DType::u32) : below;
}

ScalarId AttentionEmitter::packed_element(const Factor& factor) {
  const ValueId v = value_of(factor);
  const ScalarId value = emitter_->emit(v, index_of(factor));
  const DType dtype = body_.type(v).dtype;
  if (!factor.pairs) return dtype == DType::f32 ? value : b_.let(Op::convert, {value}, DType::f32);
  if (dtype == DType::bf16) return value;
  const ScalarId bits = b_.let(Op::bitcast, {value}, DType::u32),
                 sixteen = b_.constant(Literal::scalar_int(DType::u32, 16));
  const ScalarId upper = b_.let(Op::shift_right_logical, {bits, sixteen}, DType::u32);  // all there is of it
  return b_.let(Op::bitcast, {b_.let(Op::convert, {upper}, DType::u16)}, DType::bf16);
}

ScalarId AttentionEmitter::paired_positions(const Factor& factor, const Affine& tile, const Affine& step,
                                            std::int64_t count) {
  ScalarId values[2] = {};
  for (std::int64_t u = 0; u < count; ++u)
    at_moving(tile, step * 2 + Affine(u), [&] { values[u] = packed_element(factor); });
  return paired(values[0], values[1]);
}

// The packed elements of the inner axis; of a score's pairs, the last may be one alone.
void AttentionEmitter::over_inner(const Factor& factor, LoopKind kind,
                                  const std::function<void(const Affine&, const std::function<ScalarId()>&)>& body) {
  const bool pairs = factor.pairs && factor.of_score;
  const std::int64_t whole = pairs ? factor.inner / 2 : factor.inner;
  if (whole > 0)
    b_.loop("c", 0, {Affine(whole)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId c) {
      emitter_->enter();
      body(Affine(c), [&] {
        set_inner(pairs ? Affine(c, 2) : Affine(c));
        const ScalarId low = packed_element(factor);
        if (!pairs) return low;
        set_inner(Affine(c, 2) + Affine(1));
        return paired(low, packed_element(factor));
      });
      emitter_->leave();
    });
  if (!pairs || factor.inner % 2 == 0) return;
  emitter_->enter();
  body(Affine(whole), [&] {
    set_inner(Affine(factor.inner - 1));
    return paired(packed_element(factor), {});
  });
  emitter_->leave();
}

void AttentionEmitter::pack_moving(const Factor& factor, const Affine& tile) {
  if (factor.on_tiles && !factor.of_score) return pack_turned(factor, tile);
  const bool pairs = factor.pairs && !factor.of_score;  // of positions
  const auto over_columns = [&](const Affine& row, const std::function<ScalarId()>& element) {
    b_.loop("c", 0, {Affine(factor.inner)}, LoopKind::vector, tiles_.lanes, [&](VarId c) {
      set_inner(Affine(c));
      b_.store(factor.buffer, {row, Affine(c)}, element());
    });
  };
  if (pairs) {
    over_moving_pairs(tile, [&](const Affine& row, std::int64_t count) {
      over_columns(row, [&] { return paired_positions(factor, tile, row, count); });
    });
  } else if (factor.along_inner) {
    over_moving(tile, [&](const Affine& m) {
      over_inner(factor, LoopKind::vector, [&](const Affine& c, const auto& element) {
        b_.store(factor.buffer, {m, c}, element());
      });
    });
  } else {
    over_inner(factor, LoopKind::serial, [&](const Affine& c, const auto& element) {
      b_.loop("m", 0, positions(plan_.moving, tiles_.moving, tile * tiles_.moving), LoopKind::vector, tiles_.lanes,
              [&](VarId m) {
                at_moving(tile, Affine(m), [&] { b_.store(factor.buffer, {Affine(m), c}, element()); });
              });
    });
  }
  clear_missing(factor.buffer, b_.kernel().buffers[factor.buffer.index].shape[1], tile, pairs);
}

// Where a factor is not as deep as what is multiplied, once for all tiles.
void AttentionEmitter::clear_padding() {
  const auto clear = [&](const Factor& factor, std::size_t axis) {
    const std::int64_t steps = inner_steps(factor), padded = padded_steps(factor);
    if (steps == padded) return;
    const ScalarId zero = b_.constant(DType::u32, 0);
    if (axis == 0)
      b_.loop("k", Affine(steps), {Affine(padded)}, LoopKind::serial, 1, [&](VarId k) {
        b_.loop("f", 0, {Affine(tiles_.fixed)}, LoopKind::vector, tiles_.lanes, [&](VarId f) {
          b_.store(factor.buffer, {Affine(k), Affine(f)}, zero);
        });
      });
    else
      b_.loop("m", 0, {Affine(tiles_.moving)}, LoopKind::serial, 1, [&](VarId m) {
        b_.loop("k", Affine(steps), {Affine(padded)}, LoopKind::vector, tiles_.lanes, [&](VarId k) {
          b_.store(factor.buffer, {Affine(m), Affine(k)}, zero);
        });
      });
  };
  for (const Factor& factor : fixed_) clear(factor, 0);
  for (const Factor& factor : moving_) clear(factor, 1);
}

// [inner][pairs of positions]; where neighbours along the inner axis are neighbours in memory, vectors of those, which
// codegen turns.
void AttentionEmitter::pack_turned(const Factor& factor, const Affine& tile) {
  const std::int64_t extent = plan_.extents[plan_.moving], steps = tile_steps(true);
  const auto element = [&](const Affine& step, std::int64_t count) {
    return paired_positions(factor, tile, step, count);
  };
  const auto over_columns = [&](LoopKind kind, const std::function<void(const Affine& c)>& body) {
    b_.loop("c", 0, {Affine(factor.inner)}, kind, kind == LoopKind::vector ? tiles_.lanes : 1, [&](VarId c) {
      emitter_->enter();
      set_inner(factor.inner == 1 ? Affine(0) : Affine(c));
      body(Affine(c));
      emitter_->leave();
    });
  };
  const auto whole = [&] {
    if (factor.along_inner)
      b_.loop("q", 0, {Affine(steps / tiles_.lanes)}, LoopKind::serial, 1, [&](VarId q) {
        over_columns(LoopKind::vector, [&](const Affine& c) {
          b_.loop("u", 0, {Affine(tiles_.lanes)}, LoopKind::unroll, 1, [&](VarId u) {
            const Affine step = Affine(q, tiles_.lanes) + Affine(u);
            b_.store(factor.buffer, {c, step}, element(step, 2));
          });
        });
      });
    else
      over_columns(LoopKind::serial, [&](const Affine& c) {
        b_.loop("m", 0, {Affine(steps)}, LoopKind::vector, tiles_.lanes, [&](VarId m) {
          b_.store(factor.buffer, {c, Affine(m)}, element(Affine(m), 2));
        });
      });
  };
  const auto rest = [&] {
    over_moving_pairs(tile, [&](const Affine& step, std::int64_t count) {
      over_columns(LoopKind::vector, [&](const Affine& c) {
        b_.store(factor.buffer, {c, step}, element(step, count));
      });
    });
    const ScalarId zero = b_.constant(DType::u32, 0);
    over_columns(LoopKind::serial, [&](const Affine& c) {
      b_.loop("m", Affine((extent + 1) / 2) - tile * steps, {Affine(steps)}, LoopKind::serial, 1, [&](VarId m) {
        b_.store(factor.buffer, {c, Affine(m)}, zero);
      });
    });
  };
  if (extent % tiles_.moving == 0) return whole();
  if (extent < tiles_.moving) return rest();
  const std::int64_t last = tiles_.moving_blocks - 1;
  b_.when({Affine(last - 1) - tile}, whole);
  b_.when({tile - Affine(last)}, rest);
}

void AttentionEmitter::pack_fixed(const Factor& factor) {
  if (!factor.along_inner) {
    over_inner(factor, LoopKind::serial, [&](const Affine& c, const auto& element) {
      over_fixed(LoopKind::vector, [&](const Affine& f) { b_.store(factor.buffer, {c, f}, element()); });
    });
    return;
  }
  const std::int64_t extent = plan_.extents[plan_.fixed];
  // Vectors along the inner axis, which codegen turns into vectors along the fixed one.
  const auto whole = [&] {
    b_.loop("q", 0, {Affine(tiles_.fixed / tiles_.lanes)}, LoopKind::serial, 1, [&](VarId q) {
      over_inner(factor, LoopKind::vector, [&](const Affine& c, const auto& element) {
        b_.loop("u", 0, {Affine(tiles_.lanes)}, LoopKind::unroll, 1, [&](VarId u) {
          emitter_->enter();
          const Affine f = Affine(q, tiles_.lanes) + Affine(u);
          stand_for(plan_.fixed, fixed_start_ + f);
          b_.store(factor.buffer, {c, f}, element());
          emitter_->leave();
        });
      });
    });
  };
  const auto rest = [&] {
    over_fixed(LoopKind::serial, [&](const Affine& f) {
      over_inner(factor, LoopKind::vector, [&](const Affine& c, const auto& element) {
        b_.store(factor.buffer, {c, f}, element());
      });
    });
  };
  if (extent % tiles_.fixed == 0) return whole();
  if (extent < tiles_.fixed) return rest();
  b_.when({Affine(extent - tiles_.fixed) - fixed_start_}, whole);
  b_.when({fixed_start_ - Affine(extent - tiles_.fixed + 1)}, rest);
}

}  // namespace burin::passes::lower
