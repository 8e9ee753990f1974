// A typed value on the host: what constants hold, what the evaluator computes with. Copies share bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/hash.h"
#include "ir/type.h"

namespace burin::ir {

class Literal {
 public:
  Literal() = default;
  /// Zero-filled elements in row-major order.
  explicit Literal(const Type& type);
  /// `bytes` must hold type.bytes() bytes.
  Literal(const Type& type, std::span<const std::byte> bytes);

  /// One element of any dtype, converted from a double (integers: truncated) or exactly from an integer.
  static Literal scalar(DType dtype, double value);
  static Literal scalar_int(DType dtype, std::int64_t value);
  /// All elements equal to `element` (rank 0); stores one element whatever the shape.
  static Literal splat(const Shape& shape, const Literal& element);

  const Type& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  bool is_splat() const { return splat_; }
  bool valid() const { return data_ != nullptr; }
  /// One stored element says it all: a splat, or a literal of one element.
  bool stores_one_element() const { return splat_ || type_.size() == 1; }

  /// Expands a splat; after this data() and mutable_data() hold size() elements.
  void expand();
  /// The stored elements: size() of them, or one for a splat.
  std::span<const std::byte> raw() const { return {data_->data(), data_->size()}; }
  /// All elements; expands a splat first. Unshares before handing out mutable bytes.
  std::span<std::byte> mutable_raw();
  template <class T>
  std::span<const T> data() const;  // not for splats of size != 1
  template <class T>
  std::span<T> mutable_data();

  /// Element i (row-major) as a double; exact for all but 64-bit integers above 2^53.
  double at(std::int64_t i) const;
  /// Element i of an integer or bool literal, sign- or zero-extended.
  std::int64_t int_at(std::int64_t i) const;
  /// Stores a value rounded to the dtype (float), truncated and wrapped (integer; NaN and infinity give 0), or x != 0.
  void set(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);
  /// The same elements under another shape of equal size.
  Literal reshaped(const Shape& shape) const;

  void hash(Hasher& hasher) const;
  /// Same type and same bits (a splat equals its expansion).
  friend bool operator==(const Literal& a, const Literal& b);

 private:
  Type type_;
  bool splat_ = false;
  std::shared_ptr<std::vector<std::byte>> data_;
};

/// Calls f with a value of the C++ element type that stores `dtype`: double, float, bfloat16, float16, int8_t ... bool.
template <class F>
decltype(auto) with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(double{});
    case DType::f32: return f(float{});
    case DType::bf16: return f(bfloat16{});
    case DType::f16: return f(float16{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::bool_: break;
  }
  return f(bool{});
}

template <class T>
std::span<const T> Literal::data() const {
  return {reinterpret_cast<const T*>(data_->data()), data_->size() / sizeof(T)};
}
template <class T>
std::span<T> Literal::mutable_data() {
  std::span<std::byte> bytes = mutable_raw();
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace burin::ir
