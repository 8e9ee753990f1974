// What a mask says of whole tiles: conditions on positions, and on numbers that are known at run time alone.
#pragma once
#include <optional>
#include <vector>

#include "passes/lower/attention_plan.h"

namespace burin::passes::lower {

/// What hides positions is not always -inf: below a shift that is high enough the exponential of a finite number is 0
/// as well, and then only.
struct FiniteFloor {
  double value = 0;       // what is hidden is this at most
  ValueId shift;          // subtracted before the exponential; invalid: the maximum so far
  Index at;               // of the shift, in the plan's variables
  bool per_fixed = true;  // the shift differs along the fixed axis, else along the moving one
};

/// Expressions of the plan's variables and of those of run-time numbers, of which each has one at most, once.
struct TileConditions {
  std::vector<Affine> needed;    // each must be >= 0 somewhere in a tile if the tile shall add anything
  std::vector<Affine> provided;  // of a number alone; where one is negative every tile counts, whatever is needed
  std::vector<FiniteFloor> floors = {};  // a tile counts as long as one of its rows has no shift far above

  void add(const TileConditions& more);
  /// What either asks for.
  static TileConditions common(const TileConditions& a, const TileConditions& b);
};

/// An integer (i32 or i64) that is the same at all positions of the fixed and the moving axis: a number of keys, say.
struct RunTimeNumber {
  ValueId value;
  Index at;  // of the element, in the plan's variables
  VarId var;
  bool may_wrap = false;  // what it is added to may leave its dtype, unless it is below 2^30 in size
};

struct TileNeeds : TileConditions {
  std::vector<RunTimeNumber> numbers;  // those that the conditions mention
};

/// Read off masks that compare positions.
TileNeeds needed_in_tile(const Function& body, const AttentionPlan& plan);

/// Reads comparisons of positions with one another and with run-time numbers.
class PositionReader {
 public:
  static constexpr std::int64_t limit = std::int64_t{1} << 30;  // of positions, so that no sum of two wraps

  PositionReader(const Function& body, const AttentionPlan& plan);
  /// What must hold somewhere in a tile so that element `at` of v, a bool, is `wanted` somewhere.
  TileConditions conditions(ValueId v, const Index& at, bool wanted);
  const std::vector<RunTimeNumber>& numbers() const { return numbers_; }
  ElementEmitter& emitter();

 private:
  std::optional<Affine> position(ValueId v, const Index& at);
  std::optional<Affine> sum_of(const Affine& a, const Affine& b, bool wraps);
  Affine without_numbers(const Affine& a) const;
  bool is_axis(VarId var) const { return var.index < plan_.num_axes(); }
  bool stays(const Affine& a) const;
  bool stays(ValueId v, const Index& at);
  VarId number(ValueId v, const Index& at);

  const Function& body_;
  const AttentionPlan& plan_;
  Kernel kernel_;  // nothing of it is kept
  BlockBuilder b_{kernel_};
  IndexSpace space_{b_};
  std::optional<ElementEmitter> emitter_;
  std::vector<RunTimeNumber> numbers_;
  struct Known {
    ValueId value;
    Affine at;
    bool stays;
  };
  std::vector<Known> known_;
};

}  // namespace burin::passes::lower
