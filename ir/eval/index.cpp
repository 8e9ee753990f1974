#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/eval/coordinates.h"
#include "ir/eval/rules.h"
#include "ir/eval/scalar.h"
#include "ir/eval/scalar_convert.h"
#include "ir/eval/scalar_float.h"
#include "ir/eval/scalar_integer.h"

namespace burin::ir::eval {
namespace {

// Element i of an integer literal. A u64 beyond the signed range is as far out of bounds as the largest signed index.
std::int64_t index_at(const Literal& indices, std::int64_t i) {
  const std::int64_t index = indices.int_at(i);
  return indices.dtype() == DType::u64 && index < 0 ? std::numeric_limits<std::int64_t>::max() : index;
}

[[noreturn]] void fail_index(const Operands& in, std::int64_t index, std::size_t axis, std::int64_t window) {
  in.fail(Msg::index_out_of_range, name(in.op), index, axis, to_string(in[0].type()), index_bounds(in[0].shape()[axis] - window + 1));
}

// The dimension numbers that gather and scatter share. `windows` is gather's result or scatter's updates: some of its
// axes walk inside a window, the others over the windows, one window for each start vector in `indices`.
struct Windows {
  const Literal& indices;
  const Ints& window_dims;            // axes of `windows` inside a window
  const Ints& dropped_dims;           // operand axes of size 1 in a window that `windows` leaves out
  const Ints& operand_batching_dims;  // operand axes at the place of their counterpart
  const Ints& indices_batching_dims;  // among the axes of `indices`
  const Ints& index_map;              // operand axis of each component of a start vector
  std::int64_t index_vector_dim;
  std::size_t windows_rank;

  struct Place {
    Coordinates start{};   // as read from the indices; 0 on axes without one
    Coordinates inside{};  // relative to the start
  };

