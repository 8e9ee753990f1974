// The reference evaluator: what a Function means, as plainly as it can be said. Slow on purpose.
#pragma once
#include <span>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::ir {

/// The results of f. Argument types must be f's. Throws Error for an index out of range under mode `error`.
std::vector<Literal> evaluate(const Function& f, std::span<const Literal> args);
/// The results of one op.
std::vector<Literal> evaluate_op(Op op, std::span<const Literal> operands, std::span<const AttrValue> attributes,
                                 std::span<const Type> result_types, std::string_view where = "");

/// One element of an elementwise or compare op, rounded once to `result_dtype`. Floats travel as double (a signaling NaN
/// becomes a quiet one), integers and bools as 64 bits.
struct Scalar {
  DType dtype = DType::f32;
  double f = 0;         // value when dtype is a float
  std::uint64_t i = 0;  // zero- or sign-extended value otherwise
};
Scalar evaluate_scalar(Op op, std::span<const Scalar> operands, DType result_dtype);
Scalar load_scalar(const Literal& literal, std::int64_t index);
void store_scalar(Literal& literal, std::int64_t index, const Scalar& value);

}  // namespace burin::ir
