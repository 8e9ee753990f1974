// Tensor: an n-dimensional array of one dtype, or, while a function is being traced, the promise of one.
#pragma once
#include <burin/standard.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <new>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "ir/type.h"

namespace burin {

inline constexpr double inf = std::numeric_limits<double>::infinity();
/// Beside <cmath> this must be written burin::nan, because of the C function of that name.
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Asks a reduction to leave its axes in the result with extent 1: mean(x, -1, keepdims).
struct KeepDims {
  bool value = false;
};
inline constexpr KeepDims keepdims{true};

/// A list of integers: extents (one may be -1 in reshape), axes, a permutation.
class IntList {
 public:
  IntList() = default;
  IntList(std::initializer_list<Extent> values) {
    for (Extent value : values) values_.push_back(value.value);
  }
  IntList(const Shape& shape) : values_(shape.begin(), shape.end()) {}
  IntList(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  template <class T>
    requires std::is_integral_v<T>
  IntList(T value) : values_{static_cast<std::int64_t>(value)} {}

  std::size_t size() const { return values_.size(); }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
};

/// The axes of a reduction: one, several, or (the default) all. Negative axes count from the end.
class Axes {
 public:
  Axes() = default;
  Axes(std::initializer_list<Extent> values) : list_(values), all_(false) {}
  Axes(std::vector<std::int64_t> values) : list_(std::move(values)), all_(false) {}
  template <class T>
    requires std::is_integral_v<T>
  Axes(T value) : list_(value), all_(false) {}

  bool all() const { return all_; }
  const IntList& list() const { return list_; }

 private:
  IntList list_;
  bool all_ = true;
};

namespace detail {
struct Node;
struct Access;
template <class T>
inline constexpr bool is_element = std::is_arithmetic_v<T> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  static_assert(is_element<U>, "burin: elements are float, double, bfloat16, float16, bool or integers of 8 to 64 bits");
  if constexpr (std::is_same_v<U, bool>) {
    return DType::bool_;
  } else if constexpr (std::is_same_v<U, bfloat16>) {
    return DType::bf16;
  } else if constexpr (std::is_same_v<U, float16>) {
    return DType::f16;
  } else if constexpr (std::is_floating_point_v<U>) {
    static_assert(sizeof(U) <= 8, "burin: there is no dtype for long double");
    return sizeof(U) == 8 ? DType::f64 : DType::f32;
  } else {
    constexpr int width = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return static_cast<DType>(static_cast<int>(std::is_signed_v<U> ? DType::i8 : DType::u8) + width);
  }
}
}  // namespace detail

class At;
class Index;
class Operand;

/// A value: copying shares bytes, and no operation changes another Tensor. Outside a trace it holds numbers; inside one
/// it stands for the result of an op, and asking for numbers is an error that names where the value was made.
///
/// Every op throws burin::Error when shapes or dtypes do not fit, naming both and the line of the caller.
class Tensor {
 public:
  using Where = std::source_location;

