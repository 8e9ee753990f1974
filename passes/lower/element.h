// From "element i of value v" to statements: the one engine behind every lowering. Movement ops become index arithmetic,
// elementwise ops `let`s, arguments loads. Loops are the caller's business.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/block_builder.h"

namespace burin::passes::lower {

using namespace ir;

/// A position inside a value: one affine expression per axis, or one flat row-major offset; each is made from the
/// other when it is asked for.
struct Index {
  Shape shape;
  std::optional<Affine> flat;
  std::optional<std::vector<Affine>> dims;

  static Index of_flat(const Shape& shape, Affine offset) { return {shape, std::move(offset), std::nullopt}; }
  static Index of_dims(const Shape& shape, std::vector<Affine> dims) { return {shape, std::nullopt, std::move(dims)}; }
};

/// Half types are accumulated in f32.
inline DType accumulator_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }
/// How a reduce op accumulates; sum and prod of bool are or and and.
Reduce reduction_of(Op op, DType dtype);
/// The op that does to two elements what the reduction does to all.
Op combining_op(Reduce reduce);
/// Terms that one f32 accumulator takes. The error of a sum grows by a rounding with each.
inline constexpr std::int64_t max_chain = 512;
/// Terms of a block, where a longer sum is one of blocks.
inline constexpr std::int64_t block_chain = 256;
/// What an accumulator holds that takes `chain` terms of `dtype`: f32 sums of long chains run in f64.
inline DType accumulator_dtype(Reduce reduce, DType dtype, std::int64_t chain) {
  const DType wide = accumulator_dtype(dtype);
  return reduce == Reduce::sum && wide == DType::f32 && chain > max_chain ? DType::f64 : wide;
}

/// Thrown while emitting: loop number `loop` must become factor * outer + inner for an index to stay affine. The lowering
/// splits it and starts again.
struct NeedSplit {
  std::size_t loop;
  std::int64_t factor;
};

/// What is known of variables beside the extents of their loops. One may stand for an expression of others (a blocked loop).
class IndexSpace {
 public:
  static constexpr std::size_t fixed = ~std::size_t{0};
  explicit IndexSpace(BlockBuilder& b) : b_(b) {}
  /// `loop`: the number that NeedSplit names a variable by; `fixed` cannot be split.
  void set_loop(VarId var, std::size_t loop);
  /// A new variable that stands for an expression.
  VarId stand_for(const Affine& expression, std::int64_t extent, std::size_t loop = fixed);
  std::int64_t extent(VarId var) const;
  /// Least and greatest value.
  std::pair<std::int64_t, std::int64_t> range(const Affine& a) const;
  /// e = divisor * quotient + remainder with 0 <= remainder < divisor, when that is affine. Throws NeedSplit when splitting a
  /// variable makes it so; nullopt when nothing does.
  std::optional<std::pair<Affine, Affine>> divide(const Affine& e, std::int64_t divisor) const;
  /// In terms of the variables that loops really have.
  Affine resolve(Affine a) const;

 private:
  struct Entry {
    std::size_t loop = fixed;
    std::optional<Affine> stands_for;
  };
  const Entry& entry(VarId var) const;

  BlockBuilder& b_;
  std::vector<Entry> entries_;  // by variable
};

class ElementEmitter {
 public:
  /// `buffers`: one per argument of `body`, a flat view of its elements.
  ElementEmitter(const Function& body, BlockBuilder& b, IndexSpace& space, std::vector<BufferId> buffers);

  /// Statements that compute element `at` of v, in the block the builder stands in.
  ScalarId emit(ValueId v, const Index& at);
  /// The same under conditions (each >= 0), with loads guarded by them; 0 where they do not hold.
  ScalarId emit_under(ValueId v, const Index& at, std::span<const Affine> conditions);
  /// Stores a value; `at` is the position in the buffer's flat view.
  void store(BufferId buffer, const Index& at, ScalarId value);
  /// Asked first for every value: results of reductions, tiles, saved values. nullopt: emit it as usual.
  using Hook = std::function<std::optional<ScalarId>(ValueId, const Index&)>;
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  /// Divisors in f32 whose inverse is multiplied with, for lowerings that may round twice.
  using IsInverted = std::function<bool(ValueId divisor, const Index&)>;
  void set_inverted(IsInverted is_inverted) { is_inverted_ = std::move(is_inverted); }

  /// Values emitted since enter() are forgotten at leave(): they live in a block that ends.
  void enter() { marks_.push_back(trail_.size()); }
  void leave();

  std::vector<Affine> dims(const Index& at);
  /// For reshape, transpose, broadcast, slice, reverse: where in its operand the op's element `at` comes from.
  Index move_index(OpId op, const Index& at);
  Affine flat(const Index& at) const;
  const Function& body() const { return body_; }
  BlockBuilder& builder() { return b_; }
  IndexSpace& space() { return space_; }
  /// An integer value as an index variable in 0..extent-1; errors name `op`'s location and its operand.
  VarId bind(ScalarId value, std::int64_t extent, IndexMode mode, OpId op, std::int64_t axis);

 private:
  ScalarId visit_op(OpId op, const Index& at);
  ScalarId emit_op(OpId op, const Index& at);
  ScalarId emit_elementwise(OpId op, const Index& at);
  ScalarId emit_reduce(OpId op, const Index& at);
  ScalarId emit_dot(OpId op, const Index& at);
  ScalarId emit_pad(OpId op, const Index& at);
  ScalarId emit_concatenate(OpId op, const Index& at);
  ScalarId emit_gather(OpId op, const Index& at);
  ScalarId emit_dynamic_slice(OpId op, const Index& at);
  ScalarId emit_dynamic_update_slice(OpId op, const Index& at);
  std::vector<Affine> dynamic_starts(OpId op, std::size_t first, const Shape& from, const Shape& window);
  /// Emits under extra conditions (each >= 0); loads inside are guarded by them.
  ScalarId emit_guarded(ValueId v, const Index& at, std::span<const Affine> conditions);
  ScalarId holds(std::span<const Affine> conditions);
  ScalarId load(BufferId buffer, const Affine& offset, DType dtype);
  ScalarId zero(DType dtype);

  /// Accumulates `term`, of the accumulator's dtype for `dtype`, over serial loops of the given extents.
  ScalarId accumulate_serially(const std::vector<std::int64_t>& extents, Reduce reduce, DType dtype,
                               const std::function<ScalarId(const std::vector<Affine>&)>& term);

  struct Memo {
    Affine at;  // row-major
    std::size_t num_guards;
    ScalarId scalar;
  };
  const Function& body_;
  OpVisit visit_{&body_, OpId{}};  // the op whose element is being computed
  BlockBuilder& b_;
  IndexSpace& space_;
  std::vector<BufferId> buffers_;
  std::vector<std::int64_t> arg_of_value_;
  IsInverted is_inverted_;
  Hook hook_;
  std::vector<Affine> guards_;
  std::vector<std::vector<Memo>> memo_;  // by value
  std::vector<ValueId> trail_;           // values with memos, in the order they were made
  std::vector<std::size_t> marks_;
};

}  // namespace burin::passes::lower
