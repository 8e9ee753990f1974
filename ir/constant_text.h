// The elements of a constant in IR text. Its type follows them, so they are read first and understood after it.
#pragma once
#include <vector>

#include "ir/lexer.h"
#include "ir/literal.h"

namespace burin::ir {

/// The tokens of `0.5` or `[[1, 2], [3, 4]]`: lists as nested, elements not yet read.
struct ConstantText {
  Token start;
  std::size_t begin = 0, end = 0;  // positions of its tokens
  std::size_t num_elements = 0;
  bool splat = false;
};

/// Takes the tokens; brackets are balanced afterwards. Throws Error, naming the flag, for an abbreviated constant.
ConstantText read_constant(Lexer& in);
/// The literal of `type`; leaves the position of `in` alone. Memory grows with the text, not with the type.
Literal make_constant(Lexer& in, const ConstantText& text, const Type& type);

/// "f32", "bool". Throws Error for an unknown one.
DType parse_dtype(Lexer& in);
/// "f32[2,3]". Throws Error for more than 8 axes, negative extents, and more than 63 bits of bytes.
Type parse_type(Lexer& in);

}  // namespace burin::ir
