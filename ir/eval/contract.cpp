#include <type_traits>
#include <vector>

#include "ir/eval/coordinates.h"
#include "ir/eval/rules.h"
#include "ir/eval/scalar.h"

namespace burin::ir::eval {
namespace {

std::vector<std::size_t> free_axes(const Literal& x, const Ints& batch, const Ints& contract) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < x.shape().rank(); ++axis)
    if (!contains(batch, axis) && !contains(contract, axis)) axes.push_back(axis);
  return axes;
}

std::int64_t extent(const Literal& x, const auto& axes) {
  std::int64_t product = 1;
  for (auto axis : axes) product *= x.shape()[static_cast<std::size_t>(axis)];
  return product;
}

// The elements of x in the order [batch..., free..., contract...], as A.
template <class A>
std::vector<A> arranged(const Literal& x, const Ints& batch, const Ints& contract) {
  std::vector<std::size_t> order;
  for (std::int64_t axis : batch) order.push_back(static_cast<std::size_t>(axis));
  for (std::size_t axis : free_axes(x, batch, contract)) order.push_back(axis);
  for (std::int64_t axis : contract) order.push_back(static_cast<std::size_t>(axis));
  Shape shape;
  Coordinates strides{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    shape.push_back(x.shape()[order[i]]);
    strides[i] = strides_of(x.shape())[order[i]];
  }
  std::vector<A> result;
  result.reserve(static_cast<std::size_t>(shape.size()));
  with_element(x.dtype(), [&]<class T>(T) {
    const std::span<const T> elements = x.data<T>();
    for_each_coordinate(shape, [&](const Coordinates& at) {
      result.push_back(static_cast<A>(static_cast<Native<T>>(elements[static_cast<std::size_t>(offset(at, strides))])));
    });
  });
  return result;
}

template <class A>
Literal dot(const Operands& in, const attrs::dot_general& a) {
  const Literal x = in.expanded(0), y = in.expanded(1);
  const std::int64_t batches = extent(x, a.lhs_batch), rows = extent(x, free_axes(x, a.lhs_batch, a.lhs_contract)),
                     columns = extent(y, free_axes(y, a.rhs_batch, a.rhs_contract)), depth = extent(x, a.lhs_contract);
  const std::vector<A> lhs = arranged<A>(x, a.lhs_batch, a.lhs_contract),
                       rhs = arranged<A>(y, a.rhs_batch, a.rhs_contract);
  Literal result(in.result_types[0]);
  with_element(result.dtype(), [&]<class R>(R) {
    R* out = result.mutable_data<R>().data();
    for (std::int64_t b = 0; b < batches; ++b)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          const A *p = lhs.data() + (b * rows + i) * depth, *q = rhs.data() + (b * columns + j) * depth;
          A sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) sum += p[k] * q[k];
          *out++ = static_cast<R>(sum);
        }
  });
  return result;
}

}  // namespace

// Products of f32 and half types are exact in f64, which also sums them; f64 is summed in long double. Integers are
// summed modulo 2^64, of which the result keeps its bits; bools are counted and the result is whether there was any.
Literals evaluate(Tag<Op::dot_general>, const Operands& in, const attrs::dot_general& a) {
  const DType operand = in[0].dtype(), result = in.result_types[0].dtype;
  if (!is_float(operand)) return {dot<std::uint64_t>(in, a)};
  if (operand == DType::f64 || result == DType::f64) return {dot<long double>(in, a)};
  return {dot<double>(in, a)};
}

}  // namespace burin::ir::eval
