// The walk over a function, and the comparison. enclosure_ops.cpp has the rules.
#include "tests/fuzz/enclosure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/eval/eval.h"
#include "ir/eval/walk.h"
#include "tests/fuzz/enclosure_rules.h"

namespace burin::fuzz {

std::int64_t Enclosure::num_free() const { return std::count(free.begin(), free.end(), true); }

Enclosure exactly(Literal value) {
  value.expand();
  return {value, value, value, {}, true};
}

std::vector<Enclosure> enclose(const Function& f, std::span<const Enclosure> args, Model& model) {
  return walk(f, args, [&](OpId op, std::span<const Enclosure> operands, std::span<const Type> types) {
    return enclose_op(f.kind(op), operands, f.attributes(op), types, model);
  });
}

namespace {

bool same_bits(const Literal& a, const Literal& b, std::int64_t i) {
  const std::size_t width = size_of(a.dtype()), at = static_cast<std::size_t>(i) * width;
  if (std::memcmp(a.raw().data() + at, b.raw().data() + at, width) == 0) return true;
  return is_float(a.dtype()) && std::isnan(a.at(i)) && std::isnan(b.at(i));
}

std::string element(const Literal& literal, std::int64_t i) {
  return is_float(literal.dtype()) ? fmt::format("{}", literal.at(i)) : fmt::format("{}", literal.int_at(i));
}

std::string place(const Shape& shape, std::int64_t i) {
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    text = fmt::format("{}{}{}", i % shape[axis], text.empty() ? "" : ",", text);
    i /= shape[axis];
  }
  return "[" + text + "]";
}

std::string signature_difference(const std::vector<Literal>& found, std::size_t n) {
  return found.size() == n ? "" : fmt::format("{} results instead of {}", found.size(), n);
}

}  // namespace

std::string outside(const std::vector<Literal>& found, const std::vector<Enclosure>& expected) {
  if (std::string text = signature_difference(found, expected.size()); !text.empty()) return text;
  for (std::size_t r = 0; r < found.size(); ++r) {
    Literal x = found[r];
    const Enclosure& e = expected[r];
    if (x.type() != e.value.type())
      return fmt::format("result {} is {} instead of {}", r, to_string(x.type()), to_string(e.value.type()));
    x.expand();
    for (std::int64_t i = 0; i < x.type().size(); ++i) {
      if (e.is_free(i) || same_bits(x, e.value, i)) continue;
      if (same_bits(e.low, e.high, i))
        return fmt::format("result {}{}: {} instead of {}", r, place(x.shape(), i), element(x, i), element(e.value, i));
      if (!(e.low.at(i) <= x.at(i) && x.at(i) <= e.high.at(i)))
        return fmt::format("result {}{}: {} instead of {}, outside of {} .. {}", r, place(x.shape(), i), element(x, i),
                           element(e.value, i), element(e.low, i), element(e.high, i));
    }
  }
  return "";
}

std::string different(const std::vector<Literal>& found, const std::vector<Literal>& expected) {
  if (std::string text = signature_difference(found, expected.size()); !text.empty()) return text;
  for (std::size_t r = 0; r < found.size(); ++r) {
    Literal x = found[r], y = expected[r];
    if (x.type() != y.type())
      return fmt::format("result {} is {} instead of {}", r, to_string(x.type()), to_string(y.type()));
    x.expand();
    y.expand();
    for (std::int64_t i = 0; i < x.type().size(); ++i)
      if (!same_bits(x, y, i))
        return fmt::format("result {}{}: {} instead of {}", r, place(x.shape(), i), element(x, i), element(y, i));
  }
  return "";
}

}  // namespace burin::fuzz
