#include "passes/lower/kept_pack.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/check.h"

namespace burin::passes::lower {
namespace {

// Calls f for units of `unit` elements of a block: which it is of all, where it begins in the block, and how many it has. In a loop
// over whole ones, then for one that the axis ends in.
void over_units(BlockBuilder& b, const AxisBlocks& axis, std::int64_t unit, LoopKind kind, std::int64_t lanes,
                const std::function<void(const Affine& number, const Affine& start, std::int64_t elements)>& f) {
  const std::int64_t per_block = axis.size / unit, whole = axis.total / unit, rest = axis.total % unit;
  if (const std::int64_t most = std::min(per_block, whole); most > 0) {
    std::vector<Affine> bounds = {Affine(most)};
    if (whole < axis.count * per_block) bounds.push_back(Affine(whole) - axis.block * per_block);
    b.loop("", 0, bounds, kind, lanes, [&](VarId i) { f(axis.block * per_block + Affine(i), Affine(i, unit), unit); });
  }
  if (rest == 0) return;
  const auto last = [&] { f(Affine(whole), Affine(whole * unit) - axis.block * axis.size, rest); };
  if (axis.count > 1)
    b.when({axis.block - Affine(axis.count - 1)}, last);
  else
    last();
}

}  // namespace

bool blocks_fit(const PackedMatrix& matrix, const AxisBlocks& rows, const AxisBlocks& columns) {
  if (matrix.rows != rows.total) return false;
  BURIN_CHECK(matrix.columns == columns.total, "an update of another size than the packed matrix");
  const auto fits = [](const AxisBlocks& axis, std::int64_t unit) { return axis.count == 1 || axis.size % unit == 0; };
  return fits(rows, matrix.k_is_columns ? matrix.width : 2) && fits(columns, matrix.k_is_columns ? 2 : matrix.width);
}

BufferId add_packed(Kernel& kernel, const PackedMatrix& matrix) {
  const std::int64_t n = matrix.k_is_columns ? matrix.rows : matrix.columns;
  const Shape size = {(n + matrix.width - 1) / matrix.width * matrix.tile_size};
  return kernel.add_buffer({.name = "kept", .dtype = DType::u32, .shape = size, .strides = {1}, .space = Space::inout});
}

BufferId add_half(Kernel& kernel, const AxisBlocks& rows, const AxisBlocks& columns) {
  const Shape size = {rows.size * half_stride(columns)};
  return kernel.add_buffer({.name = "half", .dtype = DType::bf16, .shape = size, .strides = {1}, .space = Space::scratch});
}

// A little more than they are long: rows should not fall into one set of the cache.
std::int64_t half_stride(const AxisBlocks& columns) { return (columns.size + 31) / 32 * 32 + 32; }

ScalarId as_half(BlockBuilder& b, ScalarId value, DType dtype) {
  return dtype == DType::bf16 ? value : b.let(Op::convert, {value}, DType::bf16);
}

void store_packed(BlockBuilder& b, std::int64_t lanes, const PackedMatrix& matrix, BufferId half, BufferId packed, const AxisBlocks& rows,
                  const AxisBlocks& columns) {
  const std::int64_t stride = half_stride(columns);
  const auto bits = [&](const Affine& row, const Affine& column) {
    const ScalarId element = b.load(half, {row * stride + column});
    return b.let(Op::convert, {b.let(Op::bitcast, {element}, DType::u16)}, DType::u32);
  };
  const auto store_pair = [&](const Affine& row, const Affine& column, std::int64_t elements, const Affine& slot) {
    ScalarId pair = bits(row, column);
    if (elements == 2) {
      const ScalarId high = matrix.k_is_columns ? bits(row, column + Affine(1)) : bits(row + Affine(1), column);
      pair = b.let(Op::bit_or, {pair, b.let(Op::shift_left, {high, b.constant(DType::u32, 16)}, DType::u32)}, DType::u32);
    }
    b.store(packed, {slot}, pair);
  };
  const auto width_of = [&](std::int64_t elements) { return elements == matrix.width ? matrix.width : matrix.last_width; };
  if (!matrix.k_is_columns) {
    over_units(b, columns, matrix.width, LoopKind::serial, 1, [&](const Affine& tile, const Affine& column, std::int64_t extent) {
      over_units(b, rows, 2, LoopKind::serial, 1, [&](const Affine& pair, const Affine& row, std::int64_t elements) {
        b.loop("c", 0, {Affine(extent)}, LoopKind::vector, lanes, [&](VarId c) {
          store_pair(row, column + Affine(c), elements, tile * matrix.tile_size + pair * width_of(extent) + Affine(c));
        });
      });
    });
    return;
  }
  // Vectors of pairs, which codegen turns into vectors of rows, one block of rows after another.
  over_units(b, rows, matrix.width, LoopKind::serial, 1, [&](const Affine& tile, const Affine& row, std::int64_t extent) {
    const auto block = [&](const Affine& first, std::int64_t count) {
      over_units(b, columns, 2, LoopKind::vector, lanes, [&](const Affine& pair, const Affine& column, std::int64_t elements) {
        b.loop("c", 0, {Affine(count)}, LoopKind::unroll, 1, [&](VarId c) {
          store_pair(row + first + Affine(c), column, elements, tile * matrix.tile_size + pair * width_of(extent) + first + Affine(c));
        });
      });
    };
    const std::int64_t whole = extent / lanes, rest = extent % lanes;
    if (whole > 0) b.loop("q", 0, {Affine(whole)}, LoopKind::serial, 1, [&](VarId q) { block(Affine(q, lanes), lanes); });
    if (rest > 0) block(Affine(whole * lanes), rest);
  });
}

}  // namespace burin::passes::lower
