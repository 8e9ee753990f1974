#include "ir/literal.h"

#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>

#include "base/check.h"
#include "base/message_ids.h"

namespace burin::ir {
namespace {

std::size_t bytes_of(const Type& type) { return static_cast<std::size_t>(type.bytes()); }

using Bytes = std::vector<std::byte>;

[[noreturn]] void no_room(const Type& type) {
  const std::int64_t bytes = type.bytes();
  fail(Msg::memory_for, to_string(type), bytes, static_cast<double>(bytes) / 1048576.0);
}

// Of `type` when they are given to a vector's constructor.
template <class... Args>
std::shared_ptr<Bytes> make_bytes(const Type& type, Args&&... args) {
  try {
    return std::make_shared<Bytes>(std::forward<Args>(args)...);
  } catch (const std::bad_alloc&) {
    no_room(type);
  } catch (const std::length_error&) {
    no_room(type);
  }
}

// The low 64 bits of the truncated value, whatever its size; 0 for NaN and infinity.
std::uint64_t wrapped(double value) {
  if (!std::isfinite(value)) return 0;
  const double rest = std::fmod(std::trunc(value), 0x1p64);
  return rest < 0 ? -static_cast<std::uint64_t>(-rest) : static_cast<std::uint64_t>(rest);
}

}  // namespace

Literal::Literal(const Type& type) : type_(type), data_(make_bytes(type, bytes_of(type), std::byte{0})) {}

Literal::Literal(const Type& type, std::span<const std::byte> bytes) : type_(type) {
  BURIN_CHECK(bytes.size() == bytes_of(type));
  data_ = make_bytes(type, bytes.begin(), bytes.end());
}

Literal Literal::scalar(DType dtype, double value) {
  Literal result(Type{dtype, {}});
  result.set(0, value);
  return result;
}

Literal Literal::scalar_int(DType dtype, std::int64_t value) {
  Literal result(Type{dtype, {}});
  if (is_float(dtype))
    result.set(0, static_cast<double>(value));
  else
    result.set_int(0, value);
  return result;
}

Literal Literal::splat(const Shape& shape, const Literal& element) {
  BURIN_CHECK(element.raw().size() == size_of(element.dtype()));
  Literal result = element;
  result.type_.shape = shape;
  result.splat_ = shape.size() != 1;
  if (shape.size() == 0) {
    result.splat_ = false;
    result.data_ = std::make_shared<Bytes>();
  }
  return result;
}

void Literal::expand() {
  if (!splat_) return;
  const std::size_t width = size_of(type_.dtype);
  auto all = make_bytes(type_, bytes_of(type_));
  for (std::size_t i = 0; i < all->size(); i += width) std::memcpy(all->data() + i, data_->data(), width);
  data_ = std::move(all);
  splat_ = false;
}

std::span<std::byte> Literal::mutable_raw() {
  expand();
  if (data_.use_count() > 1) data_ = make_bytes(type_, *data_);
  return {data_->data(), data_->size()};
}

double Literal::at(std::int64_t i) const {
  return with_element(type_.dtype, [&]<class T>(T) {
    return static_cast<double>(data<T>()[splat_ ? 0 : static_cast<std::size_t>(i)]);
  });
}

std::int64_t Literal::int_at(std::int64_t i) const {
  BURIN_CHECK(!is_float(type_.dtype));
  return with_element(type_.dtype, [&]<class T>(T) {
    return static_cast<std::int64_t>(data<T>()[splat_ ? 0 : static_cast<std::size_t>(i)]);
  });
}

void Literal::set(std::int64_t i, double value) {
  with_element(type_.dtype, [&]<class T>(T) {
    T& element = mutable_data<T>()[static_cast<std::size_t>(i)];
    if constexpr (std::is_same_v<T, bool>)
      element = value != 0;
    else if constexpr (std::is_integral_v<T>)
      element = static_cast<T>(wrapped(value));
    else
      element = static_cast<T>(value);
  });
}

void Literal::set_int(std::int64_t i, std::int64_t value) {
  BURIN_CHECK(!is_float(type_.dtype));
  with_element(type_.dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>)
      mutable_data<T>()[static_cast<std::size_t>(i)] = value != 0;
    else
      mutable_data<T>()[static_cast<std::size_t>(i)] = static_cast<T>(value);
  });
}

Literal Literal::reshaped(const Shape& shape) const {
  BURIN_CHECK(shape.size() == type_.shape.size());
  Literal result = *this;
  result.type_.shape = shape;
  return result;
}

void Literal::hash(Hasher& hasher) const {
  hasher.add(type_.dtype);
  hasher.add(type_.shape.rank());
  for (std::int64_t extent : type_.shape) hasher.add(extent);
  // A splat equals its expansion, so elements that are all the same hash as one.
  const std::size_t width = size_of(type_.dtype);
  const bool uniform =
      data_->size() >= width && std::memcmp(data_->data(), data_->data() + width, data_->size() - width) == 0;
  hasher.add_bytes(data_->data(), uniform ? width : data_->size());
}

bool operator==(const Literal& a, const Literal& b) {
  if (a.type_ != b.type_) return false;
  if (a.splat_ == b.splat_) return *a.data_ == *b.data_;
  const Literal &splat = a.splat_ ? a : b, &full = a.splat_ ? b : a;
  const std::size_t width = size_of(a.dtype());
  for (std::size_t i = 0; i < full.data_->size(); i += width)
    if (std::memcmp(full.data_->data() + i, splat.data_->data(), width) != 0) return false;
  return true;
}

}  // namespace burin::ir
