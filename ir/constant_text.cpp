#include "ir/constant_text.h"

#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/element_text.h"

namespace burin::ir {
namespace {

bool is_element(const Token& token) { return token.kind == Token::number || token.kind == Token::word; }

void read_element(const Lexer& in, const Token& token, Literal& literal, std::int64_t i) {
  if (!element_from_text(token.text, literal, i))
    in.fail(token, Msg::parse_element, quoted(token), name(literal.dtype()));
}

// One list of the axis `axis`, or one element behind the last; recursion is as deep as the rank.
void read_list(Lexer& in, Literal& literal, std::size_t axis, std::int64_t& next) {
  const Shape& shape = literal.shape();
  if (axis == shape.rank()) {
    if (!is_element(in.peek())) in.fail(in.peek(), Msg::parse_constant_shape, to_string(shape));
    read_element(in, in.take(), literal, next++);
    return;
  }
  if (!in.accept("[")) in.fail(in.peek(), Msg::parse_constant_shape, to_string(shape));
  for (std::int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0 && !in.accept(",")) in.fail(in.peek(), Msg::parse_constant_shape, to_string(shape));
    read_list(in, literal, axis + 1, next);
  }
  if (!in.accept("]")) in.fail(in.peek(), Msg::parse_constant_shape, to_string(shape));
}

}  // namespace

ConstantText read_constant(Lexer& in) {
  ConstantText text;
  text.start = in.peek();
  text.begin = in.position();
  if (in.at("dense") && in.at("<", 1)) in.fail(in.peek(), Msg::parse_abbreviated);
  if (!in.at("[")) {
    if (!is_element(in.peek())) in.fail_expected("a number or a list");
    in.take();
    text.num_elements = 1;
    text.splat = true;
  } else {
    std::size_t depth = 0;
    do {
      if (in.at("["))
        ++depth;
      else if (in.at("]"))
        --depth;
      else if (is_element(in.peek()))
        ++text.num_elements;
      else if (!in.at(","))
        in.fail_expected("a number, `,` or `]`");
      in.take();
    } while (depth > 0);
  }
  text.end = in.position();
  return text;
}

Literal make_constant(Lexer& in, const ConstantText& text, const Type& type) {
  const std::size_t after = in.position();
  in.set_position(text.begin);
  Literal literal;
  if (text.splat) {
    literal = Literal(Type{type.dtype, {}});
    read_element(in, text.start, literal, 0);
    literal = Literal::splat(type.shape, literal);
  } else {
    if (static_cast<std::int64_t>(text.num_elements) != type.size())
      in.fail(text.start, Msg::parse_constant_count, counted(text.num_elements, "element"), to_string(type), type.size());
    literal = Literal(type);
    std::int64_t next = 0;
    if (type.size() > 0) {
      read_list(in, literal, 0, next);
    } else {
      in.expect("[");
      if (!in.at("]")) in.fail(in.peek(), Msg::parse_empty_constant, to_string(type));
      in.take();
    }
    if (in.position() != text.end) in.fail(in.peek(), Msg::parse_constant_shape, to_string(type.shape));
  }
  in.set_position(after);
  return literal;
}

}  // namespace burin::ir
