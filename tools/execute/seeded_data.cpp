#include "tools/execute/seeded_data.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace tools {
namespace {

using namespace burin;
using namespace burin::ir;

// The distributions of <random> differ between standard libraries; its engines do not.
double uniform(std::mt19937_64& engine) { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; }
double normal(std::mt19937_64& engine) {
  const double radius = std::sqrt(-2 * std::log(uniform(engine)));
  return radius * std::cos(2 * std::numbers::pi * uniform(engine));
}

double special_float(std::mt19937_64& engine) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  static constexpr double values[] = {0.0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      -0.5,
                                      1.5,
                                      2.5,
                                      inf,
                                      -inf,
                                      std::numeric_limits<double>::quiet_NaN(),
                                      0x1p-149,
                                      -0x1p-140,
                                      0x1p-24,
                                      0x1.fffffep127,
                                      -0x1.fffffep127,
                                      65504,
                                      0x1p31,
                                      0x1p63};
  const std::uint64_t pick = engine() % (2 * std::size(values));
  return pick < std::size(values) ? values[pick] : normal(engine) * std::exp2(static_cast<double>(engine() % 40) - 20);
}

std::int64_t special_integer(std::mt19937_64& engine) {
  static constexpr std::int64_t values[] = {0,  1,    -1,  2,         7,         8,         31,       32,
                                            64, -128, 127, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
  const std::uint64_t pick = engine() % (2 * std::size(values));
  return pick < std::size(values) ? values[pick] : static_cast<std::int64_t>(engine());
}

}  // namespace

std::vector<Literal> seeded_data(const std::vector<Type>& types, std::uint64_t seed, Draw draw) {
  std::mt19937_64 engine(seed);
  std::vector<Literal> all;
  for (const Type& type : types) {
    Literal value(type);
    const bool plain = draw == Draw::plain;
    for (std::int64_t i = 0; i < type.size(); ++i) {
      if (is_float(type.dtype))
        value.set(i, plain ? normal(engine) : special_float(engine));
      else
        value.set_int(i, plain ? static_cast<std::int64_t>(engine() % 4) : special_integer(engine));
    }
    all.push_back(std::move(value));
  }
  return all;
}

}  // namespace tools
