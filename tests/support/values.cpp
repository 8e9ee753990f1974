#include "tests/support/values.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/check.h"

namespace burin::test {

using ir::Literal;

Literal values(DType dtype, std::string_view words) {
  std::istringstream in{std::string(words)};
  std::vector<std::string> all;
  for (std::string word; in >> word;) {
    const std::size_t star = word.find('*');
    const unsigned long times = star == std::string::npos ? 1 : std::stoul(word.substr(star + 1));
    word = word.substr(0, star);
    all.insert(all.end(), times, word == "true" ? "1" : word == "false" ? "0" : word);
  }
  Literal result(ir::Type{dtype, {static_cast<std::int64_t>(all.size())}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const char* begin = all[i].c_str();
    char* end = nullptr;
    const auto at = static_cast<std::int64_t>(i);
    if (is_float(dtype)) {
      result.set(at, std::strtod(begin, &end));
    } else if (all[i][0] == '-') {
      result.set_int(at, std::strtoll(begin, &end, 0));
    } else {
      result.set_int(at, static_cast<std::int64_t>(std::strtoull(begin, &end, 0)));
    }
    BURIN_CHECK(*end == 0, "not a number: " + all[i]);
  }
  return result;
}

Literal values(DType dtype, const Shape& shape, std::string_view words) { return values(dtype, words).reshaped(shape); }

std::string text(const Literal& literal) {
  std::string result;
  for (std::int64_t i = 0; i < literal.type().size(); ++i) {
    if (i > 0) result += ' ';
    const DType dtype = literal.dtype();
    if (is_float(dtype) && std::isnan(literal.at(i))) {
      result += "nan";
    } else if (dtype == DType::f64) {
      result += fmt::format("{}", literal.at(i));
    } else if (is_float(dtype)) {
      result += fmt::format("{}", static_cast<float>(literal.at(i)));
    } else if (dtype == DType::u64) {
      result += fmt::format("{}", static_cast<std::uint64_t>(literal.int_at(i)));
    } else {
      result += fmt::format("{}", literal.int_at(i));
    }
  }
  return result;
}

std::vector<Literal> apply_op(ir::Op op, std::span<const Literal> operands, std::vector<ir::AttrValue> attributes,
                              std::string_view where) {
  std::vector<ir::Type> types;
  for (const Literal& operand : operands) types.push_back(operand.type());
  const std::vector<ir::Type> results = ir::infer_types(op, types, attributes);
  return ir::evaluate_op(op, operands, attributes, results, where);
}

}  // namespace burin::test
