// Literals as text, so that a test can be a table: values(f32, "-0 1.5 nan") and text(result).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/literal.h"
#include "tests/support/errors.h"

namespace burin::test {

/// Rank 1, one element per word: decimal or hex numbers, inf, nan; "true"/"false" or 1/0 for bool. Floats are rounded
/// to the dtype, integers must fit it. "nan*50" is fifty of them.
ir::Literal values(DType dtype, std::string_view words);
/// The same elements under a shape.
ir::Literal values(DType dtype, const Shape& shape, std::string_view words);
/// Elements in row-major order, separated by blanks; floats shortest and exact, every NaN is "nan", bool is 0 or 1.
std::string text(const ir::Literal& literal);

/// The results of one op: types inferred, then evaluated.
std::vector<ir::Literal> apply_op(ir::Op op, std::span<const ir::Literal> operands,
                                  std::vector<ir::AttrValue> attributes, std::string_view where = "");
/// The first result: apply<Op::slice>({x}, {.start = {0}, .limit = {2}, .stride = {1}}).
template <ir::Op op>
ir::Literal apply(const std::vector<ir::Literal>& operands, const ir::attrs_of<op>& a = {},
                  std::string_view where = "") {
  std::vector<ir::AttrValue> attributes;
  ir::visit_attrs(a, [&](std::string_view, const auto& field) { attributes.emplace_back(field); });
  return apply_op(op, operands, std::move(attributes), where)[0];
}

}  // namespace burin::test
