// The abstract machine of codegen/vector_math over plain numbers: what the accuracy tests run, and what generated code
// must equal bit for bit.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace burin::codegen::math {

template <class T>
class HostMachine {
 public:
  using F = T;
  using I = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using B = bool;
  using Wide = HostMachine<double>;
  static constexpr int width = 8 * sizeof(T);

  F f(double c) const { return static_cast<F>(c); }
  I i(std::uint64_t c) const { return static_cast<I>(c); }
  F fma(F a, F b, F c) const { return std::fma(a, b, c); }
  F abs(F x) const { return std::fabs(x); }
  F sqrt(F x) const { return std::sqrt(x); }
  F floor(F x) const { return std::floor(x); }
  F round_even(F x) const { return std::nearbyint(x); }
  F copysign(F magnitude, F sign) const { return std::copysign(magnitude, sign); }
  B is_nan(F x) const { return x != x; }
  F select(B b, F x, F y) const { return b ? x : y; }
  I select(B b, I x, I y) const { return b ? x : y; }
  I bits(F x) const { return std::bit_cast<I>(x); }
  F from_bits(I x) const { return std::bit_cast<F>(x); }
  F pick(const std::array<double, 16>& table, I index) const { return static_cast<F>(table[index & 15]); }
  std::optional<F> scaled(F, F) const { return std::nullopt; }

  Wide wide() const { return {}; }
  double widen(F x) const { return x; }
  F narrow(double x) const { return static_cast<F>(x); }
  I narrow_bits(std::uint64_t x) const { return static_cast<I>(x); }
};

}  // namespace burin::codegen::math
