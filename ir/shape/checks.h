// Checks that several type rules share. Each throws the user's error itself: the op first, then what, expected, found.
#pragma once
#include <string>

#include "ir/shape/rules.h"

namespace burin::ir::shape {

/// "[0, 2]".
std::string list(const Ints& values);

/// `attribute` lists axes of `of`: each in range, none twice, and increasing if `sorted`.
void check_axes(const Operands& in, std::string_view attribute, const Ints& axes, const Type& of, bool sorted = false);
void check_axis(const Operands& in, std::string_view attribute, Int axis, const Type& of);
/// `attribute` has one entry per axis of `of`.
void check_length(const Operands& in, std::string_view attribute, const Ints& values, const Type& of);
/// The attribute as a Shape: at most 8 extents, none negative, their product countable.
Shape checked_shape(const Operands& in, std::string_view attribute, const Ints& extents);
/// Operand `b` has the dtype (shape, rank) of operand `a`.
void check_same_dtype(const Operands& in, std::size_t a, std::size_t b);
void check_same_shape(const Operands& in, std::size_t a, std::size_t b);
void check_same_rank(const Operands& in, std::size_t a, std::size_t b);
/// Operand i is an integer (a start, an index).
void check_integer(const Operands& in, std::size_t i, std::string_view what);

}  // namespace burin::ir::shape
