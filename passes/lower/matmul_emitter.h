// The one who writes a matmul kernel: loops, tiles and what stands for what while it is written.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "passes/lower/lower.h"
#include "passes/lower/matmul_plan.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {

/// Ops on the product that are cheap enough to be written once per row; more of them run over a copy of the tile.
inline constexpr std::size_t max_unrolled_epilogue = 2;

/// What a kernel of a matmul does: the product, or packing one side of it for all tasks of the product.
enum class MatmulPart : std::uint8_t { product, lhs, rhs };

class MatmulEmitter {
 public:
  MatmulEmitter(const Function& body, const Target& target, const MatmulPlan& plan, const MatmulLoops& loops,
                const InPlace& in_place, std::span<const KeptPack> kept, MatmulPart part = MatmulPart::product)
      : body_(body),
        target_(target),
        plan_(plan),
        loops_(loops),
        in_place_(in_place),
        kept_(kept),
        part_(part),
        tiles_(choose_tiles(loops, plan.compute, target, multiplies_pairs(body, plan, loops, target), !kept.empty())) {}

  /// No kernels when it cannot update the packed copies that are kept.
  Lowering run();
  /// Is it a vector times a matrix whose rows along k lie in memory one after another?
  bool sums_along_memory();

 private:
  void open_grid();
  void choose_places();
  /// Enough blocks of the other side read this one, and there is enough work, that it is packed once for all of them.
  bool may_share(Dim other, std::int64_t blocks_of_other) const;
  void choose_sharing();
  bool overfills_sets(std::int64_t bytes_apart) const;
  void add_scratch();
  /// Elements of one side, packed for all tasks.
  std::int64_t shared_size(Dim free) const;
  /// A kernel of this part alone.
  LoweredKernel run_packing();
  void emit_task();
  void emit_panels(bool first_outer, bool last_outer);
  void emit_panel(const Affine& panel_start, std::int64_t depth, bool first, bool last);
  void pack_rhs(const Affine& panel_start, std::int64_t depth);
  void pack_lhs(const Affine& panel_start, std::int64_t depth);
  void clear_lhs(const Affine& tile, const Affine& panel_start, std::int64_t first_row, std::int64_t rows, std::int64_t first_step, std::int64_t steps);
  void store_halves(const Affine& tile, const Affine& r, const Affine& panel_start, std::int64_t from, std::int64_t to,
                    const std::function<ScalarId(const Affine& k)>& value);
  /// f for each packed element of a panel's k: in a loop over whole ones, then for one that k ends in.
  void over_steps(std::int64_t depth, LoopKind kind, const std::function<void(const Affine& step, std::int64_t k)>& f);
  ScalarId packed_value(ValueId operand, const std::vector<std::pair<Dim, std::size_t>>& axes, const Affine& first,
                        std::int64_t k, std::span<const Affine> inside);
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
  bool stores_much() const {
    return loops_.size(Dim::batch) * loops_.size(Dim::m) * loops_.size(Dim::n) * static_cast<std::int64_t>(size_of(plan_.compute)) > 8 * target_.l2_bytes;
  }
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
  /// Steps of k that a tile's packed elements lie side by side for: a panel's, or all when every task shares them.
  std::int64_t packed_steps(bool shared) const { return tiles_.padded_steps(shared ? loops_.inner(Dim::k) : tiles_.depth); }
  /// Rows of packed A: apart by a little more than they are long, so that they do not fall into one set of the cache.
  std::int64_t lhs_stride() const {
    return (packed_steps(shares_lhs_) + tiles_.lanes - 1) / tiles_.lanes * tiles_.lanes + tiles_.lanes;
  }
  /// Rows that are packed by whole vectors of them have room for the last vector.
  bool turns_lhs() const { return lhs_lies_along_m_ && !lhs_along_m_; }
  std::int64_t lhs_tile_size() const { return (turns_lhs() ? padded(tiles_.rows) : tiles_.rows) * lhs_stride(); }
  std::int64_t rhs_tile_size() const { return packed_steps(shares_rhs_) * tiles_.columns; }
  /// Which of the outer loops' rounds a task is in, of those over one side.
  Affine round_of(Dim free) const;
  std::int64_t rounds(Dim free) const;
  /// Where packed A keeps row r of a tile at a step of the panel; packed B column c of a tile of `width` columns.
  Affine lhs_slot(const Affine& row_tile, const Affine& r, const Affine& panel_start, const Affine& step) const;
  Affine rhs_slot(const Affine& column_tile, std::int64_t width, const Affine& c, const Affine& panel_start, const Affine& step) const;
  void compute_downstream();
  /// With loop_value_ at variables that stand for whole loops: what the right side is a packed copy of, if it is one of a whole argument.
  std::optional<PackedMatrix> find_matrix();
  /// The same for what is kept: which loops a result's rows and columns are. False when they are no loops of the product, or its
  /// blocks do not fit.
  bool place_kept();
  AxisBlocks blocks_of(Dim dim) const;
  void add_kept();
  /// Element (row, column) of the product in the block of the task, in the bf16 copy of a result's block.
  Affine half_at(const Affine& row, const Affine& column) const;
  Index dot_index() const;
  std::map<ValueId, Index> downstream_places(const Index& dot_index);

  const Function& body_;
  const Target& target_;
  const MatmulPlan& plan_;
  const MatmulLoops& loops_;
  const InPlace& in_place_;
  const std::span<const KeptPack> kept_;
  const MatmulPart part_;
  const MatmulTiles tiles_;

  LoweredKernel lowered_;
  BlockBuilder b_{lowered_.kernel};
  IndexSpace space_{b_};
  std::optional<ElementEmitter> emitter_;
  std::vector<BufferId> args_, results_;
  std::vector<Affine> loop_value_;  // by loop: its variable, or the expression of the inner one
  Affine row_block_, column_block_;
  bool pack_ = false, direct_lhs_ = true;
  bool shares_lhs_ = false, shares_rhs_ = false;  // packed once, by a kernel of its own, for all tasks
  bool lhs_lies_along_m_ = false;  // neighbours in m of the left operand are neighbours in memory
  bool lhs_along_m_ = false;  // and packed A holds the rows of a tile side by side too, which tile registers do not load
  bool packs_halves_ = false;  // rows of packed A are stored as bf16, not as pairs of them
  bool rhs_along_k_ = false;  // neighbours in k of the right operand are neighbours in memory
  bool along_k_ = false;      // and it is packed by vectors of k
  std::optional<PackedMatrix> rhs_matrix_;
  bool can_keep_ = false, kept_turned_ = false;  // whether columns of the product are rows of what is kept
  std::vector<BufferId> kept_buffers_;                // by kept_
  std::map<std::uint32_t, BufferId> halves_;          // by result
  BufferId packed_, packed_lhs_, partial_, spilled_;
  std::vector<ValueId> downstream_;  // values made of the dot by elementwise and bijective ops, in order
  std::map<std::pair<std::int64_t, std::int64_t>, BufferId> tile_buffers_;
};

}  // namespace burin::passes::lower
