#include "ir/element_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace burin::ir {
namespace {

std::uint64_t bits_of(const Literal& literal, std::int64_t i) {
  const std::size_t size = size_of(literal.dtype());
  std::uint64_t bits = 0;
  std::memcpy(&bits, literal.raw().data() + (literal.is_splat() ? 0 : i * static_cast<std::int64_t>(size)), size);
  return bits;
}

void set_bits(Literal& literal, std::int64_t i, std::uint64_t bits) {
  const std::size_t size = size_of(literal.dtype());
  std::memcpy(literal.mutable_raw().data() + i * static_cast<std::int64_t>(size), &bits, size);
}

std::uint64_t default_nan(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x7FF8000000000000u;
    case DType::f32:
      return 0x7FC00000u;
    case DType::bf16:
      return 0x7FC0u;
    default:
      return 0x7E00u;
  }
}

// Fewest significant digits that read back as the same half; such a type needs five at most.
std::string half_text(double value, DType dtype) {
  if (value != 0 && std::abs(value) < 1e6 && value == std::trunc(value)) return fmt::format("{:.0f}", value);
  for (int digits = 1;; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    const double read = std::strtod(text.c_str(), nullptr);
    const double rounded =
        dtype == DType::bf16 ? bfloat16_value(bfloat16_bits(read)) : float16_value(float16_bits(read));
    if (rounded == value) return text;
  }
}

template <class T>
std::string shortest_text(T value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

template <class T>
bool parse_int(std::string_view text, Literal& literal, std::int64_t i) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  set_bits(literal, i, static_cast<std::uint64_t>(value));
  return true;
}

bool parse_float(std::string_view text, Literal& literal, std::int64_t i) {
  const DType dtype = literal.dtype();
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint64_t bits = 0;
    const auto [stop, error] = std::from_chars(text.data() + 2, end, bits, 16);
    const std::size_t width = 8 * size_of(dtype);
    if (error != std::errc() || stop != end || text.size() == 2 || (width < 64 && bits >> width != 0)) return false;
    set_bits(literal, i, bits);
    return true;
  }
  if (text == "nan") {
    set_bits(literal, i, default_nan(dtype));
    return true;
  }
  const std::string_view magnitude = text.starts_with('-') ? text.substr(1) : text;
  const bool digits_first = !magnitude.empty() && ((magnitude[0] >= '0' && magnitude[0] <= '9') || magnitude[0] == '.');
  if (magnitude != "inf" && !digits_first) return false;
  // strtof and strtod round once. What is too large becomes infinity, and so may what is rounded to a half: infinity is
  // written inf.
  const std::string copy(text);
  char* stop = nullptr;
  if (dtype == DType::f32) {
    const float value = std::strtof(copy.c_str(), &stop);
    set_bits(literal, i, std::bit_cast<std::uint32_t>(value));
  } else {
    literal.set(i, std::strtod(copy.c_str(), &stop));
  }
  return stop == copy.c_str() + copy.size() && (magnitude == "inf" || !std::isinf(literal.at(i)));
}

}  // namespace

std::string element_text(const Literal& literal, std::int64_t i) {
  const DType dtype = literal.dtype();
  if (dtype == DType::bool_) return literal.int_at(i) != 0 ? "true" : "false";
  if (dtype == DType::u64) return std::to_string(static_cast<std::uint64_t>(literal.int_at(i)));
  if (is_int(dtype)) return std::to_string(literal.int_at(i));
  const double value = literal.at(i);
  if (std::isnan(value)) {
    const std::uint64_t bits = bits_of(literal, i);
    return bits == default_nan(dtype) ? "nan" : fmt::format("0x{:0{}X}", bits, 2 * size_of(dtype));
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (dtype == DType::f64) return shortest_text(value);
  if (dtype == DType::f32) return shortest_text(static_cast<float>(value));
  return half_text(value, dtype);
}

bool element_from_text(std::string_view text, Literal& literal, std::int64_t i) {
  switch (literal.dtype()) {
    case DType::f64:
    case DType::f32:
    case DType::bf16:
    case DType::f16:
      return parse_float(text, literal, i);
    case DType::i8:
      return parse_int<std::int8_t>(text, literal, i);
    case DType::i16:
      return parse_int<std::int16_t>(text, literal, i);
    case DType::i32:
      return parse_int<std::int32_t>(text, literal, i);
    case DType::i64:
      return parse_int<std::int64_t>(text, literal, i);
    case DType::u8:
      return parse_int<std::uint8_t>(text, literal, i);
    case DType::u16:
      return parse_int<std::uint16_t>(text, literal, i);
    case DType::u32:
      return parse_int<std::uint32_t>(text, literal, i);
    case DType::u64:
      return parse_int<std::uint64_t>(text, literal, i);
    case DType::bool_:
      if (text != "true" && text != "false") return false;
      set_bits(literal, i, text == "true");
      return true;
  }
  return false;
}

}  // namespace burin::ir
