// Index lists taken apart: slices first, then one gather. Inside frontend/ops only.
#pragma once
#include <burin/index.h>
#include <burin/ops.h>

#include "frontend/promote.h"

namespace burin::detail {

/// x[...] as steps: a slice of every axis, then what each axis of the sliced tensor becomes.
struct Plan {
  ir::Ints start, limit, stride;          // by axis of x
  ir::Ints reversed;                      // axes turned round after the slice
  std::vector<std::size_t> integer_axes;  // axes indexed by an integer, sliced to extent 1
  ir::Ints integers;                      // their indices
  Shape sliced;                           // after the slices
  struct Axis {
    enum class Kind : std::uint8_t { dropped, kept, gathered, added } kind;
    std::size_t axis = 0, tensor = 0;
  };
  std::vector<Axis> axes;
  std::vector<Tensor> tensors;  // index tensors, in order

  bool has_tensor() const { return !tensors.empty(); }
  bool has_new_axis() const;
  bool contiguous() const;
  /// After the slices, without the axes that integers removed.
  Shape without_dropped() const;
  /// The shape of x[...] from its shape before new axes; the gather's `gather_rank` axes stand at `gather_at`.
  Shape with_new_axes(const Shape& plain, std::size_t gather_at, std::size_t gather_rank) const;
};

/// Throws Error for indices that x does not have.
Plan make_plan(const Tensor& x, const std::vector<Index>& indices);
/// With `integers_are_data` the integers are arguments of the un-jitted op: x[0] and x[1] are one compiled function.
Tensor apply_slices(const Tensor& x, const Plan& plan, bool integers_are_data);

/// The index tensors, broadcast to one shape and side by side in a last axis.
struct Gather {
  ir::Ints axes;        // of the sliced tensor
  Tensor indices;       // [..., axes.size()], or as_vectors
  Shape index_shape;    // without the last axis
  std::size_t at = 0;   // where the index axes stand among the result's, new axes not counted
  Tensor valid;         // mode fill: which indices are in range
  /// The axes of the result (or of a scatter's updates) that come from x, of which `kept` are left.
  ir::Ints window_dims(std::size_t kept) const;
};
Gather make_gather(const Tensor& x, const Plan& plan, Mode mode);

/// Ids wide enough for every index, counted from the end when negative and wanted.
Tensor normal_ids(const char* op, const Tensor& ids, std::int64_t extent, bool from_end);
/// Each id as an index of one component: with a last axis of extent 1, which is left out, and understood, where there is no
/// room for one more.
Tensor as_vectors(const Tensor& ids);
Tensor in_range(const Tensor& ids, std::int64_t extent);
/// What mode fill puts where an index is out of range, in the type of `like`.
Tensor fill_value(const Tensor& like);
ir::IndexMode ir_mode(Mode mode);
/// x under another shape of the same size.
Tensor to_shape(const Tensor& x, const Shape& shape);
ir::Ints extents(const Shape& shape);
/// A constant of the type of `like`.
Tensor number_like(const Tensor& like, double value);
/// The type, and the name when it is an argument: "f32[16,64], position_embedding".
std::string described(const Tensor& x);
std::source_location place_of(const std::vector<Index>& indices);

}  // namespace burin::detail
