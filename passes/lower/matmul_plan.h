// A contraction as matmul sees it: batch, m, n and k loops, tiles and blocks, and where each side's elements lie.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "ir/target.h"
#include "passes/lower/element.h"

namespace burin::passes::lower {

enum class Dim : std::uint8_t { batch, m, n, k };

/// Loops of the four classes, outermost first. Each class starts as one loop and is split when an index asks for it;
/// the last m, n and k loops are the ones that are tiled.
struct MatmulLoops {
  std::vector<std::int64_t> extents;
  std::vector<Dim> dims;

  void split(std::size_t i, std::int64_t factor);
  /// Positions of the loops of a class.
  std::vector<std::size_t> of(Dim dim) const;
  std::int64_t inner(Dim dim) const { return extents[of(dim).back()]; }
  std::int64_t size(Dim dim) const;
};

struct MatmulPlan {
  OpId dot;
  DType compute;  // of tiles: f32 or f64
  ValueId lhs, rhs, result;
  Shape batch, m, n, k;  // extents per axis of each class, in the order of the dot's axes
  // By axis of the operand: its class and its position within it.
  std::vector<std::pair<Dim, std::size_t>> lhs_axes, rhs_axes;
};
/// False when the body has no dot_general of floats, or several. Of a matrix and a vector, the vector is the left side.
bool plan_matmul(const Function& body, MatmulPlan* plan);
MatmulLoops initial_loops(const MatmulPlan& plan);

struct MatmulTiles {
  std::int64_t lanes = 16;
  std::int64_t rows = 0, columns = 0;            // of a register tile; columns is a multiple of lanes
  std::int64_t row_tiles = 0, column_tiles = 0;  // whole tiles in the inner m and n loops
  std::int64_t rest_rows = 0, rest_columns = 0;  // of the last, partial tile
  std::int64_t row_block = 0, column_block = 0;  // tiles per task
  std::int64_t row_blocks = 0, column_blocks = 0;
  std::int64_t depth = 0;  // k per panel
  bool sums_panels = false;  // tiles start each panel at 0 and are added up, instead of running through all of k
  std::int64_t unit = 1;   // k per packed element: 2 when u32 holds a pair of bf16
  // On tile registers: pairs per block of k, and rows of a register; 0 and 1 elsewhere. Depths are padded with zeros to whole
  // blocks, and rows to whole registers: all tiles of a kernel have one shape.
  std::int64_t block = 0, row_piece = 1;

  /// Packed elements of `k` values of k.
  std::int64_t steps(std::int64_t k) const { return (k + unit - 1) / unit; }
  /// With zeros up to the end of a block.
  std::int64_t padded_steps(std::int64_t k) const { return block == 0 ? steps(k) : (steps(k) + block - 1) / block * block; }
  std::int64_t padded_rows(std::int64_t m) const { return (m + row_piece - 1) / row_piece * row_piece; }
  /// Of the k at which a panel starts, a multiple of `unit`.
  Affine steps(Affine panel_start) const {
    panel_start.constant /= unit;
    for (auto& [var, coefficient] : panel_start.terms) coefficient /= unit;
    return panel_start;
  }
  std::int64_t all_row_tiles() const { return row_tiles + (rest_rows > 0); }
  std::int64_t all_column_tiles() const { return column_tiles + (rest_columns > 0); }
};
/// `keeps`: the result's packed copies are laid out by its tasks, whose blocks then hold whole tiles of them.
MatmulTiles choose_tiles(const MatmulLoops& loops, DType compute, const Target& target, bool pairs, bool keeps);
/// Are products of bf16 formed pair by pair? Where there is an instruction for it, and enough of either side to pay for
/// packing both.
bool multiplies_pairs(const Function& body, const MatmulPlan& plan, const MatmulLoops& loops, const Target& target);

/// The body of a product whose left side is a vector (in each batch), with a sum over products in place of the dot.
Function as_sums(const Function& body, const MatmulPlan& plan);

/// Element (batch, m, n, k), given as one flat expression per loop class, of an operand of the dot.
Index operand_index(const Shape& operand, const std::vector<std::pair<Dim, std::size_t>>& axes, const MatmulPlan& plan,
                    const std::vector<Affine>& flat_by_dim, ElementEmitter& emitter);

/// Where the elements of a value lie when they are elements of an argument at affine positions: no arithmetic in
/// between.
struct Place {
  std::size_t arg;
  Affine offset;
};
std::optional<Place> find_place(const Function& body, ValueId v, const Index& at, ElementEmitter& emitter);
bool is_moved_argument(const Function& body, ValueId v);
/// The same for an argument of as many elements that the value is made of, element by element: what it reads most.
std::optional<Place> find_largest_place(const Function& body, ValueId v, const Index& at, ElementEmitter& emitter);

}  // namespace burin::passes::lower
