// fn(x) or fn(x, y) on a machine: every routine of this folder behind one call.
#pragma once
#include "codegen/vector_math/erf.h"
#include "codegen/vector_math/erf_inv.h"
#include "codegen/vector_math/exp.h"
#include "codegen/vector_math/functions.h"
#include "codegen/vector_math/hyperbolic.h"
#include "codegen/vector_math/inverse_trig.h"
#include "codegen/vector_math/log.h"
#include "codegen/vector_math/pow.h"
#include "codegen/vector_math/root.h"
#include "codegen/vector_math/tanh.h"
#include "codegen/vector_math/trig.h"

namespace burin::codegen::math {

/// y is ignored by functions of one argument.
template <class M>
typename M::F apply(M& m, MathFn fn, typename M::F x, [[maybe_unused]] typename M::F y) {
  switch (fn) {
#define BURIN_ONE(name) \
  case MathFn::name:    \
    return name(m, x);
#define BURIN_TWO(name) \
  case MathFn::name:    \
    return name(m, x, y);
    BURIN_MATH_FUNCTIONS(BURIN_ONE, BURIN_TWO)
#undef BURIN_ONE
#undef BURIN_TWO
  }
  return x;
}

}  // namespace burin::codegen::math
