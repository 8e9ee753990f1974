// erf_inv: M. Giles, "Approximating the erfinv function" (GPU Computing Gems, Jade edition, 2011): one polynomial per range
// of w = -log(1 - x^2), in w or sqrt(w).
// f32 takes it in the form that XLA gives it: samples of normal distributions are made with it and shall be JAX's, bit for
// bit. So w is -log1p(-x^2), the order of operations is XLA's, with the fma that XLA's x86 backend forms of each product
// followed by a sum, and the logarithm is XLA's too (the approximations of Cephes' log1p and logf) rather than the more
// accurate one of this folder. Near +-1 that loses digits, as 1 - x^2 does.
// f64 takes w = -log((1 - x)(1 + x)), as Giles does: 1 - |x| is exact where it is small, and the logarithm is ours. The
// ranges are Giles'; the polynomials, of degree 24, 20 and 18, interpolate at Chebyshev nodes and are within 2^-54, where
// his, two degrees lower, are off by 2^-52.
#pragma once
#include <array>
#include <cstddef>

#include "codegen/vector_math/log.h"

namespace burin::codegen::math {

/// log(x) for 0 <= x <= 2 or NaN as XLA computes it in f32.
template <class M>
typename M::F log_like_xla(M& m, typename M::F x) {
  auto [e, f] = reduce_log(m, x);
  auto square = f * f, cube = square * f;
  auto high = horner(m, f, {1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2});
  auto middle = horner(m, f, {-1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1});
  auto low = horner(m, f, {3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1});
  auto p = m.fma(m.fma(high, cube, middle), cube, low);
  auto sum = (f - square * m.f(0.5)) + m.fma(p, cube, e * m.f(-2.12194440e-4));
  return log_edges(m, m.fma(e, m.f(0.693359375), sum), x, m.f(0));
}

/// log(1 + x) for -1 <= x <= 0 or NaN as XLA computes it in f32: x - x^2/2 + x^3 N(x) / D(x) for small |x|, otherwise with 1 +
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
  auto p = x;
  if constexpr (M::width == 32) {
    auto w = -log1p_like_xla(m, x * -x);
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
    constexpr std::array<double, 25> central = {
        -3.5932028927020693e-22, 3.194015548136271e-21, 1.999259988861535e-20, -3.4734793888538036e-19,
        6.075050702072414e-19, 1.5510787009902526e-17, -1.2215637192404172e-16, -3.94018812230432e-17,
        6.521333511502239e-15, -4.0020031087558496e-14, -8.07192593899004e-14, 2.6305268312595183e-12,
        -1.2978805369932565e-11, -5.414303283919504e-11, 1.051223377050429e-09, -4.1126604371632185e-09,
        -2.907039127564132e-08, 4.23478816822246e-07, -1.3654691758785656e-06, -1.3882523393957483e-05,
        0.00018673420801981186, -0.0007407025341546431, -0.006033670871426851, 0.24015818242558834,
        1.6536545626831027};
    constexpr std::array<double, 21> middle = {
        7.680200479077053e-09, -1.5305397964152548e-08, -2.091453334773126e-08, 1.3158663683192966e-07,
        -2.4549818963339823e-07, -2.761716223816241e-08, 1.4815977874022539e-06, -3.985705945648173e-06,
        2.93257845538535e-06, 1.2465028224217455e-05, -4.732068066544697e-05, 6.828711739251955e-05,
        2.4031512865758357e-05, -0.0003550378137852452, 0.0009532893415794137, -0.0016882755354488555,
        0.00249144209795696, -0.0037512085082247342, 0.005370914553555033, 1.0052589676941655, 3.0838856104922208};
    constexpr std::array<double, 19> tail = {
        -1.9998735266531134e-11, 4.276040715485875e-11, 6.780047197701464e-11, -4.370229021372322e-10,
        1.319328078032574e-09, -3.4724215389819335e-09, 7.818027832507429e-09, -1.5253916541239166e-08,
        2.9020681908421832e-08, -6.75568672833795e-08, 2.2905210682908635e-07, -9.930291720091029e-07,
        4.526052665073511e-06, -1.9681770734145603e-05, 7.599527808324833e-05, -0.00021503011982556763,
        -0.00013871931837964221, 1.0103004648645453, 4.849906401408584};
    auto a = m.abs(x), w = -log(m, (m.f(1) - a) * (m.f(1) + a));
    auto is_central = w < m.f(6.25), is_middle = w < m.f(16);
    auto coefficient = [&](std::size_t k) {
      auto c = m.f(central[k]);
      if (k < middle.size()) c = m.select(is_central, c, m.f(middle[k]));
      if (k < tail.size()) c = m.select(is_middle, c, m.f(tail[k]));
      return c;
    };
    auto v = m.select(is_central, w - m.f(3.125), m.sqrt(w) - m.select(is_middle, m.f(3.25), m.f(5)));
    p = coefficient(0);
    for (std::size_t k = 1; k < tail.size(); ++k) p = m.fma(p, v, coefficient(k));
    for (std::size_t k = tail.size(); k < middle.size(); ++k) p = m.select(is_middle, m.fma(p, v, coefficient(k)), p);
    for (std::size_t k = middle.size(); k < central.size(); ++k) p = m.select(is_central, m.fma(p, v, coefficient(k)), p);
  }
  return m.select(m.abs(x) == m.f(1), x * m.f(infinity), p * x);
}

}  // namespace burin::codegen::math
