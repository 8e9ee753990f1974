// The one who writes an attention kernel: tiles of the domain come and go in scratch, what sums over them stays.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/target.h"
#include "passes/lower/attention_conditions.h"
#include "passes/lower/attention_plan.h"
#include "passes/lower/lower.h"
#include "passes/lower/matmul_plan.h"

namespace burin::passes::lower {

/// By shapes and target alone.
struct AttentionTiles {
  std::int64_t lanes = 16;
  std::int64_t rows = 8, columns = 32;  // of a tile of registers; columns is a multiple of lanes
  std::int64_t fixed = 64,
               moving = 64;  // positions of a tile of the domain; multiples of rows, `fixed` also of columns
  std::int64_t fixed_blocks = 1, moving_blocks = 1;
  /// Steps of k that pairs are multiplied in at a time, where the target has tile instructions; then rows and depths of
  /// their products are filled up to what an instruction takes, so that all of them share the shapes of the tile
  /// registers.
  std::int64_t block = 0;
};
AttentionTiles choose_tiles(const AttentionPlan& plan, const Target& target, bool multiplies_pairs);

/// A loop of the grid over (a part of) an axis of the domain.
struct AttentionLoop {
  std::size_t axis = 0;
  std::int64_t extent = 1;
};

struct TileAxes {
  bool fixed = true, moving = true;
};

class AttentionEmitter {
 public:
  AttentionEmitter(const Function& body, const Target& target, const AttentionPlan& plan,
                   const std::vector<AttentionLoop>& grid)
      : body_(body),
        target_(target),
        plan_(plan),
        grid_(grid),
        tiles_(choose_tiles(plan, target, multiplies_pairs())) {}
  Lowering run();

 private:
  /// A factor of a product as it is packed, in f32: [positions of the tile][inner], or for a fixed one
  /// [inner][positions]. Where pairs of bf16 are multiplied, neighbours along the axis that is summed over are one u32;
  /// what a tile instruction reads rows of k from lies [inner][pairs of positions].
  struct Factor {
    OpId dot;
    std::size_t side = 0;
    bool of_score = true;
    bool pairs = false, on_tiles = false;
    std::int64_t inner = 0;
    bool along_inner = true;  // neighbours along the inner axis are neighbours in memory
    BufferId buffer{};
    // Equal for factors that hold the same elements.
    ValueId source{};
    Affine offset{};
  };
  struct Product {
    OpId op;
    BufferId sum;                      // [fixed][inner]
    std::size_t factor = 0, part = 0;  // of moving_ and of parts_
    BufferId turned_sum{};             // [inner][fixed], of tile instructions; `sum` is filled when all is summed
  };
  /// How a product sums what is computed on a tile: as f32, as pairs of bf16, or as pairs of the three bf16 that an f32
  /// is the sum of, each of which tile instructions multiply (Henry, Tang and Heinecke, "Leveraging the bfloat16
  /// Artificial Intelligence Datatype For Higher-Precision Computations", 2019).
  enum class PartForm : std::uint8_t { f32, pairs, terms };
  struct Part {
    ValueId value;
    PartForm form;
    std::vector<BufferId> buffers{};  // of `terms` the least term last
  };

