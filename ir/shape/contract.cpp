#include <algorithm>

#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {
namespace {

// Sums of products of `narrow` fit the kind of `wide`: the same dtype, or one that has every value of `narrow`.
bool may_give(DType narrow, DType wide) {
  if (narrow == wide) return true;
  if (is_float(narrow)) return is_float(wide) && size_of(wide) > size_of(narrow);
  if (is_signed_int(narrow)) return is_signed_int(wide) && size_of(wide) > size_of(narrow);
  return is_unsigned_int(narrow) && is_int(wide) && size_of(wide) > size_of(narrow);
}

bool contains(const Ints& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<Int>(axis)) != axes.end();
}

void check_pairs(const Operands& in, std::string_view what, const Ints& lhs, const Ints& rhs) {
  if (lhs.size() != rhs.size())
    in.fail(Msg::dot_axis_counts, name(in.op), what, counted(lhs.size(), "axis", "axes"), to_string(in[0]),
            counted(rhs.size(), "axis", "axes"), to_string(in[1]));
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    const Int left = in[0].shape[static_cast<std::size_t>(lhs[i])],
              right = in[1].shape[static_cast<std::size_t>(rhs[i])];
    if (left != right)
      in.fail(Msg::dot_sizes, name(in.op), what, to_string(in[0]), lhs[i], left, to_string(in[1]), rhs[i], right);
  }
}

void check_disjoint(const Operands& in, std::string_view side, const Ints& batch, const Ints& contracting,
                    const Type& of) {
  for (Int axis : contracting)
    if (contains(batch, static_cast<std::size_t>(axis)))
      in.fail(Msg::dot_axis_twice, name(in.op), axis, side, to_string(of));
}

}  // namespace

Types infer(Tag<Op::dot_general>, const Operands& in, const attrs::dot_general& a) {
  check_axes(in, "lhs_batch", a.lhs_batch, in[0]);
  check_axes(in, "rhs_batch", a.rhs_batch, in[1]);
  check_axes(in, "lhs_contract", a.lhs_contract, in[0]);
  check_axes(in, "rhs_contract", a.rhs_contract, in[1]);
  check_disjoint(in, "lhs", a.lhs_batch, a.lhs_contract, in[0]);
  check_disjoint(in, "rhs", a.rhs_batch, a.rhs_contract, in[1]);
  check_pairs(in, "batch", a.lhs_batch, a.rhs_batch);
  check_pairs(in, "contracting", a.lhs_contract, a.rhs_contract);
  check_same_dtype(in, 0, 1);
  if (!may_give(in[0].dtype, a.dtype)) in.fail(Msg::dot_result_dtype, name(in.op), name(in[0].dtype), name(a.dtype));
  Ints extents;
  for (Int axis : a.lhs_batch) extents.push_back(in[0].shape[static_cast<std::size_t>(axis)]);
  for (std::size_t i = 0; i < in[0].rank(); ++i)
    if (!contains(a.lhs_batch, i) && !contains(a.lhs_contract, i)) extents.push_back(in[0].shape[i]);
  for (std::size_t i = 0; i < in[1].rank(); ++i)
    if (!contains(a.rhs_batch, i) && !contains(a.rhs_contract, i)) extents.push_back(in[1].shape[i]);
  if (extents.size() > Shape::max_rank) in.fail(Msg::result_rank, name(in.op), extents.size(), Shape::max_rank);
  return {Type{a.dtype, Shape(extents)}};
}

}  // namespace burin::ir::shape
