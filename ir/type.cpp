#include "ir/type.h"

#include <algorithm>
#include <ostream>

#include "base/message_ids.h"
#include "base/place.h"

namespace burin {

std::string_view name(DType dtype) {
  static constexpr std::string_view names[num_dtypes] = {"f64", "f32", "bf16", "f16", "i8",  "i16", "i32",
                                                         "i64", "u8",  "u16",  "u32", "u64", "bool"};
  return names[static_cast<int>(dtype)];
}

Shape::Shape(std::span<const std::int64_t> dims, std::source_location where) {
  for (std::int64_t extent : dims) push_back(extent, where);
}

void Shape::push_back(std::int64_t extent, std::source_location where) {
  if (rank_ == max_rank) fail_at(place_text(where), Msg::rank_too_large, "shape", max_rank);
  if (extent < 0) fail_at(place_text(where), Msg::negative_extent, "shape", rank_, extent);
  dims_[rank_++] = extent;
}

void Shape::fail_axis(const AxisAt& at) const { fail_at(place_text(at.where), Msg::shape_axis, at.axis, to_string(*this)); }

std::int64_t Shape::size() const {
  if (std::find(begin(), end(), 0) != end()) return 0;
  std::int64_t product = 1;
  for (std::int64_t extent : *this)
    if (__builtin_mul_overflow(product, extent, &product)) fail(Msg::too_many_elements, to_string(*this));
  return product;
}

bool operator==(const Shape& a, const Shape& b) {
  if (a.rank_ != b.rank_) return false;
  for (std::size_t i = 0; i < a.rank_; ++i)
    if (a.dims_[i] != b.dims_[i]) return false;
  return true;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

namespace ir {
std::string to_string(const Type& type) { return std::string(name(type.dtype)) + burin::to_string(type.shape); }
}  // namespace ir
}  // namespace burin
