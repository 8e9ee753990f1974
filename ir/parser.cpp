#include "ir/parser.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/message_ids.h"
#include "ir/builder.h"
#include "ir/constant_text.h"
#include "ir/lexer.h"

namespace burin::ir {
namespace {

constexpr std::size_t max_body_depth = 200;  // bodies in bodies; whoever walks them may recurse

// A function's place in the text and the bodies it names, found before anything in it is understood.
struct Outline {
  std::string_view name;
  std::size_t begin = 0;  // position of its first token
  std::vector<Token> references;
};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Parses one function; bodies that it names must be parsed before.
class FunctionParser {
 public:
  FunctionParser(Lexer& in, std::string_view file, const std::unordered_map<std::string_view, Body>& bodies)
      : in_(in), file_(file_name(file)), bodies_(bodies) {}

  Function parse() {
    in_.expect("func");
    const Token head = in_.expect(Token::symbol, "the function's name, as in `@main`");
    builder_.set_name(std::string(head.text));
    parse_args();
    parse_result_types();
    in_.expect("{");
    while (!in_.at("return")) {
      if (in_.at("}") || in_.peek().kind == Token::end) in_.fail(in_.peek(), Msg::parse_missing_return, head.text);
      parse_op();
    }
    std::vector<ValueId> results = parse_return();
    in_.expect("}");
    return builder_.finish(std::move(results));
  }

 private:
  void parse_args() {
    in_.expect("(");
    if (in_.accept(")")) return;
    do {
      const Token name = in_.expect(Token::value, "an argument, as in `%x: f32[2]`");
      in_.expect(":");
      const Type type = parse_type(in_);
      define(name, builder_.add_arg(type));
    } while (in_.accept(","));
    in_.expect(")");
  }

  void parse_result_types() {
    if (!in_.accept("->")) return;
    in_.expect("(");
    types_written_ = true;
    if (in_.accept(")")) return;
    do result_types_.push_back(parse_type(in_));
    while (in_.accept(","));
    in_.expect(")");
  }

  std::vector<ValueId> parse_return() {
    const Token token = in_.take();
    std::vector<Token> names;
    std::vector<ValueId> results;
    if (in_.peek().kind == Token::value && !in_.peek().first_on_line) do {
        names.push_back(in_.expect(Token::value, "a value"));
        results.push_back(lookup(names.back()));
      } while (in_.accept(","));
    if (!types_written_) return results;
    if (results.size() != result_types_.size())
      in_.fail(token, Msg::parse_return_count, results.size(), result_types_.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const Type& type = builder_.type(results[i]); type != result_types_[i])
        in_.fail(names[i], Msg::parse_return_type, names[i].text, to_string(type), to_string(result_types_[i]));
    return results;
  }

  void define(const Token& name, ValueId value) {
    if (!values_.emplace(name.text, value).second) in_.fail(name, Msg::parse_value_twice, name.text);
    if (!is_all_digits(name.text)) builder_.set_value_name(value, name.text);
  }

  ValueId lookup(const Token& name) {
    const auto found = values_.find(name.text);
    if (found == values_.end()) in_.fail(name, Msg::parse_unknown_value, name.text);
    return found->second;
  }

  void parse_op() {
    std::vector<Token> names;
    if (in_.peek().kind == Token::value) {
      do names.push_back(in_.expect(Token::value, "a value"));
      while (in_.accept(","));
      in_.expect("=");
    }
    const Token word = in_.expect(Token::word, "an op");
    Op op;
    if (!op_from_name(word.text, &op)) in_.fail(word, Msg::parse_unknown_op, word.text, similar_op(word.text));
    std::vector<ValueId> operands;
    if (in_.peek().kind == Token::value && !in_.peek().first_on_line) do
        operands.push_back(lookup(in_.expect(Token::value, "a value")));
      while (in_.accept(","));
    std::vector<AttrValue> attributes;
    if (op == Op::constant) {
      const ConstantText elements = read_constant(in_);
      if (!in_.at(":")) in_.fail(in_.peek(), Msg::parse_constant_type);
      const std::size_t colon = in_.position();
      in_.take();
      attributes.push_back(make_constant(in_, elements, parse_type(in_)));
      in_.set_position(colon);
    } else {
      attributes = parse_attributes(op, word, info(op).attributes);
    }
    const std::size_t num_before = builder_.function().num_values();
    const ValueId first = append(op, word, operands, std::move(attributes));
    const std::size_t num_results = builder_.function().num_values() - num_before;
    if (names.size() != num_results) in_.fail(word, Msg::parse_result_count, word.text, num_results, names.size());
    for (std::size_t i = 0; i < names.size(); ++i) define(names[i], ValueId{first.index + i});
    parse_written_types(names, first);
  }

