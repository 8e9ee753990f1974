#include "tests/op_cases/reference.h"

#include <cmath>
#include <cstring>

#include "base/check.h"

namespace burin::op_cases {
namespace {

__extension__ using Wide = __int128;

bool is_signed(DType dtype) { return is_signed_int(dtype); }

}  // namespace

Real element(const ir::Literal& literal, std::int64_t i) {
  if (is_float(literal.dtype())) return literal.at(i);
  return of_word(static_cast<std::uint64_t>(literal.int_at(i)), literal.dtype());
}

Reals elements(const ir::Literal& literal) {
  Reals result;
  for (std::int64_t i = 0; i < literal.shape().size(); ++i) result.push_back(element(literal, i));
  return result;
}

ir::Literal from_reals(const ir::Type& type, std::span<const Real> values) {
  BURIN_CHECK(type.size() == static_cast<std::int64_t>(values.size()));
  ir::Literal result(type);
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const Real value = values[static_cast<std::size_t>(i)];
    if (is_float(type.dtype)) {
      result.set(i, static_cast<double>(value));
      continue;
    }
    BURIN_CHECK(value >= lowest_of(type.dtype) && value <= highest_of(type.dtype) && value == std::trunc(value));
    result.set_int(i, static_cast<std::int64_t>(word(value)));
  }
  return result;
}

Real rounded(Real value, DType dtype) { return element(from_reals(ir::Type{dtype, {}}, std::span(&value, 1)), 0); }

std::uint64_t width_of(DType dtype) { return dtype == DType::bool_ ? 1 : 8 * size_of(dtype); }

std::uint64_t word(Real integer) {
  const auto size = static_cast<std::uint64_t>(std::fabs(integer));
  return integer < 0 ? 0 - size : size;
}

Real of_word(std::uint64_t word, DType dtype) {
  const std::uint64_t width = width_of(dtype), unused = 64 - width;
  const std::uint64_t kept = word << unused >> unused;
  const Real value = static_cast<Real>(kept);
  return is_signed(dtype) && kept >> (width - 1) != 0 ? value - std::ldexp(Real(1), static_cast<int>(width)) : value;
}

Real lowest_of(DType dtype) { return is_signed(dtype) ? -std::ldexp(Real(1), static_cast<int>(width_of(dtype)) - 1) : 0; }
Real highest_of(DType dtype) {
  return std::ldexp(Real(1), static_cast<int>(width_of(dtype)) - (is_signed(dtype) ? 1 : 0)) - 1;
}

Real sum(Real x, Real y, DType dtype) {
  if (is_float(dtype)) return x + y;
  return dtype == DType::bool_ ? Real(x != 0 || y != 0) : of_word(word(x) + word(y), dtype);
}

Real product(Real x, Real y, DType dtype) {
  if (is_float(dtype)) return x * y;
  return of_word(word(x) * word(y), dtype);
}

Real larger(Real x, Real y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<Real>::quiet_NaN();
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
Real smaller(Real x, Real y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<Real>::quiet_NaN();
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

Real quotient(Real x, Real y, DType dtype) {
  if (y == 0) return of_word(~std::uint64_t{0}, dtype);
  return of_word(static_cast<std::uint64_t>(static_cast<Wide>(x) / static_cast<Wide>(y)), dtype);
}
Real remainder(Real x, Real y, DType dtype) {
  if (y == 0) return x;
  return of_word(static_cast<std::uint64_t>(static_cast<Wide>(x) % static_cast<Wide>(y)), dtype);
}

// By the bits of the exponent, highest first.
Real power(Real x, Real y, DType dtype) {
  if (y < 0) {
    if (x == 1) return 1;
    return x == -1 ? (std::fmod(y, Real(2)) == 0 ? Real(1) : Real(-1)) : Real(0);
  }
  std::uint64_t result = 1;
  for (int i = 63; i >= 0; --i) {
    result *= result;
    if (word(y) >> i & 1) result *= word(x);
  }
  return of_word(result, dtype);
}

std::uint64_t threefry(std::uint64_t key, std::uint64_t counter) {
  constexpr std::uint64_t low = 0xffffffff;
  constexpr std::uint64_t turns[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const std::uint64_t schedule[] = {key >> 32, key & low, (key >> 32 ^ key ^ 0x1BD11BDA) & low};
  std::uint64_t left = ((counter >> 32) + schedule[0]) & low, right = (counter + schedule[1]) & low;
  for (std::uint64_t round = 0; round < 20; ++round) {
    left = (left + right) & low;
    const std::uint64_t turn = turns[round % 8];
    right = ((right << turn | right >> (32 - turn)) & low) ^ left;
    if (round % 4 != 3) continue;
    const std::uint64_t injection = round / 4 + 1;
    left = (left + schedule[injection % 3]) & low;
    right = (right + schedule[(injection + 1) % 3] + injection) & low;
  }
  return left << 32 | right;
}

std::uint64_t bits_of(const ir::Literal& literal_in, std::int64_t i) {
  ir::Literal literal = literal_in;
  literal.expand();
  const std::size_t width = size_of(literal.dtype());
  std::uint64_t bits = 0;
  std::memcpy(&bits, literal.raw().data() + static_cast<std::size_t>(i) * width, width);
  return bits;
}

Real of_bits(std::uint64_t bits, DType dtype) {
  if (!is_float(dtype)) return of_word(bits, dtype);
  const int width = static_cast<int>(width_of(dtype));
  const int digits = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const int exponent_bits = width - 1 - digits, bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << digits) - 1);
  const int exponent = static_cast<int>(bits >> digits) & ((1 << exponent_bits) - 1);
  Real size = 0;
  if (exponent == (1 << exponent_bits) - 1)
    size = fraction == 0 ? std::numeric_limits<Real>::infinity() : std::numeric_limits<Real>::quiet_NaN();
  else if (exponent == 0)
    size = std::ldexp(static_cast<Real>(fraction), 1 - bias - digits);
  else
    size = std::ldexp(static_cast<Real>(fraction | std::uint64_t{1} << digits), exponent - bias - digits);
  return bits >> (width - 1) & 1 ? -size : size;
}

}  // namespace burin::op_cases
