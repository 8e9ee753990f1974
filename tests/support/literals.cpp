#include "tests/support/literals.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "base/check.h"

namespace burin::test {

Literal from_doubles(const Type& type, std::span<const double> elements) {
  BURIN_CHECK(type.size() == static_cast<std::int64_t>(elements.size()));
  Literal result(type);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (is_float(type.dtype))
      result.set(static_cast<std::int64_t>(i), elements[i]);
    else
      result.set_int(static_cast<std::int64_t>(i), static_cast<std::int64_t>(elements[i]));
  }
  return result;
}

Literal spread(const Type& type, double low, double high, std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + 17);
  const std::int64_t n = type.size();
  Literal result(type);
  if (!is_float(type.dtype)) {
    const auto first = static_cast<std::int64_t>(low), count = static_cast<std::int64_t>(high) - first + 1;
    for (std::int64_t i = 0; i < n; ++i)
      result.set_int(i, first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
    return result;
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  // Multiples of the golden ratio: offsets of different seeds stay apart.
  const double golden = 0.6180339887498949 * static_cast<double>(seed + 1);
  const double offset = 0.1 + 0.8 * (golden - std::floor(golden));
  for (std::int64_t i = 0; i < n; ++i)
    result.set(i, low + (high - low) * (static_cast<double>(order[static_cast<std::size_t>(i)]) + offset) /
                            static_cast<double>(n));
  return result;
}

std::vector<double> to_doubles(const Literal& literal) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < literal.shape().size(); ++i) result.push_back(literal.at(i));
  return result;
}

namespace {

std::string element_difference(const Literal& found, const Literal& expected, std::int64_t i) {
  const auto text = [&](const Literal& l) {
    if (!is_float(l.dtype())) return std::to_string(l.int_at(i));
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17g", l.at(i));
    return std::string(buffer);
  };
  return "element " + std::to_string(i) + " of " + ir::to_string(found.type()) + " is " + text(found) + ", expected " +
         text(expected);
}

}  // namespace

std::string difference(const Literal& found_in, const Literal& expected_in) {
  if (found_in.type() != expected_in.type())
    return "type is " + ir::to_string(found_in.type()) + ", expected " + ir::to_string(expected_in.type());
  Literal found = found_in, expected = expected_in;
  found.expand();
  expected.expand();
  const std::size_t width = size_of(found.dtype());
  for (std::int64_t i = 0; i < found.shape().size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * width;
    if (std::memcmp(found.raw().data() + at, expected.raw().data() + at, width) == 0) continue;
    if (is_float(found.dtype()) && std::isnan(found.at(i)) && std::isnan(expected.at(i))) continue;
    return element_difference(found, expected, i);
  }
  return "";
}

std::string difference(const Literal& found, const Literal& expected, double tolerance) {
  if (found.type() != expected.type()) return difference(found, expected);
  for (std::int64_t i = 0; i < found.shape().size(); ++i) {
    const double a = found.at(i), b = expected.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
    return element_difference(found, expected, i);
  }
  return "";
}

Literal stacked(std::span<const Literal> examples) {
  BURIN_CHECK(!examples.empty());
  Type type = examples[0].type();
  Shape shape{static_cast<std::int64_t>(examples.size())};
  for (std::int64_t extent : type.shape) shape.push_back(extent);
  std::vector<std::byte> bytes;
  for (Literal example : examples) {
    BURIN_CHECK(example.type() == type);
    example.expand();
    bytes.insert(bytes.end(), example.raw().begin(), example.raw().end());
  }
  return Literal(Type{type.dtype, shape}, bytes);
}

Literal example(const Literal& batch_in, std::int64_t index) {
  Literal batch = batch_in;
  batch.expand();
  Type type{batch.dtype(), Shape(batch.shape().dims().subspan(1))};
  const auto bytes = static_cast<std::size_t>(type.bytes());
  return Literal(type, batch.raw().subspan(static_cast<std::size_t>(index) * bytes, bytes));
}

double inner_product(std::span<const Literal> a, std::span<const Literal> b) {
  BURIN_CHECK(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t j = 0; j < a[i].shape().size(); ++j) sum += a[i].at(j) * b[i].at(j);
  return sum;
}

}  // namespace burin::test