  ValueId append(Op op, const Token& word, std::span<const ValueId> operands, std::vector<AttrValue> attributes) {
    std::vector<Type> types;
    for (ValueId operand : operands) types.push_back(builder_.type(operand));
    try {
      infer_types(op, types, attributes);
    } catch (const Error& error) {
      throw Error(in_.prefix(word) + error.what());
    }
    builder_.set_location({.file = file_, .line = word.line, .function = "", .scope = ""});
    return builder_.append(op, operands, std::move(attributes));
  }

  void parse_written_types(const std::vector<Token>& names, ValueId first) {
    if (names.empty() || !in_.accept(":")) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) in_.expect(",");
      const Token at = in_.peek();
      const Type written = parse_type(in_), &type = builder_.type(ValueId{first.index + i});
      if (written != type) in_.fail(at, Msg::parse_result_type, names[i].text, to_string(type), to_string(written));
    }
  }

  static std::string similar_op(std::string_view text) {
    std::vector<std::string_view> all;
    for (int i = 0; i < num_ops; ++i) all.push_back(name(static_cast<Op>(i)));
    return suggestion(text, all);
  }

  std::vector<AttrValue> parse_attributes(Op op, const Token& word, std::span<const AttrInfo> rows) {
    std::vector<AttrValue> values;
    for (const AttrInfo& row : rows) values.push_back(empty_value(row.kind));
    std::vector<bool> written(rows.size(), false);
    if (in_.accept("{") && !in_.accept("}")) {
      do {
        const Token key = in_.expect(Token::word, "an attribute");
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const AttrInfo& r) { return r.name == key.text; });
        if (row == rows.end()) in_.fail(key, Msg::parse_unknown_attribute, name(op), key.text, known(rows));
        const auto i = static_cast<std::size_t>(row - rows.begin());
        if (written[i]) in_.fail(key, Msg::parse_attribute_twice, key.text);
        written[i] = true;
        in_.expect("=");
        values[i] = parse_value(row->kind);
      } while (in_.accept(","));
      in_.expect("}");
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!written[i] && !is_default(values[i])) in_.fail(word, Msg::parse_attribute_missing, name(op), rows[i].name);
    return values;
  }

  static std::string known(std::span<const AttrInfo> rows) {
    if (rows.empty()) return "none";
    std::string text;
    for (const AttrInfo& row : rows) text += (text.empty() ? "" : ", ") + std::string(row.name);
    return text;
  }

  static AttrValue empty_value(AttrKind kind) {
    switch (kind) {
      case AttrKind::Int: return Int{0};
      case AttrKind::Ints: return Ints{};
      case AttrKind::DType: return DType{};
      case AttrKind::Str: return Str{};
      case AttrKind::Literal: return Literal{};
      case AttrKind::Body: return Body{};
      case AttrKind::IndexMode: return IndexMode{};
      case AttrKind::Combine: return Combine{};
    }
    return Int{0};
  }

  AttrValue parse_value(AttrKind kind) {
    switch (kind) {
      case AttrKind::Int: return in_.expect_int("an integer");
      case AttrKind::Ints: return parse_ints();
      case AttrKind::DType: return parse_dtype(in_);
      case AttrKind::Str: return in_.expect_string("a string");
      case AttrKind::Body: return parse_body();
      case AttrKind::IndexMode: return parse_enumerator<IndexMode>(2);
      case AttrKind::Combine: return parse_enumerator<Combine>(5);
      case AttrKind::Literal: break;  // read_constant
    }
    return Literal{};
  }

  Ints parse_ints() {
    Ints values;
    in_.expect("[");
    if (in_.accept("]")) return values;
    do values.push_back(in_.expect_int("an integer"));
    while (in_.accept(","));
    in_.expect("]");
    return values;
  }

  Body parse_body() { return bodies_.at(in_.expect(Token::symbol, "a body, as in `@inner`").text); }

  template <class E>
  E parse_enumerator(int n) {
    std::string names;
    for (int i = 0; i < n; ++i) {
      if (in_.accept(name(static_cast<E>(i)))) return static_cast<E>(i);
      names += fmt::format("{}`{}`", i == 0 ? "" : i == n - 1 ? " or " : ", ", name(static_cast<E>(i)));
    }
    in_.fail_expected(names);
  }

  Lexer& in_;
  std::string file_;
  const std::unordered_map<std::string_view, Body>& bodies_;
  Builder builder_;
  std::unordered_map<std::string_view, ValueId> values_;
  std::vector<Type> result_types_;
  bool types_written_ = false;
};

