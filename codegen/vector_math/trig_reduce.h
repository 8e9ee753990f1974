// Argument reduction of sin, cos, tan over the whole range: x = k pi/2 + r with |r| <= pi/4 (a little more), k mod 4.
// No branches and no table in memory: the bits of 2/pi that matter for the exponent of x are chosen by selects.
#pragma once
#include <array>
#include <cstddef>

#include "codegen/vector_math/machine.h"

namespace burin::codegen::math {

/// `turns` + `rest`: r in quarter turns; the low two bits of `quadrant` are k mod 4.
template <class F, class I>
struct Turns {
  F turns, rest;
  I quadrant;
};

/// For a 32-bit machine, on its Wide machine; the rest is zero. x has at most 24 significant bits: where x is a
/// multiple of 2^E, the part of 2/pi that is a multiple of 2^(2-E) contributes whole turns, and is dropped from the
/// constant.
template <class W>
Turns<typename W::F, typename W::I> reduce_f32(W& w, typename W::F x) {
  auto a = w.abs(x);
  auto hi = w.f(0x1.45f306dc9c883p-1), lo = w.f(-0x1.6b01ec5417056p-55);
  auto beyond = [&](double bound, double next_hi, double next_lo) {
    auto is_beyond = a >= w.f(bound);
    hi = w.select(is_beyond, w.f(next_hi), hi);
    lo = w.select(is_beyond, w.f(next_lo), lo);
  };
  beyond(0x1p40, -0x1.f246c6efab581p-18, 0x1.3abe8fa9a6ee0p-75);
  beyond(0x1p64, 0x1.1054a7f09d5f4p-42, 0x1.f534ddc0db629p-96);
  beyond(0x1p88, -0x1.ec54170565912p-71, 0x1.b6c52b3278872p-129);
  beyond(0x1p112, -0x1.70565911f924fp-91, 0x1.2b32788720840p-145);
  auto product = x * hi;
  auto rounder = w.f(Format<64>::rounder);
  auto rounded = product + rounder;
  auto turns = (product - (rounded - rounder)) + w.fma(x, lo, w.fma(x, hi, -product));
  return {turns, w.f(0), w.bits(rounded)};
}

/// For a 64-bit machine. 2/pi is cut into chunks of 48 bits; with j = floor((exponent - 54) / 48), or 0, the chunks
/// before the j-th contribute whole turns, and five chunks from there on leave an error below 2^-130 quarter turns.
template <class M>
Turns<typename M::F, typename M::I> reduce_f64(M& m, typename M::F x) {
  constexpr std::array<double, 25> two_over_pi = {
      0xa2f9836e4e44p0, 0x1529fc2757d1p0, 0xf534ddc0db62p0, 0x95993c439041p0, 0xfe5163abdebbp0,
      0xc561b7246e3ap0, 0x424dd2e00649p0, 0x2eea09d1921cp0, 0xfe1deb1cb129p0, 0xa73ee88235f5p0,
      0x2ebb4484e99cp0, 0x7026b45f7e41p0, 0x3991d6398353p0, 0x39f49c845f8bp0, 0xbdf9283b1ff8p0,
      0x97ffde05980fp0, 0xef2f118b5a0ap0, 0x6d1f6d367ecfp0, 0x27cb09b74f46p0, 0x3f669e5fea2dp0,
      0x7527bac7ebe5p0, 0xf17b3d0739f7p0, 0x8a5292ea6bfbp0, 0x5fb11f8d5d08p0, 0x56033046fc7bp0};
  constexpr std::size_t kept = 5;
  using F = typename M::F;
  // j as an integer, and the chunks j .. j + 4 by selects on its bits, the highest first.
  auto exponent = m.from_bits(((m.bits(x) << 1) >> 53) | m.i(0x4330000000000000)) - m.f(0x1p52 + 1023);
  auto j_float = m.floor((clamp_above(m, clamp_below(m, exponent, 54), 1023) - m.f(54)) * m.f(1.0 / 48));
  auto j = m.bits(j_float + m.f(0x1p52)) & m.i(31);
  std::array<F, two_over_pi.size()> chunk = make_constants(m, two_over_pi);
  std::size_t live = two_over_pi.size();
  for (std::size_t bit = 16; bit > 0; bit /= 2) {
    auto is_clear = (j & m.i(bit)) == m.i(0);
    std::size_t wanted = kept + bit - 1;
    if (wanted > live) wanted = live;
    for (std::size_t k = 0; k < wanted && k + bit < live; ++k) chunk[k] = m.select(is_clear, chunk[k], chunk[k + bit]);
    live = wanted;
  }
  // x 2^(-48 j), below 2^103; infinities stay.
  auto scaled = x * m.from_bits(m.i(Format<64>::one) - (((j << 5) + (j << 4)) << 52));
  std::array<F, kept> product = {x, x, x, x, x}, error = product;
  double weight = 0x1p-48;
  for (std::size_t k = 0; k < kept; ++k, weight *= 0x1p-48) {
    auto factor = scaled * m.f(weight);
    product[k] = factor * chunk[k];
    error[k] = m.fma(factor, chunk[k], -product[k]);
  }
  auto drop_turns = [&](F v) { return v - m.round_even(v * m.f(0.25)) * m.f(4); };
  auto s = two_sum<M>(drop_turns(product[0]), drop_turns(error[0]));
  auto low = s.error;
  auto add = [&](F v) {
    s = two_sum<M>(s.sum, v);
    low = low + s.error;
  };
  add(drop_turns(product[1]));
  add(error[1]);
  add(product[2]);
  auto rounder = m.f(Format<64>::rounder);
  auto rounded = s.sum + rounder;
  s.sum = s.sum - (rounded - rounder);
  add(product[3]);
  add(error[2]);
  low = low + (product[4] + error[3]);
  auto result = two_sum<M>(s.sum, low);
  return {result.sum, result.error, m.bits(rounded)};
}

}  // namespace burin::codegen::math
