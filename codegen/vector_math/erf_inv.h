// erf_inv: M. Giles, "Approximating the erfinv function" (GPU Computing Gems, Jade edition, 2011), in the form XLA
// gives it: w = -log1p(-x^2), one polynomial in w or sqrt(w) per range of w. Samples of normal distributions are made
// with it and shall be JAX's. So the order of operations is XLA's, with the fma that XLA's x86 backend forms of each
// product followed by a sum, and the logarithm is XLA's too (the approximations of Cephes' log1p and logf) rather than
// the more accurate log1p of this folder. In f32 the results are JAX's bit for bit. Near +-1 the formula loses
// accuracy, as 1 - x^2 does.
#pragma once
#include <array>
#include <cstddef>

#include "codegen/vector_math/log.h"

namespace burin::codegen::math {

/// log(x) for 0 <= x <= 2 or NaN as XLA computes it in f32; in f64 XLA's is accurate, and so is ours.
template <class M>
typename M::F log_like_xla(M& m, typename M::F x) {
  if constexpr (M::width == 32) {
    auto [e, f] = reduce_log(m, x);
    auto square = f * f, cube = square * f;
    auto high = horner(m, f, {1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2});
    auto middle = horner(m, f, {-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1});
    auto low = horner(m, f, {3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1});
    auto p = m.fma(m.fma(high, cube, middle), cube, low);
    auto sum = (f - square * m.f(0.5)) + m.fma(p, cube, e * m.f(-2.12194440e-4));
    return log_edges(m, m.fma(e, m.f(0.693359375), sum), x, m.f(0));
  } else {
    return log(m, x);
  }
}

/// log(1 + x) for -1 <= x <= 0 or NaN as XLA computes it: x - x^2/2 + x^3 N(x) / D(x) for small |x|, otherwise with 1 +
/// x rounded.
template <class M>
typename M::F log1p_like_xla(M& m, typename M::F x) {
  auto numerator = horner(
      m, x,
      {2.0039553499201281259648e1, 5.7112963590585538103336e1, 6.0949667980987787057556e1, 2.9911919328553073277375e1,
       6.5787325942061044846969e0, 4.9854102823193375972212e-1, 4.5270000862445199635215e-5});
  auto denominator = horner(m, x,
                            {6.0118660497603843919306e1, 2.1642788614495947685003e2, 3.0909872225312059774938e2,
                             2.2176239823732856465394e2, 8.3047565967967209469434e1, 1.5062909083469192043167e1, 1.0});
  auto square = x * x;
  auto near = x + m.fma(square, m.f(-0.5), square * x * (numerator / denominator));
  return m.select(x > m.f(1 - 0x1.6a09e667f3bcdp0), near, log_like_xla(m, x + m.f(1)));
}

template <class M>
typename M::F erf_inv(M& m, typename M::F x) {
  auto w = -log1p_like_xla(m, x * -x);
  auto p = w;
  if constexpr (M::width == 32) {
    constexpr std::array<float, 9> central = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                              -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                              -0.00417768164f,  0.246640727f,    1.50140941f};
    constexpr std::array<float, 9> tail = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                           -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                           0.00943887047f,   1.00167406f,     2.83297682f};
    auto is_central = w < m.f(5);
    auto v = m.select(is_central, w - m.f(2.5), m.sqrt(w) - m.f(3));
    p = m.select(is_central, m.f(central[0]), m.f(tail[0]));
    for (std::size_t k = 1; k < 9; ++k) p = m.fma(p, v, m.select(is_central, m.f(central[k]), m.f(tail[k])));
  } else {
    constexpr std::array<double, 23> central = {
        -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
        -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
        -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
        -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
    constexpr std::array<double, 19> middle = {
        2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
        0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
        0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
    constexpr std::array<double, 17> tail = {
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
        7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
        2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
        7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
        4.8499064014085844221};
    auto is_central = w < m.f(6.25), is_middle = w < m.f(16);
    auto coefficient = [&](std::size_t k) {
      auto c = m.f(central[k]);
      if (k < 19) c = m.select(is_central, c, m.f(middle[k]));
      if (k < 17) c = m.select(is_middle, c, m.f(tail[k]));
      return c;
    };
    auto v = m.select(is_central, w - m.f(3.125), m.sqrt(w) - m.select(is_middle, m.f(3.25), m.f(5)));
    p = coefficient(0);
    for (std::size_t k = 1; k < 17; ++k) p = m.fma(p, v, coefficient(k));
    for (std::size_t k = 17; k < 19; ++k) p = m.select(is_middle, m.fma(p, v, coefficient(k)), p);
    for (std::size_t k = 19; k < 23; ++k) p = m.select(is_central, m.fma(p, v, coefficient(k)), p);
  }
  return m.select(m.abs(x) == m.f(1), x * m.f(infinity), p * x);
}

}  // namespace burin::codegen::math
