#include "ir/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/message_ids.h"

namespace burin::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }
bool is_name(char c) { return is_word(c) || c == '.'; }

template <class Pred>
std::size_t end_while(std::string_view text, std::size_t i, Pred pred) {
  while (i < text.size() && pred(text[i])) ++i;
  return i;
}

// The end of a number that starts at i: letters, digits and dots, and a sign behind the e of a decimal exponent.
std::size_t end_of_number(std::string_view text, std::size_t i) {
  if (text[i] == '-') ++i;
  const bool hex = text.substr(i, 2) == "0x" || text.substr(i, 2) == "0X";
  for (; i < text.size(); ++i) {
    const bool exponent_sign =
        (text[i] == '+' || text[i] == '-') && !hex && i > 0 && (text[i - 1] == 'e' || text[i - 1] == 'E');
    if (!is_name(text[i]) && !exponent_sign) break;
  }
  return i;
}

// Line breaks come as \n alone or behind \r; a lone \r counts as blank.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file) : file_(file) {
  // Some editors put this mark before UTF-8.
  if (constexpr std::string_view mark = "\xEF\xBB\xBF"; text.starts_with(mark)) text.remove_prefix(mark.size());
  text_ = text;
  constexpr std::string_view singles = "()[]{}<>,:=+-*/;|&!?^~";
  constexpr std::string_view doubles[] = {"->", "==", "!=", "<=", ">=", "..", "&&", "||", "+="};
  bool fresh_line = true;
  std::uint32_t line = 1;
  std::size_t i = 0;
  const auto push = [&](Token::Kind kind, std::size_t begin, std::size_t end) {
    tokens_.push_back({text.substr(begin, end - begin), kind, fresh_line, line});
    fresh_line = false;
  };
  while (i < text.size()) {
    const char c = text[i];
    const std::size_t begin = i;
    if (is_blank(c)) {
      if (c == '\n') {
        fresh_line = true;
        ++line;
      }
      ++i;
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (is_word_start(c)) {
      i = end_while(text, i, is_word);
      push(Token::word, begin, i);
    } else if ((c == '%' || c == '@') && i + 1 < text.size() && is_name(text[i + 1])) {
      i = end_while(text, i + 1, is_name);
      push(c == '%' ? Token::value : Token::symbol, begin + 1, i);
    } else if (is_digit(c) || (c == '-' && i + 1 < text.size() && (is_name(text[i + 1])))) {
      // A number stops before "..", so that 0..n is a range.
      i = end_of_number(text, i);
      if (const std::size_t range = text.substr(begin, i - begin).find(".."); range != std::string_view::npos)
        i = begin + range;
      push(Token::number, begin, i);
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      const bool ended = i < text.size() && text[i] == '"';
      push(Token::string, begin + 1, std::min(i, text.size()));
      if (!ended) fail(tokens_.back(), Msg::parse_string_end);
      ++i;
    } else if (text.substr(i, 3) == "...") {
      i += 3;
      push(Token::punctuation, begin, i);
    } else if (std::find(std::begin(doubles), std::end(doubles), text.substr(i, 2)) != std::end(doubles)) {
      i += 2;
      push(Token::punctuation, begin, i);
    } else if (singles.find(c) != std::string_view::npos) {
      push(Token::punctuation, begin, ++i);
    } else {
      push(Token::punctuation, begin, begin + 1);
      const bool printable = c > ' ' && c < 0x7f;
      fail(tokens_.back(), Msg::parse_character,
           printable ? fmt::format("`{}`", c) : fmt::format("0x{:02X}", static_cast<unsigned char>(c)));
    }
  }
  tokens_.push_back({text.substr(text.size()), Token::end, true, line});
}

bool Lexer::at(std::string_view wanted, std::size_t ahead) const {
  const Token& token = peek(ahead);
  return (token.kind == Token::punctuation || token.kind == Token::word) && token.text == wanted;
}

bool Lexer::at_previous(std::string_view wanted) const {
  const Token& token = tokens_[next_ - 1];
  return (token.kind == Token::punctuation || token.kind == Token::word) && token.text == wanted;
}

bool Lexer::accept(std::string_view wanted) {
  if (!at(wanted)) return false;
  take();
  return true;
}

void Lexer::expect(std::string_view wanted) {
  if (!accept(wanted)) fail_expected(fmt::format("`{}`", wanted));
}

const Token& Lexer::expect(Token::Kind kind, std::string_view what) {
  if (peek().kind != kind) fail_expected(what);
  return take();
}

std::int64_t Lexer::expect_int(std::string_view what) {
  const Token& token = expect(Token::number, what);
  std::int64_t value = 0;
  const char *first = token.text.data(), *last = first + token.text.size();
  const auto [stop, error] = std::from_chars(first, last, value);
  if (error == std::errc::result_out_of_range && stop == last) fail(token, Msg::parse_number_range, token.text);
  if (error != std::errc{} || stop != last) {
    --next_;
    fail_expected(what);
  }
  return value;
}

std::string Lexer::expect_string(std::string_view what) {
  const std::string_view raw = expect(Token::string, what).text;
  std::string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\\' && i + 1 < raw.size()) {
      ++i;
      text += raw[i] == 'n' ? '\n' : raw[i];
    } else {
      text += raw[i];
    }
  }
  return text;
}

void Lexer::fail_expected(std::string_view what) const { fail(peek(), Msg::parse_expected, what, quoted(peek())); }

std::string Lexer::prefix(const Token& token) const {
  auto offset = static_cast<std::size_t>(token.text.data() - text_.data());
  // The text of these tokens begins behind their first character.
  if (token.kind == Token::value || token.kind == Token::symbol || token.kind == Token::string) --offset;
  const std::size_t line_break = text_.substr(0, offset).rfind('\n');
  const std::size_t column = offset - (line_break == std::string_view::npos ? 0 : line_break + 1) + 1;
  return fmt::format("{}:{}:{}: ", file_, token.line, column);
}

std::string quoted(const Token& token) {
  if (token.kind == Token::end) return "the end of the text";
  const std::string_view sigil = token.kind == Token::value    ? "%"
                                 : token.kind == Token::symbol ? "@"
                                 : token.kind == Token::string ? "\""
                                                               : "";
  const bool is_long = token.text.size() > 40;
  return fmt::format("`{}{}{}{}`", sigil, token.text.substr(0, 40), is_long ? "..." : "",
                     token.kind == Token::string ? "\"" : "");
}

std::string quoted_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + '"';
}

std::string suggestion(std::string_view text, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t best_distance = 1 + std::clamp<std::size_t>(text.size() / 3, 1, 2);
  if (text.size() > 40) return "";
  for (std::string_view candidate : candidates) {
    // Levenshtein distance, one row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::size_t diagonal = row[0]++;
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t replaced = diagonal + (text[i] != candidate[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
      }
    }
    if (row.back() < best_distance) {
      best = candidate;
      best_distance = row.back();
    }
  }
  return best.empty() ? "" : fmt::format(", did you mean `{}`?", best);
}

}  // namespace burin::ir
