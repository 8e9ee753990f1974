// Products of pairs of bf16, as processors with AVX512-BF16 or AMX form them (Intel's description of VDPBF16PS).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace burin::ir {

/// x, or a zero of its sign when x is subnormal.
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

/// sum + high * high + low * low: two fused multiply-adds in this order, each reading and giving zeros for subnormals.
inline float add_pair(float sum, std::uint32_t a, std::uint32_t b) {
  const auto high = [](std::uint32_t pair) { return flushed(std::bit_cast<float>(pair & 0xffff0000u)); };
  const auto low = [](std::uint32_t pair) { return flushed(std::bit_cast<float>(pair << 16)); };
  return flushed(std::fma(low(a), low(b), flushed(std::fma(high(a), high(b), flushed(sum)))));
}

}  // namespace burin::ir