  /// No value; using it is an error.
  Tensor() = default;
  /// A rank-0 tensor from a C++ number. It is weakly typed: in x * 2.0 the dtype of x wins, as in JAX.
  template <class T>
    requires std::is_arithmetic_v<T>
  Tensor(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      set_bool(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      set_float(static_cast<double>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
      set_unsigned(static_cast<std::uint64_t>(value));
    } else {
      set_int(static_cast<std::int64_t>(value));
    }
  }
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Only lvalues are assigned to.
  template <class T>
  void operator=(const T&) && {
    static_assert(sizeof(T) == 0, "burin: x[i] = y would change a temporary: write x = x.at(i).set(y)");
  }

  /// False for a Tensor that was never given a value.
  bool defined() const { return node_ != nullptr; }
  /// True while this stands for a value of a function that is being traced.
  bool traced() const;

  Shape shape(Where where = Where::current()) const;
  /// The extents of a tensor of that rank: auto [B, T, D] = x.shape<3>(). Another rank is an error.
  template <std::size_t rank>
  std::array<std::int64_t, rank> shape(Where where = Where::current()) const {
    std::array<std::int64_t, rank> dims{};
    copy_shape(dims, where);
    return dims;
  }
  std::int64_t rank(Where where = Where::current()) const { return static_cast<std::int64_t>(shape(where).rank()); }
  /// The number of elements.
  std::int64_t size(Where where = Where::current()) const { return shape(where).size(); }
  DType dtype(Where where = Where::current()) const;
  /// True for values made from C++ numbers alone: they adapt their dtype to what they meet.
  bool weak(Where where = Where::current()) const;

  // ---- numbers out; an error for a traced tensor ---------------------------------------------------------------------
  /// The only element, converted: float(loss).
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit operator T() const {
    return item<T>(Where{});  // an operator has no default argument; the message names where the value was made
  }
  /// The same, with the caller's line in its errors: another number of elements than one, a traced tensor.
  template <class T>
  T item(Where where = Where::current()) const {
    static_assert(std::is_arithmetic_v<T>, "burin: item<T>() gives arithmetic types");
    if constexpr (std::is_same_v<T, bool>) return item_double(where) != 0;
    else if constexpr (std::is_integral_v<T>) return static_cast<T>(item_int(where));
    else return static_cast<T>(item_double(where));
  }
  /// All elements in row-major order, converted to T as astype does.
  template <class T>
  std::vector<T> to_vector(Where where = Where::current()) const try {
    std::vector<T> values(static_cast<std::size_t>(size(where)));
    if constexpr (std::is_same_v<T, bool>) {
      std::unique_ptr<bool[]> flags(new bool[values.size()]);
      copy_elements(flags.get(), DType::bool_, where);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = flags[i];
    } else {
      copy_elements(values.data(), detail::dtype_of<T>(), where);
    }
    return values;
  } catch (const std::bad_alloc&) {
    fail_no_room(sizeof(T), where);
  } catch (const std::length_error&) {
    fail_no_room(sizeof(T), where);
  }
  /// The elements in place, row-major. T must be the element type of dtype(), else an error names both. They live as
  /// long as a Tensor holds them.
  template <class T>
  std::span<const T> data(Where where = Where::current()) const& {
    return {static_cast<const T*>(raw(detail::dtype_of<T>(), where)), static_cast<std::size_t>(size(where))};
  }
  template <class T>
  std::span<const T> data(Where = Where::current()) const&& {
    static_assert(sizeof(T) == 0, "burin: the elements die with the temporary: give the tensor a name, then take its data()");
    return {};
  }

  // ---- methods; each is the op of the same name in ops.h ------------------------------------------------------------
  /// x[0], x[-1], x[ids], x[first(n)], x[slice(a, b, step)], x[{all, ids}], x[{ellipsis, newaxis}].
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  /// x.at(i).set(v) and x.at(i).add(v): a new tensor with the part at i replaced or increased.
  At at(const Index& index) const;
  At at(std::initializer_list<Index> indices) const;

  Tensor astype(DType dtype, Where where = Where::current()) const;
  Tensor reshape(const IntList& shape, Where where = Where::current()) const;
  Tensor transpose(const IntList& permutation, Where where = Where::current()) const;
  Tensor transpose(Where where = Where::current()) const;
  Tensor swapaxes(std::int64_t a, std::int64_t b, Where where = Where::current()) const;
  Tensor squeeze(const Axes& axes = {}, Where where = Where::current()) const;
  Tensor flatten(Where where = Where::current()) const;
  Tensor sum(const Axes& axes = {}, KeepDims keep = {}, Where where = Where::current()) const;
  Tensor mean(const Axes& axes = {}, KeepDims keep = {}, Where where = Where::current()) const;
  Tensor max(const Axes& axes = {}, KeepDims keep = {}, Where where = Where::current()) const;
  Tensor min(const Axes& axes = {}, KeepDims keep = {}, Where where = Where::current()) const;
  Tensor prod(const Axes& axes = {}, KeepDims keep = {}, Where where = Where::current()) const;

  Tensor& operator+=(const Operand& b) &;
  Tensor& operator-=(const Operand& b) &;
  Tensor& operator*=(const Operand& b) &;
  Tensor& operator/=(const Operand& b) &;
  Tensor& operator%=(const Operand& b) &;

 private:
  friend struct detail::Access;
  void set_bool(bool value);
  void set_float(double value);
  void set_int(std::int64_t value);
  void set_unsigned(std::uint64_t value);
  void copy_shape(std::span<std::int64_t> dims, Where where) const;
  double item_double(Where where) const;
  std::int64_t item_int(Where where) const;
  void copy_elements(void* to, DType dtype, Where where) const;
  [[noreturn]] void fail_no_room(std::size_t element_bytes, Where where) const;  // for a copy of the elements
  const void* raw(DType dtype, Where where) const;

  std::shared_ptr<detail::Node> node_;
};

/// What ops take: a tensor or a number, and the line of the caller, recorded by the conversion.
class Operand {
 public:
  Operand(const Tensor& t, std::source_location at = std::source_location::current()) : tensor(t), where(at) {}
  Operand(Tensor&& t, std::source_location at = std::source_location::current()) : tensor(std::move(t)), where(at) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T value, std::source_location at = std::source_location::current()) : tensor(value), where(at) {}

