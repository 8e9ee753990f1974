// Tensors from and to xtensor, for programs that use it. Not part of burin.h.
#pragma once
#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xarray.hpp>
#endif

#include <burin/tensor.h>

namespace burin {

/// A copy as an xarray of the same shape; elements convert to T. A traced tensor and one without a value are errors.
template <class T>
xt::xarray<T> to_xarray(const Tensor& tensor, std::source_location where = std::source_location::current()) {
  std::vector<std::size_t> shape;
  for (std::int64_t extent : tensor.shape(where)) shape.push_back(static_cast<std::size_t>(extent));
  xt::xarray<T> result(shape);
  const std::vector<T> elements = tensor.to_vector<T>(where);
  std::copy(elements.begin(), elements.end(), result.begin());
  return result;
}

/// A copy of any xtensor expression: its shape (at most 8 axes, else an error), and the dtype of its element type.
template <class E>
Tensor from_xtensor(const xt::xexpression<E>& expression,
                    std::source_location where = std::source_location::current()) {
  const E& e = expression.derived_cast();
  using T = std::decay_t<typename E::value_type>;
  std::vector<std::int64_t> shape;
  for (auto extent : e.shape()) shape.push_back(static_cast<std::int64_t>(extent));
  const xt::xarray<T> evaluated = e;
  return tensor(std::vector<T>(evaluated.begin(), evaluated.end()), shape, where);
}

}  // namespace burin
