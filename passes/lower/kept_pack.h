// Packed copies of matrices that a program keeps from call to call: how a packing kernel lays one out, and the statements
// with which the kernel that updates the matrix lays out its own part of the copy.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "ir/kernel/block_builder.h"

namespace burin::passes::lower {

using namespace ir;

/// The right side of a product of pairs, packed once for all tasks: [tile of n][pair of k][column], in u32 that hold two
/// bf16, the one of lower k in the low half. What is left of a tile, or of a pair, is zero.
struct PackedMatrix {
  std::int64_t rows = 0, columns = 0;  // as it lies in memory, row by row
  bool k_is_columns = false;           // pairs are neighbours in a row; else of one column and two rows
  std::int64_t width = 0;              // columns of a tile
  std::int64_t last_width = 0;         // of the last tile when that is not whole, zeros included
  std::int64_t tile_size = 0;          // u32 from tile to tile
  friend bool operator==(const PackedMatrix&, const PackedMatrix&) = default;
};

/// How the tasks of a kernel share out an axis of a matrix: block number `block` of `count` begins at block * size, and has
/// `size` elements or what is left.
struct AxisBlocks {
  Affine block;
  std::int64_t size = 0, count = 1, total = 0;
};

/// A result of a fusion whose packed copy its kernel is to update.
struct KeptPack {
  std::uint32_t result = 0;
  PackedMatrix matrix;
  friend bool operator==(const KeptPack&, const KeptPack&) = default;
};

/// The parameter that holds the packed copy, and the scratch for a block in bf16, row by row.
BufferId add_packed(Kernel& kernel, const PackedMatrix& matrix);
BufferId add_half(Kernel& kernel, const AxisBlocks& rows, const AxisBlocks& columns);

/// Do blocks of the matrix meet in no u32 and in no tile?
bool blocks_fit(const PackedMatrix& matrix, const AxisBlocks& rows, const AxisBlocks& columns);
/// From row to row of a block in bf16.
std::int64_t half_stride(const AxisBlocks& columns);
/// Stores a task's block into `packed`, all but the zeros, which are there; `half` holds the block in bf16, row by row.
void store_packed(BlockBuilder& b, std::int64_t lanes, const PackedMatrix& matrix, BufferId half, BufferId packed, const AxisBlocks& rows,
                  const AxisBlocks& columns);
/// The element in bf16, as packing reads it.
ScalarId as_half(BlockBuilder& b, ScalarId value, DType dtype);

}  // namespace burin::passes::lower