  Tensor tensor;
  std::source_location where;
};

/// shape<3>(x): the same as x.shape<3>(), without the word `template` inside generic code.
template <std::size_t rank>
std::array<std::int64_t, rank> shape(const Operand& x) {
  return x.tensor.shape<rank>(x.where);
}

/// Prints the elements as NumPy does; for a traced tensor its type.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

// ---- tensors from host memory ------------------------------------------------------------------------------------------
namespace detail {
Tensor from_bytes(const void* data, std::size_t count, DType from, DType dtype, const IntList& shape,
                  std::source_location where);
template <class T>
constexpr DType brace_dtype() {  // plain numbers in braces take the default dtypes, as in JAX
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) return DType::f32;
  else if constexpr (std::is_same_v<T, long> || std::is_same_v<T, long long> || std::is_same_v<T, int>) return DType::i32;
  else return dtype_of<T>();
}
template <class T>
Tensor from_vector(const std::vector<T>& values, DType dtype, const IntList& shape, std::source_location where) {
  if constexpr (std::is_same_v<T, bool>) {  // vector<bool> has no data()
    std::unique_ptr<bool[]> all(new bool[values.size() + 1]);
    for (std::size_t i = 0; i < values.size(); ++i) all[i] = values[i];
    return from_bytes(all.get(), values.size(), DType::bool_, dtype, shape, where);
  } else {
    return from_bytes(values.data(), values.size(), dtype_of<T>(), dtype, shape, where);
  }
}
[[noreturn]] void fail_ragged(std::source_location where);
template <class T>
Tensor from_nested(const std::vector<T>& values, const Shape& shape, DType dtype, std::source_location where) {
  if (static_cast<std::int64_t>(values.size()) != shape.size()) fail_ragged(where);
  return from_vector(values, dtype, shape, where);
}
}  // namespace detail

/// tensor({1, 2, 3}) is i32, tensor({1.5}) is f32, unless a dtype is given; braces nest up to three axes, and inner
/// lists of different lengths are an error.
template <class T>
Tensor tensor(std::initializer_list<T> row, DType dtype = detail::brace_dtype<T>(),
              std::source_location where = std::source_location::current()) {
  return detail::from_nested(std::vector<T>(row), Shape{row.size()}, dtype, where);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, DType dtype = detail::brace_dtype<T>(),
              std::source_location where = std::source_location::current()) {
  std::vector<T> all;
  for (const auto& row : rows) {
    if (row.size() != rows.begin()->size()) detail::fail_ragged(where);
    all.insert(all.end(), row.begin(), row.end());
  }
  return detail::from_nested(all, Shape{rows.size(), rows.size() ? rows.begin()->size() : 0}, dtype, where);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks,
              DType dtype = detail::brace_dtype<T>(), std::source_location where = std::source_location::current()) {
  std::vector<T> all;
  std::size_t n = 0, m = 0;
  if (blocks.size() > 0) n = blocks.begin()->size();
  if (n > 0) m = blocks.begin()->begin()->size();
  for (const auto& rows : blocks) {
    if (rows.size() != n) detail::fail_ragged(where);
    for (const auto& row : rows) {
      if (row.size() != m) detail::fail_ragged(where);
      all.insert(all.end(), row.begin(), row.end());
    }
  }
  return detail::from_nested(all, Shape{blocks.size(), n, m}, dtype, where);
}
/// A copy of `values`, row-major, under `shape`, whose size must agree (else an error names both); the dtype is that of
/// T.
template <class T>
Tensor tensor(std::span<T> values, const IntList& shape, std::source_location where = std::source_location::current()) {
  constexpr DType dtype = detail::dtype_of<T>();
  return detail::from_bytes(values.data(), values.size(), dtype, dtype, shape, where);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const IntList& shape,
              std::source_location where = std::source_location::current()) {
  return detail::from_vector(values, detail::dtype_of<T>(), shape, where);
}
/// A one-dimensional copy.
template <class T>
Tensor tensor(const std::vector<T>& values, std::source_location where = std::source_location::current()) {
  return tensor(values, Shape{values.size()}, where);
}
/// A shape and dtype without data, for eval_shape and lower: how a model that does not fit is planned.
Tensor abstract_tensor(const IntList& shape, DType dtype = f32,
                       std::source_location where = std::source_location::current());

}  // namespace burin
