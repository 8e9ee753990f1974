// How dtypes meet: JAX's promotion lattice.
#pragma once
#include <vector>

#include "frontend/trace_stack.h"

namespace burin::detail {

struct Promoted {
  DType dtype;
  bool weak;
  friend bool operator==(const Promoted&, const Promoted&) = default;
};
/// The dtype of two operands together; weak ones (C++ numbers and what is computed from them alone) adapt.
Promoted promote(Promoted a, Promoted b);

/// x in that dtype: a number takes it exactly, anything else is converted by an op of the current trace.
Tensor as_dtype(const Tensor& x, DType dtype, bool weak = false);
/// x broadcast to `shape` as in NumPy; it must fit.
Tensor as_shape(const Tensor& x, const Shape& shape);

/// Brings operands to one dtype and one shape. `op` names the op in the error for shapes that do not broadcast. With
/// `only_floats`, integers become f32 first.
struct Matched {
  std::vector<Tensor> operands;
  bool weak;
};
Matched match(const char* op, std::vector<Tensor> operands, bool only_floats = false);
/// The common shape of operands. Throws Error when they do not broadcast.
Shape broadcast_shapes(const char* op, const std::vector<Tensor>& operands);

/// The shape with these extents. Throws Error, which names `op`, for a negative extent, more axes than there can be and
/// more bytes than can be counted.
Shape checked_shape(const char* op, const IntList& extents, DType dtype, const std::source_location& where = {});

/// Integers and bools as f32 (weakly when weak); floats as they are.
Tensor as_float(const Tensor& x);
/// An axis counted from the end when negative. Throws Error when out of range.
std::size_t normal_axis(const char* op, std::int64_t axis, std::size_t rank, const Tensor& x);
/// Axes sorted, each once.
std::vector<std::int64_t> normal_axes(const char* op, const Axes& axes, const Tensor& x);

}  // namespace burin::detail
