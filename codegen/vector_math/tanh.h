// tanh.
#pragma once
#include "codegen/vector_math/exp.h"

namespace burin::codegen::math {

/// By power of the distance to the middle of an interval, the coefficients of 16 intervals of tanh_step, the first around 0: there tanh is odd,
/// and as good near 0 as elsewhere. The step is one for which the values in the middle lie next to f32's.
inline constexpr double tanh_step = 0x1.414a3cp-1, tanh_steps_per_one = 0x1.97f498p0;
inline constexpr std::array<std::array<double, 16>, 8> tanh_coefficients = {{
    {0, 0x1.1cd8d6p-1, 0x1.b30aa6p-1, 0x1.e8d0f2p-1, 0x1.f9484ap-1, 0x1.fe1376p-1, 0x1.ff7368p-1, 0x1.ffd7e8p-1,
     0x1.fff492p-1, 0x1.fffcbep-1, 0x1.ffff12p-1, 0x1.ffffbcp-1, 0x1.ffffecp-1, 0x1.fffffap-1, 0x1.fffffep-1, 1},
    {1, 0x1.618718p-1, 0x1.1cb2cep-2, 0x1.6a8aeep-4, 0x1.ab1b7cp-6, 0x1.eb9d16p-8, 0x1.1909b6p-9, 0x1.40b3bp-11,
     0x1.6dc36p-13, 0x1.a1173cp-15, 0x1.db9996p-17, 0x1.0f27a8p-18, 0x1.352ffp-20, 0x1.608dbep-22, 0x1.9200a6p-24,
     0x1.ca6314p-26},
    {-0x1.7cd56ap-23, -0x1.895d7cp-2, -0x1.e3cfc4p-3, -0x1.5a2042p-4, -0x1.a580e2p-6, -0x1.e9c432p-8,
     -0x1.18bc92p-9, -0x1.409a9ep-11, -0x1.6dbb44p-13, -0x1.a114a4p-15, -0x1.db98cap-17, -0x1.0f278ep-18,
     -0x1.352ffp-20, -0x1.608dc8p-22, -0x1.9200b4p-24, -0x1.ca6324p-26},
    {-0x1.55528cp-2, -0x1.0d7bf6p-6, 0x1.ba961cp-4, 0x1.a335f8p-5, 0x1.119a96p-6, 0x1.440dfcp-8, 0x1.758322p-10,
     0x1.ab35ep-12, 0x1.e78e96p-14, 0x1.160a3ap-15, 0x1.3d0f62p-17, 0x1.6989b4p-19, 0x1.9c3fcep-21, 0x1.d61258p-23,
     0x1.0c0078p-24, 0x1.31976ep-26},
    {-0x1.b815cep-13, 0x1.191156p-3, -0x1.abcdc6p-7, -0x1.531184p-6, -0x1.030a2cp-7, -0x1.3f2514p-9,
     -0x1.73dfc2p-11, -0x1.aaa50ep-13, -0x1.e7562ep-15, -0x1.15fbcp-16, -0x1.3d04ap-18, -0x1.697f5p-20,
     -0x1.9c349p-22, -0x1.d605b8p-24, -0x1.0bf94ep-25, -0x1.318f46p-27},
    {0x1.14e5a8p-3, -0x1.c5bcd8p-5, -0x1.3393ep-6, 0x1.31b97p-8, 0x1.70e8d2p-9, 0x1.ef1a02p-11, 0x1.26f0dcp-12,
     0x1.547b28p-14, 0x1.859908p-16, 0x1.bcaf6ep-18, 0x1.fb334cp-20, 0x1.21317cp-21, 0x1.49c34ap-23, 0x1.78047cp-25,
     0x1.acc216p-27, 0x1.e8e544p-29},
    {-0x1.07338ep-7, -0x1.8c259p-6, 0x1.e6c9a2p-7, 0x1.684754p-11, -0x1.728a8cp-11, -0x1.3812ap-12, -0x1.87282cp-14,
     -0x1.c9be62p-16, -0x1.06e3d6p-17, -0x1.2c6304p-19, -0x1.56b8c2p-21, -0x1.86db82p-23, -0x1.bdb33ep-25,
     -0x1.fc3878p-27, -0x1.21c0aep-28, -0x1.4a64b8p-30},
    {-0x1.43eaeep-5, 0x1.ca6ff2p-6, -0x1.18fe58p-8, -0x1.39c3cep-10, 0x1.3a99p-14, 0x1.33fb4p-14, 0x1.aea2fcp-16,
     0x1.02d8fcp-17, 0x1.2b865ep-19, 0x1.56f5e6p-21, 0x1.8786f8p-23, 0x1.be97d4p-25, 0x1.fd47dep-27, 0x1.225d2ap-28,
     0x1.4b17b6p-30, 0x1.79883cp-32}
}};

/// f32: a polynomial of degree 7 per interval, up to where tanh is 1. f64: (exp(2|x|) - 1) / (exp(2|x|) + 1).
template <class M>
typename M::F tanh(M& m, typename M::F x) {
  auto a = m.abs(x);
  if constexpr (M::width == 32) {
    auto b = clamp_above(m, a, 9.25);
    auto rounder = m.f(FormatOf<M>::rounder);
    auto rounded = m.fma(b, m.f(tanh_steps_per_one), rounder);
    auto r = m.fma(rounded - rounder, m.f(-tanh_step), b);
    auto interval = m.bits(rounded);
    auto sum = m.pick(tanh_coefficients.back(), interval);
    for (std::size_t k = tanh_coefficients.size() - 1; k-- > 0;) sum = m.fma(sum, r, m.pick(tanh_coefficients[k], interval));
    return m.copysign(sum, x);
  } else {
    auto b = clamp_above(m, a, 19.5);
    auto t = expm1_clamped(m, b + b);
    return m.copysign(t / (t + m.f(2)), x);
  }
}

}  // namespace burin::codegen::math