  Place place(const Coordinates& at) const {
    Place result;
    std::size_t window_axis = 0, operand_axis = 0, batch_axis = 0;
    const auto vector_axis = static_cast<std::size_t>(index_vector_dim);
    Coordinates start_vector_at{};  // in `indices`; index_vector_dim is left open
    for (; window_axis < windows_rank; ++window_axis) {
      if (contains(window_dims, window_axis)) {
        while (contains(dropped_dims, operand_axis) || contains(operand_batching_dims, operand_axis)) ++operand_axis;
        result.inside[operand_axis++] = at[window_axis];
      } else {
        if (batch_axis == vector_axis) ++batch_axis;
        start_vector_at[batch_axis++] = at[window_axis];
      }
    }
    for (std::size_t i = 0; i < operand_batching_dims.size(); ++i)
      result.inside[static_cast<std::size_t>(operand_batching_dims[i])] =
          start_vector_at[static_cast<std::size_t>(indices_batching_dims[i])];
    const Coordinates strides = strides_of(indices.shape());
    for (std::size_t k = 0; k < index_map.size(); ++k) {
      if (vector_axis < indices.shape().rank()) start_vector_at[vector_axis] = static_cast<std::int64_t>(k);
      result.start[static_cast<std::size_t>(index_map[k])] = index_at(indices, offset(start_vector_at, strides));
    }
    return result;
  }
};

Coordinates sum(const Coordinates& a, const Coordinates& b) {
  Coordinates result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = a[i] + b[i];
  return result;
}

// The scalar start operands from `first` on, clamped so that `window` fits into x.
Coordinates clamped_starts(const Operands& in, std::size_t first, const Shape& window) {
  Coordinates starts{};
  for (std::size_t axis = 0; axis < window.rank(); ++axis)
    starts[axis] = std::clamp<std::int64_t>(index_at(in[first + axis], 0), 0, in[0].shape()[axis] - window[axis]);
  return starts;
}

void copy_element(std::byte* to, std::int64_t to_index, const std::byte* from, std::int64_t from_index, DType dtype) {
  const std::size_t width = size_of(dtype);
  std::memcpy(to + static_cast<std::size_t>(to_index) * width, from + static_cast<std::size_t>(from_index) * width,
              width);
}

// Calls f(operand element, update element) in row-major order of the updates, leaving out windows that do not fit.
template <class F>
void for_each_update(const Operands& in, const attrs::scatter& a, F&& f) {
  const Shape &operand = in[0].shape(), &updates = in[2].shape();
  const Windows windows{in[1],
                        a.update_window_dims,
                        a.inserted_window_dims,
                        a.operand_batching_dims,
                        a.indices_batching_dims,
                        a.scatter_dims_to_operand_dims,
                        a.index_vector_dim,
                        updates.rank()};
  Coordinates window{};
  for (std::size_t axis = 0, next = 0; axis < operand.rank(); ++axis) {
    const bool one = contains(a.inserted_window_dims, axis) || contains(a.operand_batching_dims, axis);
    window[axis] = one ? 1 : updates[static_cast<std::size_t>(a.update_window_dims[next++])];
  }
  const Coordinates strides = strides_of(operand);
  std::int64_t update = 0;
  for_each_coordinate(updates, [&](const Coordinates& at) {
    const Windows::Place place = windows.place(at);
    bool fits = operand.size() > 0;  // an axis without an index may be the empty one
    for (std::int64_t mapped : a.scatter_dims_to_operand_dims) {
      const auto axis = static_cast<std::size_t>(mapped);
      if (0 <= place.start[axis] && place.start[axis] <= operand[axis] - window[axis]) continue;
      if (a.mode == IndexMode::error) fail_index(in, place.start[axis], axis, window[axis]);
      fits = false;
    }
    if (fits) f(offset(sum(place.start, place.inside), strides), update);
    ++update;
  });
}

// Sums and products of half types are kept in f32 and rounded once, when all updates are in.
template <Op op>
Literal combined(const Operands& in, const attrs::scatter& a) {
  Literal result = in.expanded(0);
  const Literal updates = in.expanded(2);
  with_element(result.dtype(), [&]<class T>(T) {
    using N = Native<T>;
    struct Element {
      N value;
    };
    std::vector<Element> elements;
    for (const T& x : result.data<T>()) elements.push_back({static_cast<N>(x)});
    const std::span<const T> update = updates.data<T>();
    for_each_update(in, a, [&](std::int64_t to, std::int64_t from) {
      N& element = elements[static_cast<std::size_t>(to)].value;
      const N value = static_cast<N>(update[static_cast<std::size_t>(from)]);
      if constexpr (FloatElement<T>)
        element = floats::exact(Tag<op>{}, element, value);
      else
        element = integers::rule(Tag<op>{}, element, value);
    });
    const std::span<T> out = result.mutable_data<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(elements[i].value);
  });
  return result;
}

}  // namespace

Literals evaluate(Tag<Op::constant>, const Operands&, const attrs::constant& a) { return {a.value}; }

Literals evaluate(Tag<Op::iota>, const Operands& in, const attrs::iota& a) {
  Literal result(in.result_types[0]);
  with_element(a.dtype, [&]<class T>(T) {
    const std::span<T> out = result.mutable_data<T>();
    std::size_t next = 0;
    for_each_coordinate(result.shape(), [&](const Coordinates& at) {
      out[next++] = convert_element<T>(at[static_cast<std::size_t>(a.axis)]);
    });
  });
  return {result};
}

Literals evaluate(Tag<Op::gather>, const Operands& in, const attrs::gather& a) {
  const Literal x = in.expanded(0);
  Literal result(in.result_types[0]);
  const Windows windows{in[1],
                        a.offset_dims,
                        a.collapsed_slice_dims,
                        a.operand_batching_dims,
                        a.indices_batching_dims,
                        a.start_index_map,
                        a.index_vector_dim,
                        result.shape().rank()};
  const Coordinates strides = strides_of(x.shape());
  std::byte* const out = result.mutable_raw().data();
  std::int64_t next = 0;
  for_each_coordinate(result.shape(), [&](const Coordinates& at) {
    Windows::Place place = windows.place(at);
    for (std::int64_t mapped : a.start_index_map) {
      const auto axis = static_cast<std::size_t>(mapped);
      const std::int64_t last = x.shape()[axis] - a.slice_sizes[axis];
      const std::int64_t start = std::clamp<std::int64_t>(place.start[axis], 0, last);
      if (a.mode == IndexMode::error && start != place.start[axis])
        fail_index(in, place.start[axis], axis, a.slice_sizes[axis]);
      place.start[axis] = start;
    }
    copy_element(out, next++, x.raw().data(), offset(sum(place.start, place.inside), strides), x.dtype());
  });
  return {result};
}

Literals evaluate(Tag<Op::scatter>, const Operands& in, const attrs::scatter& a) {
  switch (a.combine) {
    case Combine::add:
      return {combined<Op::add>(in, a)};
    case Combine::mul:
      return {combined<Op::mul>(in, a)};
    case Combine::min:
      return {combined<Op::min>(in, a)};
    case Combine::max:
      return {combined<Op::max>(in, a)};
    case Combine::set:
      break;
  }
  Literal result = in.expanded(0);
  const Literal updates = in.expanded(2);
  std::byte* const out = result.mutable_raw().data();
  for_each_update(in, a, [&](std::int64_t to, std::int64_t from) {
    copy_element(out, to, updates.raw().data(), from, updates.dtype());
  });
  return {result};
}

Literals evaluate(Tag<Op::dynamic_slice>, const Operands& in, const attrs::dynamic_slice&) {
  const Literal x = in.expanded(0);
  Literal result(in.result_types[0]);
  const Coordinates starts = clamped_starts(in, 1, result.shape()), strides = strides_of(x.shape());
  std::byte* const out = result.mutable_raw().data();
  std::int64_t next = 0;
  for_each_coordinate(result.shape(), [&](const Coordinates& at) {
    copy_element(out, next++, x.raw().data(), offset(sum(starts, at), strides), x.dtype());
  });
  return {result};
}

Literals evaluate(Tag<Op::dynamic_update_slice>, const Operands& in, const attrs::dynamic_update_slice&) {
  Literal result = in.expanded(0);
  const Literal update = in.expanded(1);
  const Coordinates starts = clamped_starts(in, 2, update.shape()), strides = strides_of(result.shape());
  std::byte* const out = result.mutable_raw().data();
  std::int64_t next = 0;
  for_each_coordinate(update.shape(), [&](const Coordinates& at) {
    copy_element(out, offset(sum(starts, at), strides), update.raw().data(), next++, update.dtype());
  });
  return {result};
}

}  // namespace burin::ir::eval
