// When two ways of computing one Function agree.
#pragma once
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace tools {

/// How far results may be off: |found - expected| <= tolerance * max(1, largest finite |expected| of the result).
/// 0: the same bits, NaN aside, which equals NaN.
struct Agreement {
  double tolerance = 0;
  std::string reason;  // why not bitwise: "exp, reduce_sum"
};
/// Bitwise unless f, or a body in it, sums floats or takes a function that is not exactly rounded (64 roundings of its
/// coarsest float dtype, 8 of a 16-bit one); `excess_precision`: arithmetic of 16 bits may be done in f32, which is
/// then a reason too.
Agreement agreement_of(const burin::ir::Function& f, bool excess_precision);

/// "" or the first difference, "result 1[2,3]: 0.5 instead of 0.25 (tolerance 7.6e-06)".
std::string first_difference(const std::vector<burin::ir::Literal>& found,
                             const std::vector<burin::ir::Literal>& expected, double tolerance);

}  // namespace tools
