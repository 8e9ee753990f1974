// Tokens of IR text (Functions, Kernels, Programs) and errors that say where: "x.ir:3:14: expected `=`, found `+`".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"

namespace burin::ir {

struct Token {
  enum Kind : std::uint8_t {
    end,          // behind the last token
    word,         // add, f32, inf: [A-Za-z_][A-Za-z0-9_]*
    value,        // %x.0: text is what follows the %, of [A-Za-z0-9_.]
    symbol,       // @main: likewise
    number,       // 12, -0.5, 1e+30, 0x7FC0, -inf
    string,       // "...": text is what stands between the quotes, escapes not undone
    punctuation,  // ( ) [ ] { } < > , : = + - * / ; | & ! ? ^ ~ -> == != <= >= .. ... && || +=
  };
  std::string_view text;
  Kind kind = end;
  bool first_on_line = false;
  std::uint32_t line = 1;
};

/// The text as tokens, comments (// to the end of the line) left out; the last one is `end`. Keeps views into `text`.
class Lexer {
 public:
  /// Throws Error for a character that begins no token and for a string without an end.
  Lexer(std::string_view text, std::string_view file);

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[next_ + ahead < tokens_.size() ? next_ + ahead : tokens_.size() - 1];
  }
  const Token& take() {
    const Token& token = peek();
    if (token.kind != Token::end) ++next_;
    return token;
  }
  bool at(std::string_view punctuation_or_word, std::size_t ahead = 0) const;
  /// Whether the token taken last is this punctuation or word.
  bool at_previous(std::string_view punctuation_or_word) const;
  /// Takes the token if it is this punctuation or word.
  bool accept(std::string_view punctuation_or_word);
  /// Takes it or throws "expected `=`, found ...".
  void expect(std::string_view punctuation_or_word);
  /// Takes a token of that kind or throws "expected <what>, found ...".
  const Token& expect(Token::Kind kind, std::string_view what);
  /// Takes a number that is a decimal 64-bit integer.
  std::int64_t expect_int(std::string_view what);
  /// Takes a string and undoes its escapes \" \\ \n.
  std::string expect_string(std::string_view what);

  std::size_t position() const { return next_; }
  void set_position(std::size_t position) { next_ = position; }

  /// "x.ir:3:14: ", where the token stands.
  std::string prefix(const Token& token) const;
  /// Throws the message with that prefix.
  template <class... Args>
  [[noreturn]] void fail(const Token& token, Msg id, const Args&... args) const {
    throw_message(id, prefix(token) + format_message(id, args...), "");
  }
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::string_view text_;
  std::string file_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

/// How a message shows a token: "`%x`", "the end of the text".
std::string quoted(const Token& token);
/// `text` between quotes with the escapes that expect_string undoes.
std::string quoted_string(std::string_view text);
/// ", did you mean `add`?" for the candidate that is a slip of the keyboard away from `text`, else "".
std::string suggestion(std::string_view text, const std::vector<std::string_view>& candidates);

}  // namespace burin::ir