// Splits the text into functions by their braces.
std::vector<Outline> outline(Lexer& in) {
  std::vector<Outline> functions;
  std::unordered_set<std::string_view> names;
  while (in.peek().kind != Token::end) {
    Outline function;
    function.begin = in.position();
    in.expect("func");
    const Token name = in.expect(Token::symbol, "the function's name, as in `@main`");
    if (!names.insert(name.text).second) in.fail(name, Msg::parse_function_twice, name.text);
    function.name = name.text;
    std::size_t depth = 0;
    do {
      if (in.peek().kind == Token::end) in.fail_expected(depth == 0 ? "`{`" : "`}`");
      if (depth == 0 && in.at("func")) in.fail_expected("`{`");
      if (depth == 0 && in.at("}")) in.fail_expected("`{`");
      if (in.peek().kind == Token::symbol) function.references.push_back(in.peek());
      if (in.at("{")) ++depth;
      if (in.at("}")) --depth;
      in.take();
    } while (depth > 0 || !in.at_previous("}"));
    functions.push_back(std::move(function));
  }
  if (functions.empty()) in.fail(in.peek(), Msg::parse_no_function);
  return functions;
}

/// Indices of the functions, each behind the bodies it names. Throws for unknown names, cycles and great depth.
std::vector<std::size_t> bodies_first(const Lexer& in, const std::vector<Outline>& functions) {
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < functions.size(); ++i) by_name.emplace(functions[i].name, i);
  enum State : char { fresh, open, done };
  std::vector<State> states(functions.size(), fresh);
  std::vector<std::size_t> depths(functions.size(), 0), order;
  struct Frame {
    std::size_t function, next_reference;
  };
  for (std::size_t root = 0; root < functions.size(); ++root) {
    if (states[root] != fresh) continue;
    std::vector<Frame> stack{{root, 0}};
    states[root] = open;
    while (!stack.empty()) {
      const auto [at, reference] = stack.back();
      if (reference == functions[at].references.size()) {
        states[at] = done;
        order.push_back(at);
        stack.pop_back();
        if (!stack.empty()) {
          std::size_t& depth = depths[stack.back().function];
          depth = std::max(depth, depths[at] + 1);
        }
        continue;
      }
      ++stack.back().next_reference;
      const Token& token = functions[at].references[reference];
      const auto found = by_name.find(token.text);
      if (found == by_name.end()) in.fail(token, Msg::parse_unknown_function, token.text);
      const std::size_t body = found->second;
      if (states[body] == open) in.fail(token, Msg::parse_body_cycle, token.text);
      if (states[body] == done) depths[at] = std::max(depths[at], depths[body] + 1);
      if (depths[at] > max_body_depth || stack.size() > max_body_depth)
        in.fail(token, Msg::parse_body_depth, max_body_depth);
      if (states[body] == fresh) {
        states[body] = open;
        stack.push_back({body, 0});
      }
    }
  }
  return order;
}

}  // namespace

DType parse_dtype(Lexer& in) {
  const Token token = in.expect(Token::word, "a dtype");
  std::vector<std::string_view> all;
  for (int i = 0; i < num_dtypes; ++i) {
    if (name(static_cast<DType>(i)) == token.text) return static_cast<DType>(i);
    all.push_back(name(static_cast<DType>(i)));
  }
  in.fail(token, Msg::parse_unknown_dtype, token.text, suggestion(token.text, all));
}

Type parse_type(Lexer& in) {
  const Token start = in.peek();
  Type type{parse_dtype(in), {}};
  in.expect("[");
  if (in.accept("]")) return type;
  auto bytes = static_cast<std::int64_t>(size_of(type.dtype));
  bool overflow = false;
  do {
    const Token token = in.peek();
    const std::int64_t extent = in.expect_int("an extent");
    if (extent < 0) in.fail(token, Msg::parse_negative_extent, extent);
    if (type.rank() == Shape::max_rank) in.fail(token, Msg::parse_rank, Shape::max_rank);
    type.shape.push_back(extent);
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  } while (in.accept(","));
  in.expect("]");
  if (overflow && std::find(type.shape.begin(), type.shape.end(), 0) == type.shape.end())
    in.fail(start, Msg::parse_type_size, to_string(type));
  return type;
}

Function parse(std::string_view text, std::string_view file) {
  Lexer in(text, file);
  const std::vector<Outline> functions = outline(in);
  std::unordered_map<std::string_view, Body> bodies;
  Function first;
  for (std::size_t i : bodies_first(in, functions)) {
    in.set_position(functions[i].begin);
    Function parsed = FunctionParser(in, file, bodies).parse();
    if (i == 0)
      first = std::move(parsed);
    else
      bodies.emplace(functions[i].name, std::make_shared<const Function>(std::move(parsed)));
  }
  return first;
}

}  // namespace burin::ir