  // attention.cpp
  void declare_grid();
  std::size_t add_factor(std::vector<Factor>& list, Factor factor, std::size_t axis);
  void make_buffers();
  ValueId value_of(const Factor& factor) const { return body_.operand(factor.dot, factor.side); }
  Index index_of(const Factor& factor);
  void stand_for(std::size_t axis, const Affine& expression);
  void set_inner(const Affine& inner) { at_[plan_.num_axes()] = inner; }
  /// The expression of the plan's variables at the current positions.
  Affine at_axes(const Affine& in_plan) const;
  Index placed(ValueId v) const { return placed(*plan_.place[v.index]); }
  Index placed(const Index& in_plan) const;
  void pack_fixed(const Factor& factor);
  void pack_moving(const Factor& factor, const Affine& tile);
  ScalarId packed_element(const Factor& factor);
  /// Of bf16 values, the second of which may be missing.
  ScalarId paired(ScalarId low, ScalarId high);
  /// The bits of the bf16 values that sum up to `value`, each in the upper half of a u32.
  std::array<ScalarId, 3> terms_of(ScalarId value);
  ScalarId paired_terms(ScalarId low, ScalarId high);
  bool multiplies_pairs(OpId dot) const;
  /// An f32 with a bf16, the former as the sum of its terms.
  bool multiplies_terms(OpId product) const;
  bool multiplies_pairs() const;  // any product
  /// Packed elements of the inner axis, or of a product's factor; and as many as are multiplied.
  static std::int64_t inner_steps(const Factor& f) { return f.pairs && f.of_score ? (f.inner + 1) / 2 : f.inner; }
  std::int64_t padded_steps(const Factor& f) const;
  std::int64_t tile_steps(bool pairs) const { return pairs ? tiles_.moving / 2 : tiles_.moving; }
  void over_inner(const Factor& factor, LoopKind kind,
                  const std::function<void(const Affine& step, const std::function<ScalarId()>& element)>& body);
  void multiply_score(std::size_t score);
  void add_product(const Product& product);
  void add_on_tiles(const Product& product);
  void turn_sum(const Product& product);
  BufferId register_tile(std::int64_t rows, std::int64_t columns);
  void over_registers(BufferId tile, const std::function<void(const Affine& r, const Affine& c)>& f);
  Stmt multiplication(BufferId tile, std::int64_t depth, bool on_tiles);
  /// The bounds of a loop over the positions of a tile.
  std::vector<Affine> positions(std::size_t axis, std::int64_t block, const Affine& start) const;
  void over_fixed(LoopKind kind, const std::function<void(const Affine& f)>& body);
  void over_moving(const Affine& tile, const std::function<void(const Affine& m)>& body);
  /// Positions two by two: f(row, positions) for each pair, and for the one that is left over at the end of an odd
  /// axis.
  void over_moving_pairs(const Affine& tile, const std::function<void(const Affine& row, std::int64_t count)>& body);
  void at_moving(const Affine& tile, const Affine& m, const std::function<void()>& body);
  void clear_missing(BufferId buffer, std::int64_t width, const Affine& tile, bool pairs);
  void clear_padding();
  void pack_turned(const Factor& factor, const Affine& tile);
  /// The factor's elements at the positions of pair number `step` of a tile, of which there are `count`, at the current
  /// inner one.
  ScalarId paired_positions(const Factor& factor, const Affine& tile, const Affine& step, std::int64_t count);

  // attention_task.cpp
  void emit_task();
  void emit_tile(const Affine& tile);
  void bind_numbers(const TileNeeds& needs);
  ScalarId is_below_zero(const Affine& a);
  VarId bind_flag(ScalarId flag);
  /// 1: some row's shift is not far above a finite floor, so that what is hidden counts.
  VarId bind_floors(const TileNeeds& needs, const Affine& tile);
  std::vector<Affine> conditions_of(const TileNeeds& needs, const Affine& tile);

  // attention_sweep.cpp
  void begin_sums();
  void sweep(const Affine& tile);
  void sweep_rescaling(const Affine& tile);
  using PartOf = std::function<ScalarId(ValueId)>;
  void sum_parts(const Affine& f, const Affine& tile, const std::function<PartOf(const Affine& m)>& part_at);
  void read_scores(const Affine& m, const Affine& f);
  /// Of the axes of a tile, those that an element depends on; both where that is not known.
  TileAxes axes_of(ValueId v, const Index& at);
  ScalarId part_of(ValueId v, std::map<ValueId, ScalarId>& done, const std::function<ScalarId()>& power);
  ScalarId finite_or_zero(ScalarId maximum);
  std::vector<std::pair<Op, ScalarId>> factors_of(ValueId summed, const Affine& f);
  void finish_sums();
  void finish_products();

  const Function& body_;
  const Target& target_;
  const AttentionPlan& plan_;
  const std::vector<AttentionLoop>& grid_;
  const AttentionTiles tiles_;

  LoweredKernel main_;
  BlockBuilder b_{main_.kernel};
  IndexSpace space_{b_};
  std::optional<ElementEmitter> emitter_;
  std::vector<BufferId> args_, results_;
  std::vector<Affine> at_;  // by axis, the inner one last
  Affine fixed_start_;
  std::map<VarId, Affine> numbers_;  // as they are known to a task: clamped to where they decide anything
  VarId every_tile_;                 // 1: no tile may be left out
  std::vector<Factor> fixed_, moving_;
  std::vector<std::size_t> fixed_of_score_, moving_of_score_;
  std::vector<BufferId> score_tiles_;
  std::vector<Part> parts_;  // tiles of them
  std::vector<Product> products_;
  std::map<OpId, BufferId> row_sums_;  // by sum, one per fixed position; of the maximum too
  BufferId logits_, rescale_;
  std::map<std::pair<std::int64_t, std::int64_t>, BufferId> register_tiles_;  // by rows and columns
};

}  // namespace burin::passes::lower
