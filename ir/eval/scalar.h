// The elementwise and compare ops on single elements in memory: what evaluate_scalar and the elementwise rule share.
// Three tables of rules stand behind it: scalar_float.h, scalar_integer.h (with bool) and scalar_convert.h.
#pragma once
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/half.h"
#include "ir/op.h"

namespace burin::ir::eval {

/// Reads one element at each operand address and writes one element of the result.
using ElementFunction = void (*)(const std::byte* const* operands, std::byte* result);

/// The function of an elementwise or compare op for operands and a result of these dtypes. Aborts when the op is not
/// defined for them: the type rules have refused that before.
ElementFunction element_function(Op op, std::span<const DType> operands, DType result);
/// The same for `convert` alone.
ElementFunction convert_function(DType from, DType to);

template <class T>
T read(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}
template <class T>
void write(std::byte* address, const T& value) {
  std::memcpy(address, &value, sizeof(T));
}

template <class T>
concept HalfElement = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
template <class T>
concept FloatElement = std::is_floating_point_v<T> || HalfElement<T>;
template <class T>
concept IntegerElement = std::is_integral_v<T> && !std::is_same_v<T, bool>;

namespace detail {
template <class T>
struct Precision {
  using Native = T;
  using Wide = T;
};
template <>
struct Precision<double> {
  using Native = double;
  using Wide = long double;
};
template <>
struct Precision<float> {
  using Native = float;
  using Wide = double;
};
template <HalfElement T>
struct Precision<T> {
  using Native = float;
  using Wide = double;
};
}  // namespace detail

/// Where the exactly rounded ops on T happen: f32 for half types, else T itself.
template <class T>
using Native = typename detail::Precision<T>::Native;
/// Where functions without an exact rule and sums happen before their one rounding: f64, for f64 long double.
template <class T>
using Wide = typename detail::Precision<T>::Wide;

}  // namespace burin::ir::eval
