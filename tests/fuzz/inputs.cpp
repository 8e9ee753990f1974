#include "tests/fuzz/inputs.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/hash.h"
#include "tests/fuzz/random.h"

namespace burin::fuzz {
namespace {

using namespace ir;

double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

double special_float(Random& random) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<double> values = {0.0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.5,
                                             -0.5,
                                             1.5,
                                             2.5,
                                             inf,
                                             -inf,
                                             nan,
                                             0x1p-149,
                                             -0x1p-140,
                                             0x1p-24,
                                             0x1p-15,
                                             0x1.fffffep127,
                                             -0x1.fffffep127,
                                             65504,
                                             0x1p31,
                                             -0x1p31,
                                             0x1p63,
                                             0x1p-1074};
  return random.chance(0.6) ? random.pick(values)
                            : normal(random) * std::exp2(static_cast<double>(random.between(-20, 20)));
}

std::int64_t special_integer(Random& random) {
  static const std::vector<std::int64_t> values = {
      0, 1, -1, 2, 7, 8, 31, 32, 64, -128, 127, 255, INT16_MIN, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
  return random.chance(0.6) ? random.pick(values) : static_cast<std::int64_t>(random.bits());
}

Literal draw(const Type& type, Random& random, bool tame) {
  Literal value(type);
  const double style = random.uniform();
  const double specials = tame || style < 0.5 ? 0 : style < 0.8 ? 0.05 : 0.6;
  const bool steps = random.chance(0.2) && !tame;  // few different values: ties
  const double scale = std::exp2(static_cast<double>(tame ? 0 : random.between(-2, 3)));
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const bool special = random.chance(specials);
    if (is_float(type.dtype)) {
      const double x = normal(random);
      value.set(i, special ? special_float(random) : steps ? std::round(x * 2) / 2 : x * scale);
    } else if (type.dtype == bool_) {
      value.set_int(i, random.below(2));
    } else {
      value.set_int(
          i, special ? special_integer(random) : random.between(random.chance(0.1) ? -3 : 0, style < 0.25 ? 1 : 6));
    }
  }
  return value;
}

}  // namespace

std::vector<Literal> draw_inputs(const Function& f, std::uint64_t seed, bool tame) {
  std::vector<Literal> all;
  for (ValueId arg : f.args()) {
    Hasher hasher;
    hasher.add(seed);
    hasher.add(f.value_name(arg));
    Random random(hasher.finish().low);
    all.push_back(draw(f.type(arg), random, tame));
  }
  return all;
}

}  // namespace burin::fuzz
