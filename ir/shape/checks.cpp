#include "ir/shape/checks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/counted.h"
#include "base/message_ids.h"

namespace burin::ir::shape {

std::string list(const Ints& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

void check_axis(const Operands& in, std::string_view attribute, Int axis, const Type& of) {
  if (axis < 0 || axis >= static_cast<Int>(of.rank()))
    in.fail(Msg::axis_out_of_range, name(in.op), attribute, axis, to_string(of), counted(of.rank(), "axis", "axes"));
}

void check_axes(const Operands& in, std::string_view attribute, const Ints& axes, const Type& of, bool sorted) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check_axis(in, attribute, axes[i], of);
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i))
      in.fail(Msg::axis_repeated, name(in.op), attribute, axes[i]);
  }
  if (sorted && !std::is_sorted(axes.begin(), axes.end()))
    in.fail(Msg::axes_not_increasing, name(in.op), attribute, list(axes));
}

void check_length(const Operands& in, std::string_view attribute, const Ints& values, const Type& of) {
  if (values.size() != of.rank())
    in.fail(Msg::one_per_axis, name(in.op), attribute, counted(values.size(), "entry", "entries"), to_string(of),
            counted(of.rank(), "axis", "axes"));
}

Shape checked_shape(const Operands& in, std::string_view attribute, const Ints& extents) {
  if (extents.size() > Shape::max_rank)
    in.fail(Msg::attribute_rank, name(in.op), attribute, extents.size(), Shape::max_rank);
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (extents[i] < 0) in.fail(Msg::attribute_extent, name(in.op), attribute, i, extents[i]);
  const Shape shape(extents);
  Int product = 1;
  bool overflow = false;
  for (Int extent : extents) overflow |= __builtin_mul_overflow(product, extent, &product);
  if (overflow && std::find(extents.begin(), extents.end(), 0) == extents.end())
    in.fail(Msg::attribute_size, name(in.op), attribute, to_string(shape));
  return shape;
}

void check_same_dtype(const Operands& in, std::size_t a, std::size_t b) {
  if (in[a].dtype != in[b].dtype) in.fail(Msg::dtypes_differ, name(in.op), a, to_string(in[a]), b, to_string(in[b]));
}

void check_same_shape(const Operands& in, std::size_t a, std::size_t b) {
  if (in[a].shape != in[b].shape) in.fail(Msg::shapes_differ, name(in.op), a, to_string(in[a]), b, to_string(in[b]));
}

void check_same_rank(const Operands& in, std::size_t a, std::size_t b) {
  if (in[a].rank() != in[b].rank()) in.fail(Msg::ranks_differ, name(in.op), a, to_string(in[a]), b, to_string(in[b]));
}

void check_integer(const Operands& in, std::size_t i, std::string_view what) {
  if (!is_int(in[i].dtype)) in.fail(Msg::expected_integer, name(in.op), what, to_string(in[i]), i);
}

}  // namespace burin::ir::shape
