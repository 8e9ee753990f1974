// Tokens of the loop level's text, with the place of each for error messages. Shared by the parsers of Kernel and Program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/literal.h"
#include "ir/message.h"

namespace burin::ir {

enum class TokenKind : std::uint8_t { word, number, value, symbol, text, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;       // value: without %, symbol: without @, text: between the quotes, escapes as written
  std::uint32_t line = 1, column = 1;
  bool starts_line = false;    // first on its line
};

/// One token of look-ahead. Blanks, line ends and comments (`//` to the end of the line) separate tokens.
class Cursor {
 public:
  Cursor(std::string_view text, std::string_view file) : text_(text), file_(file) { advance(); }

  const Token& peek() const { return token_; }
  Token next();
  /// Whether the next token is this word or punctuation.
  bool at(std::string_view word) const;
  /// Also takes it.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  Token expect(TokenKind kind, std::string_view what);
  /// A whole number between -2^48 and 2^48, which keeps sums and products of a few of them exact in 64 bits.
  std::int64_t expect_int(std::string_view what);
  std::int64_t expect_natural(std::string_view what);
  DType expect_dtype();
  Shape expect_shape();
  Type expect_type() { const DType dtype = expect_dtype(); return {dtype, expect_shape()}; }
  /// Stores a number, true, false, inf or nan into element i.
  void expect_element(Literal& literal, std::int64_t i);
  std::string expect_quoted(std::string_view what);

  /// "file:line:column" of a token.
  std::string place(const Token& token) const;
  [[noreturn]] void fail_expected(std::string_view what) const;
  template <class... Args>
  [[noreturn]] void fail_here(const Token& token, Msg id, const Args&... args) const {
    throw_message(id, place(token) + ": " + fmt::vformat(message_text(id), fmt::make_format_args(args...)), "");
  }

 private:
  void advance();
  void skip_blanks();

  std::string_view text_, file_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
  Token token_;
};

}  // namespace burin::ir
