#include "ir/kernel/cursor.h"

#include <charconv>

#include "ir/element_text.h"

namespace burin::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

// End of a word that starts at `i`; dots join parts ("params.w1") but two dots end it ("lo..hi").
std::size_t word_end(std::string_view text, std::size_t i) {
  while (i < text.size() && (is_word(text[i]) || (text[i] == '.' && i + 1 < text.size() && is_word(text[i + 1])))) ++i;
  return i;
}

// End of an unsigned number: 12, 1.5, 1e-5, 0x7FC00001.
std::size_t number_end(std::string_view text, std::size_t i) {
  const auto has = [&](std::size_t at, auto&& wanted) { return at < text.size() && wanted(text[at]); };
  if (text[i] == '0' && has(i + 1, [](char c) { return c == 'x'; })) {
    for (i += 2; has(i, is_word);) ++i;
    return i;
  }
  while (has(i, is_digit)) ++i;
  if (has(i, [](char c) { return c == '.'; }) && has(i + 1, is_digit))
    for (++i; has(i, is_digit);) ++i;
  if (has(i, [](char c) { return c == 'e' || c == 'E'; })) {
    const std::size_t sign = has(i + 1, [](char c) { return c == '+' || c == '-'; }) ? 1 : 0;
    if (has(i + 1 + sign, is_digit))
      for (i += 1 + sign; has(i, is_digit);) ++i;
  }
  return i;
}

}  // namespace

void Cursor::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    } else if (text_.substr(position_, 2) == "//") {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      continue;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
    ++position_;
  }
}

void Cursor::advance() {
  const std::uint32_t last_line = position_ == 0 ? 0 : line_;
  skip_blanks();
  token_ = Token{};
  token_.line = line_;
  token_.column = static_cast<std::uint32_t>(position_ - line_start_ + 1);
  token_.starts_line = line_ != last_line;
  if (position_ == text_.size()) return;
  const std::size_t start = position_;
  const char c = text_[start];
  std::size_t end = start + 1, skip = 0;
  if (is_word_start(c)) {
    token_.kind = TokenKind::word;
    end = word_end(text_, start);
  } else if (is_digit(c)) {
    token_.kind = TokenKind::number;
    end = number_end(text_, start);
  } else if ((c == '%' || c == '@') && end < text_.size() && is_word(text_[end])) {
    token_.kind = c == '%' ? TokenKind::value : TokenKind::symbol;
    end = word_end(text_, end);
    skip = 1;
  } else if (c == '"') {
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    token_.kind = TokenKind::text;
    token_.text = text_.substr(start);
    if (end >= text_.size() || text_[end] == '\n') fail_expected("a closing quote");
    position_ = end + 1;
    token_.text = text_.substr(start + 1, end - start - 1);
    return;
  } else {
    token_.kind = TokenKind::punctuation;
    for (std::string_view pair : {"..", ">=", "+=", "->"})
      if (text_.substr(start, 2) == pair) end = start + 2;
  }
  position_ = end;
  token_.text = text_.substr(start + skip, end - start - skip);
}

Token Cursor::next() {
  const Token token = token_;
  advance();
  return token;
}

bool Cursor::at(std::string_view word) const {
  return (token_.kind == TokenKind::word || token_.kind == TokenKind::punctuation) && token_.text == word;
}

bool Cursor::accept(std::string_view word) {
  if (!at(word)) return false;
  advance();
  return true;
}

void Cursor::expect(std::string_view word) {
  if (!accept(word)) fail_expected("`" + std::string(word) + "`");
}

Token Cursor::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) fail_expected(what);
  return next();
}

std::int64_t Cursor::expect_int(std::string_view what) {
  const bool negative = accept("-");
  if (token_.kind != TokenKind::number) fail_expected(what);
  std::int64_t value = 0;
  const char* const end = token_.text.data() + token_.text.size();
  const auto [stop, error] = std::from_chars(token_.text.data(), end, value);
  if (error != std::errc() || stop != end || value > std::int64_t{1} << 48) fail_expected(what);
  advance();
  return negative ? -value : value;
}

std::int64_t Cursor::expect_natural(std::string_view what) {
  if (at("-")) fail_expected(what);
  return expect_int(what);
}

DType Cursor::expect_dtype() {
  if (token_.kind == TokenKind::word)
    for (int i = 0; i < num_dtypes; ++i)
      if (token_.text == name(static_cast<DType>(i))) {
        advance();
        return static_cast<DType>(i);
      }
  fail_expected("a dtype");
}

Shape Cursor::expect_shape() {
  Shape shape;
  expect("[");
  while (!at("]")) {
    if (shape.rank() > 0) expect(",");
    if (shape.rank() == Shape::max_rank) fail_expected("at most 8 axes");
    shape.push_back(expect_natural("an extent"));
  }
  expect("]");
  return shape;
}

void Cursor::expect_element(Literal& literal, std::int64_t i) {
  const Token first = token_;
  std::string text = accept("-") ? "-" : "";
  if (token_.kind != TokenKind::number && token_.kind != TokenKind::word) fail_expected("a number");
  text += token_.text;
  if (!element_from_text(text, literal, i)) fail_here(first, Msg::kernel_bad_element, text, name(literal.dtype()));
  advance();
}

std::string Cursor::expect_quoted(std::string_view what) {
  const Token token = expect(TokenKind::text, what);
  const auto digit = [](char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string result;
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    const char c = token.text[i];
    if (c != '\\') {
      result += c;
      continue;
    }
    const char escaped = token.text[++i];  // a backslash is never last: the token would not have ended there
    if (escaped == 'x' && i + 2 < token.text.size() && digit(token.text[i + 1]) >= 0 && digit(token.text[i + 2]) >= 0) {
      result += static_cast<char>(16 * digit(token.text[i + 1]) + digit(token.text[i + 2]));
      i += 2;
    } else {
      result += escaped == 'n' ? '\n' : escaped;
    }
  }
  return result;
}

std::string Cursor::place(const Token& token) const {
  return std::string(file_) + ":" + std::to_string(token.line) + ":" + std::to_string(token.column);
}

void Cursor::fail_expected(std::string_view what) const {
  std::string_view text = token_.text.substr(0, token_.text.find('\n')).substr(0, 40);
  std::string found = token_.kind == TokenKind::end ? "the end of the text" : "`" + std::string(text) + "`";
  if (token_.kind == TokenKind::value) found.insert(1, "%");
  if (token_.kind == TokenKind::symbol) found.insert(1, "@");
  fail_here(token_, Msg::parse_expected, what, found);
}

}  // namespace burin::ir
