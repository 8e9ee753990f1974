// Walking over the elements of a shape.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "ir/op.h"
#include "ir/type.h"

namespace burin::ir::eval {

/// One index per axis; axes beyond the rank are 0.
using Coordinates = std::array<std::int64_t, Shape::max_rank>;

/// Calls f with the coordinates of every element, in row-major order.
template <class F>
void for_each_coordinate(const Shape& shape, F&& f) {
  Coordinates at{};
  for (std::int64_t left = shape.size(); left > 0; --left) {
    f(static_cast<const Coordinates&>(at));
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

/// How many elements apart two neighbours along each axis are in row-major order.
inline Coordinates strides_of(const Shape& shape) {
  Coordinates strides{};
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0; step *= shape[axis]) strides[axis] = step;
  return strides;
}

/// The sum over the axes of coordinate times stride.
inline std::int64_t offset(const Coordinates& at, const Coordinates& strides) {
  std::int64_t sum = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) sum += at[axis] * strides[axis];
  return sum;
}

inline bool contains(const Ints& axes, std::size_t axis) {
  for (std::int64_t a : axes)
    if (a == static_cast<std::int64_t>(axis)) return true;
  return false;
}

}  // namespace burin::ir::eval
