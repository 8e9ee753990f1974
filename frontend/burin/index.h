// Indexing: what may stand in the brackets of x[...] and x.at(...).
#pragma once
#include <burin/standard.h>

#include <optional>
#include <vector>

#include <burin/tensor.h>

namespace burin {

struct All {};
struct Ellipsis {};
struct NewAxis {};
/// A whole axis.
inline constexpr All all{};
/// As many whole axes as are missing.
inline constexpr Ellipsis ellipsis{};
/// A new axis of extent 1.
inline constexpr NewAxis newaxis{};

/// Elements start, start + step, ... before stop. Negative bounds count from the end. A stop past the end of the axis
/// is an error, unlike Python's, so that a sequence longer than its table does not pass unnoticed.
struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;
};
inline Slice slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
  return {start, stop, step};
}
/// The first n elements of an axis.
inline Slice first(std::int64_t n) { return {0, n, 1}; }

/// How an index tensor treats ids out of range. `error`: the call throws, naming index, extent and source line;
/// `strict`: the same, and negative ids do not count from the end but are out of range; `clip`: clamped when reading,
/// dropped when writing; `fill`: reads NaN for floats, the lowest value for signed and the highest for unsigned
/// integers.
enum class Mode : std::uint8_t { error, strict, clip, fill };

/// One index. An integer removes its axis (negative: from the end, out of range: an error); an integer tensor gathers.
class Index {
 public:
  enum class Kind : std::uint8_t { integer, range, tensor, new_axis, rest };
  using Where = std::source_location;

  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Index(T i, Where at = Where::current()) : kind(Kind::integer), where(at), integer(static_cast<std::int64_t>(i)) {}
  Index(const Tensor& ids, Where at = Where::current()) : kind(Kind::tensor), where(at), tensor(ids) {}
  Index(const Slice& s, Where at = Where::current()) : kind(Kind::range), where(at), range(s) {}
  Index(All, Where at = Where::current()) : kind(Kind::range), where(at) {}
  Index(Ellipsis, Where at = Where::current()) : kind(Kind::rest), where(at) {}
  Index(NewAxis, Where at = Where::current()) : kind(Kind::new_axis), where(at) {}

  Kind kind;
  Where where;
  std::int64_t integer = 0;
  Slice range;
  Tensor tensor;
};

/// The part of a tensor that x.at(...) names.
class At {
 public:
  At(Tensor x, std::vector<Index> indices) : x_(std::move(x)), indices_(std::move(indices)) {}
  /// x with the part replaced by `value` (broadcast to its shape). Where index tensors repeat, the last one wins.
  Tensor set(const Operand& value, Mode mode = Mode::error) const;
  /// x with `value` added to the part; repeated indices add up.
  Tensor add(const Operand& value, Mode mode = Mode::error) const;
  /// The part times `value`, or the larger or smaller of both; repeated indices combine. Differentiable where the part is
  /// one of integers and slices of step 1; with index tensors or steps, differentiating it is an error.
  Tensor multiply(const Operand& value, Mode mode = Mode::error) const;
  Tensor max(const Operand& value, Mode mode = Mode::error) const;
  Tensor min(const Operand& value, Mode mode = Mode::error) const;
  /// The part itself, with a mode.
  Tensor get(Mode mode = Mode::error) const;

 private:
  Tensor x_;
  std::vector<Index> indices_;
};

}  // namespace burin
