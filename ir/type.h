// What a value is: a dtype and a static shape. These are the only IR types that a user of the tracing API meets.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace burin {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64, bool_ };
inline constexpr int num_dtypes = 13;

inline constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16, i8 = DType::i8,
                       i16 = DType::i16, i32 = DType::i32, i64 = DType::i64, u8 = DType::u8, u16 = DType::u16,
                       u32 = DType::u32, u64 = DType::u64, bool_ = DType::bool_;

/// "f32", "bf16", "bool", ... The characters are null-terminated.
std::string_view name(DType dtype);

constexpr bool is_float(DType d) { return d <= DType::f16; }
constexpr bool is_half(DType d) { return d == DType::bf16 || d == DType::f16; }
constexpr bool is_signed_int(DType d) { return d >= DType::i8 && d <= DType::i64; }
constexpr bool is_unsigned_int(DType d) { return d >= DType::u8 && d <= DType::u64; }
constexpr bool is_int(DType d) { return d >= DType::i8 && d <= DType::u64; }
/// Bytes of one element in memory; a bool takes one byte, 0 or 1.
constexpr std::size_t size_of(DType d) {
  constexpr std::size_t sizes[num_dtypes] = {8, 4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return sizes[static_cast<int>(d)];
}

/// The distance from 1 to the next larger number; 0 of integers and bools.
constexpr double epsilon(DType d) {
  switch (d) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::bf16: return 0x1p-7;
    case DType::f16: return 0x1p-10;
    default: return 0;
  }
}

/// One integer of any type, so that braces may mix int, int64_t and size_t.
struct Extent {
  std::int64_t value;
  template <class T>
    requires std::is_integral_v<T>
  constexpr Extent(T v) : value(static_cast<std::int64_t>(v)) {}
};

/// A number of an axis, and who asks for it.
struct AxisAt {
  std::int64_t axis;
  std::source_location where;
  template <class T>
    requires std::is_integral_v<T>
  constexpr AxisAt(T a, std::source_location w = std::source_location::current())
      : axis(static_cast<std::int64_t>(a)), where(w) {}
};

/// The extents of 0 to 8 axes; each is >= 0. A value type without allocation.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;

  Shape() = default;
  template <class... Ints>
    requires(std::is_integral_v<Ints> && ...)
  static Shape of(Ints... dims) {
    return Shape{static_cast<std::int64_t>(dims)...};
  }
  /// Throws Error, which names the caller's line, when there are more than 8 axes or an extent is negative.
  Shape(std::initializer_list<Extent> dims, std::source_location where = std::source_location::current()) {
    for (Extent extent : dims) push_back(extent.value, where);
  }
  explicit Shape(std::span<const std::int64_t> dims, std::source_location where = std::source_location::current());

  std::size_t rank() const { return rank_; }
  /// Negative axes count from the last one. Throws Error, which names the caller's line, for an axis that there is not.
  std::int64_t operator[](AxisAt axis) const { return dims_[place_of(axis)]; }
  std::int64_t& operator[](AxisAt axis) { return dims_[place_of(axis)]; }
  std::int64_t back(std::source_location where = std::source_location::current()) const { return (*this)[{-1, where}]; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  /// Number of elements: the product of the extents, 1 for rank 0. Throws Error when 63 bits cannot count them.
  std::int64_t size() const;
  void push_back(std::int64_t extent, std::source_location where = std::source_location::current());

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::size_t place_of(const AxisAt& at) const {
    const std::int64_t axis = at.axis < 0 ? at.axis + rank_ : at.axis;
    if (axis < 0 || axis >= rank_) fail_axis(at);
    return static_cast<std::size_t>(axis);
  }
  [[noreturn]] void fail_axis(const AxisAt& at) const;

  std::array<std::int64_t, max_rank> dims_{};
  std::uint8_t rank_ = 0;
};

/// "[2,16,32]"; rank 0 is "[]".
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, DType dtype);

namespace ir {

struct Type {
  DType dtype = DType::f32;
  Shape shape;

  std::size_t rank() const { return shape.rank(); }
  std::int64_t size() const { return shape.size(); }
  std::int64_t bytes() const { return shape.size() * static_cast<std::int64_t>(size_of(dtype)); }
  friend bool operator==(const Type&, const Type&) = default;
};

/// "f32[2,16,64]", "i32[]".
std::string to_string(const Type& type);

}  // namespace ir
}  // namespace burin
