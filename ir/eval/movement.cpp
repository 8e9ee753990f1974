#include "ir/eval/rules.h"

#if __has_include(<xtensor/containers/xadapt.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/views/xbroadcast.hpp>
#include <xtensor/views/xstrided_view.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xbroadcast.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xstrided_view.hpp>
#endif

#include <cstring>

#include "base/check.h"
#include "ir/eval/coordinates.h"

namespace burin::ir::eval {
namespace {

// Movement copies bits, so that an unsigned integer of the same width stands for any dtype.
template <class F>
void with_bits(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
  }
  BURIN_CHECK(false);
}

using Extents = std::vector<std::size_t>;

template <class T>
auto array(const Literal& x, const Extents& shape) {
  const std::span<const T> elements = x.data<T>();
  return xt::adapt(elements.data(), elements.size(), xt::no_ownership(), shape);
}
template <class T>
auto array(Literal& x) {
  const std::span<T> elements = x.mutable_data<T>();
  return xt::adapt(elements.data(), elements.size(), xt::no_ownership(), Extents(x.shape().begin(), x.shape().end()));
}

// The result of an op that moves the elements of its one operand: move(T{}, result) stores them. Where only one element
// is stored, as in a splat, all of the result's are equal to it.
template <class Move>
Literals moved(const Operands& in, Move&& move) {
  const Type& type = in.result_types[0];
  if (type.size() == 0) return {Literal(type)};
  const Literal& x = in[0];
  if (x.stores_one_element()) return {Literal::splat(type.shape, Literal(Type{type.dtype, {}}, x.raw()))};
  Literal result(type);
  with_bits(type.dtype, [&]<class T>(T) {
    auto out = array<T>(result);
    move(T{}, out);
  });
  return {result};
}

Extents extents(const Shape& shape) { return Extents(shape.begin(), shape.end()); }

}  // namespace

Literals evaluate(Tag<Op::reshape>, const Operands& in, const attrs::reshape&) {
  return {in[0].reshaped(in.result_types[0].shape)};
}

Literals evaluate(Tag<Op::transpose>, const Operands& in, const attrs::transpose& a) {
  return moved(in, [&]<class T>(T, auto& out) {
    const auto x = array<T>(in[0], extents(in[0].shape()));
    xt::noalias(out) = xt::transpose(x, a.permutation);
  });
}

Literals evaluate(Tag<Op::broadcast>, const Operands& in, const attrs::broadcast& a) {
  Extents aligned(in.result_types[0].rank(), 1);  // the operand's shape with an axis of 1 for each new one
  for (std::size_t i = 0; i < a.dims.size(); ++i)
    aligned[static_cast<std::size_t>(a.dims[i])] = static_cast<std::size_t>(in[0].shape()[i]);
  return moved(in, [&]<class T>(T, auto& out) {
    const auto x = array<T>(in[0], aligned);
    xt::noalias(out) = xt::broadcast(x, out.shape());
  });
}

Literals evaluate(Tag<Op::slice>, const Operands& in, const attrs::slice& a) {
  xt::xstrided_slice_vector ranges;
  for (std::size_t i = 0; i < a.start.size(); ++i) ranges.push_back(xt::range(a.start[i], a.limit[i], a.stride[i]));
  return moved(in, [&]<class T>(T, auto& out) {
    const auto x = array<T>(in[0], extents(in[0].shape()));
    xt::noalias(out) = xt::strided_view(x, ranges);
  });
}

Literals evaluate(Tag<Op::reverse>, const Operands& in, const attrs::reverse& a) {
  using xt::placeholders::_;
  xt::xstrided_slice_vector ranges(in[0].shape().rank(), xt::all());
  for (std::int64_t axis : a.axes) ranges[static_cast<std::size_t>(axis)] = xt::range(_, _, -1);
  return moved(in, [&]<class T>(T, auto& out) {
    const auto x = array<T>(in[0], extents(in[0].shape()));
    xt::noalias(out) = xt::strided_view(x, ranges);
  });
}

Literals evaluate(Tag<Op::concatenate>, const Operands& in, const attrs::concatenate& a) {
  const auto axis = static_cast<std::size_t>(a.axis);
  Literal result(in.result_types[0]);
  if (result.type().size() == 0) return {result};
  with_bits(result.dtype(), [&]<class T>(T) {
    auto out = array<T>(result);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t end = start + in[i].shape()[axis];
      if (end == start) continue;
      xt::xstrided_slice_vector place(result.shape().rank(), xt::all());
      place[axis] = xt::range(start, end);
      const Literal operand = in.expanded(i);
      const auto x = array<T>(operand, extents(operand.shape()));
      auto part = xt::strided_view(out, place);
      xt::noalias(part) = x;
      start = end;
    }
  });
  return {result};
}

Literals evaluate(Tag<Op::pad>, const Operands& in, const attrs::pad& a) {
  const Type& type = in.result_types[0];
  Literal result = Literal::splat(type.shape, in.expanded(1));
  if (type.size() == 0) return {result};
  const Literal x = in.expanded(0);
  const std::size_t width = size_of(type.dtype);
  const Coordinates strides = strides_of(type.shape);
  std::byte* const out = result.mutable_raw().data();
  const std::byte* from = x.raw().data();
  for_each_coordinate(x.shape(), [&](const Coordinates& at) {
    std::int64_t to = 0;
    bool inside = true;  // a negative low or high crops
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      const std::int64_t place = a.low[axis] + at[axis] * (a.interior[axis] + 1);
      inside &= 0 <= place && place < type.shape[axis];
      to += place * strides[axis];
    }
    if (inside) std::memcpy(out + static_cast<std::size_t>(to) * width, from, width);
    from += width;
  });
  return {result};
}

}  // namespace burin::ir::eval
