// Products of pairs of bf16, as processors with AVX512-BF16 or AMX form them (Intel's descriptions of VDPBF16PS and TDPBF16PS).
#pragma once
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

namespace burin::ir {

/// x, or a zero of its sign when x is subnormal.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

/// a * b + c of flushed values, rounded once; a zero of its sign where the result is below the normal ones. That is asked of the
/// result in 24 bits whatever its exponent: what only the coarser grid of the subnormals rounds up to a normal one is zero too.
inline float flushed_multiply_add(float a, float b, float c) {
  const float sum = std::fma(a, b, c);
  if (std::fabs(sum) == FLT_MIN && std::fabs(std::fma(a * 0x1p64f, b, c * 0x1p64f)) < FLT_MIN * 0x1p64f)
    return std::copysign(0.0f, sum);
  return flushed(sum);
}

inline float high_half(std::uint32_t pair) { return flushed(std::bit_cast<float>(pair & 0xffff0000u)); }
inline float low_half(std::uint32_t pair) { return flushed(std::bit_cast<float>(pair << 16)); }

/// sum + high * high + low * low: two fused multiply-adds in this order, each reading and giving zeros for subnormals.
inline float add_pair(float sum, std::uint32_t a, std::uint32_t b) {
  return flushed_multiply_add(low_half(a), low_half(b),
                              flushed_multiply_add(high_half(a), high_half(b), flushed(sum)));
}

/// What a tile instruction adds to an element: the products of low halves and those of high halves are summed apart, each from
/// zero by fused multiply-adds, then added to one another, then to the element; all read and give zeros for subnormals.
struct PairSums {
  float low = 0, high = 0;
  void add(std::uint32_t a, std::uint32_t b) {
    low = flushed_multiply_add(low_half(a), low_half(b), low);
    high = flushed_multiply_add(high_half(a), high_half(b), high);
  }
  float added_to(float sum) const { return flushed(flushed(sum) + flushed(low + high)); }
};

}  // namespace burin::ir
