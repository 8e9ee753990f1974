// Accuracy of the vector-math routines. Each test measures a row of the table in docs/numerics.md and compares it; BURIN_BLESS=1
// writes it instead:
//   BURIN_BLESS=1 burin_codegen_tests --gtest_filter='*UlpTable*'
// Of f32 it takes every 1009th bit pattern; every_f32_test.cpp can take all.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/vector_math/apply.h"
#include "ir/literal.h"
#include "tests/codegen/host_machine.h"
#include "tests/codegen/math_reference.h"

namespace burin::codegen {
namespace {

struct Worst {
  double ulps = 0;
  double x = 0, y = 0;
  std::uint64_t tried = 0;
};

template <class T>
void try_input(MathFn fn, T x, T y, Worst& worst) {
  using R = std::conditional_t<sizeof(T) == 4, double, long double>;
  math::HostMachine<T> m;
  double error = ulps(math::apply(m, fn, x, y), reference<R>(fn, x, y));
  ++worst.tried;
  if (error > worst.ulps) worst = {error, x, y, worst.tried};
}

/// Between -1 and 1, of any exponent down to -`exponents`. One draw after the other: the table is the same for every compiler.
double small(std::mt19937_64& random, std::uint64_t exponents) {
  const int exponent = -static_cast<int>(random() % exponents);
  return std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), exponent);
}

/// Bases of any size with exponents that make the result neither 0 nor infinity as a rule; points all around the
/// origin; edges against edges.
template <class T>
void try_pairs(MathFn fn, Worst& worst, int count) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  double range = sizeof(T) == 4 ? 155 : 1080;
  for (int k = 0; k < count; ++k) {
    T any = std::bit_cast<T>(static_cast<typename math::HostMachine<T>::I>(random()));
    T near_one = static_cast<T>(1 + small(random, 50));
    for (T x : {any, near_one, static_cast<T>(20 * unit(random))}) {
      double log = std::log2(std::fabs(static_cast<double>(x)));
      try_input(fn, x, static_cast<T>(unit(random) * range / log), worst);
      try_input(fn, x, static_cast<T>(std::rint(unit(random) * 40) / 2), worst);
      try_input(fn, x, static_cast<T>(x * unit(random)), worst);
    }
  }
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (T x : edge_inputs<T>()) {
    for (T y : {T(0), T(-0.0), T(1), T(-1), T(2), T(3), T(-3), T(0.5), T(-0.5), T(1.5), T(1e30), T(-1e30), T(8388607),
                T(8388609), T(16777215), T(9007199254740991.0), inf, -inf, nan}) {
      try_input(fn, x, y, worst);
      try_input(fn, y, x, worst);
    }
  }
}

Worst measure_f32(MathFn fn) {
  Worst worst;
  if (math_arity(fn) == 2) {
    try_pairs<float>(fn, worst, 200'000);
    return worst;
  }
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 1009) {
    try_input(fn, std::bit_cast<float>(static_cast<std::uint32_t>(bits)), 0.0f, worst);
  }
  for (float x : edge_inputs<float>()) try_input(fn, x, 0.0f, worst);
  return worst;
}

Worst measure_f64(MathFn fn) {
  Worst worst;
  if (math_arity(fn) == 2) {
    try_pairs<double>(fn, worst, 100'000);
    return worst;
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int k = 0; k < 100'000; ++k) {
    try_input(fn, std::bit_cast<double>(random()), 0.0, worst);
    try_input(fn, small(random, 1080), 0.0, worst);
    try_input(fn, 1 + small(random, 53), 0.0, worst);
    for (double scale : {1.0, 3.0, 10.0, 30.0, 100.0, 800.0, 1e5}) try_input(fn, scale * unit(random), 0.0, worst);
  }
  for (double x : edge_inputs<double>()) try_input(fn, x, 0.0, worst);
  return worst;
}

/// Every value of a half type: the f32 routine's result, rounded once. All pairs of some thousand values for two arguments.
Worst measure_half(MathFn fn, DType dtype) {
  Worst worst;
  const Format format = dtype == bf16 ? Format{8, -125, 128} : Format{11, -13, 16};
  ir::Literal all(ir::Type{dtype, {65536}}), rounded(ir::Type{dtype, {1}});
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::memcpy(all.mutable_raw().data() + 2 * bits, &half, 2);
  }
  math::HostMachine<float> m;
  const auto try_half = [&](double x, double y) {
    rounded.set(0, static_cast<double>(math::apply(m, fn, static_cast<float>(x), static_cast<float>(y))));
    const double got = rounded.at(0), exact = reference<double>(fn, x, y);
    rounded.set(0, exact);
    const double nearest = rounded.at(0);
    ++worst.tried;
    const double error = ulps<double>(got, exact, nearest, format);
    if (error > worst.ulps) worst = {error, x, y, worst.tried};
  };
  const std::int64_t step = math_arity(fn) == 2 ? 61 : 1;
  for (std::int64_t i = 0; i < 65536; i += step)
    for (std::int64_t j = 0; j < (math_arity(fn) == 2 ? 65536 : 1); j += step) try_half(all.at(i), all.at(j));
  return worst;
}

// ---- the table in docs/numerics.md: | `exp` | f32 | f64 | bf16 | f16 |

constexpr const char* page = "docs/numerics.md";

void compare_row(MathFn fn, const std::vector<double>& measured) {
  std::string row = "| `" + std::string(math_name(fn)) + "` |";
  for (double ulps : measured) {
    char cell[32];
    std::snprintf(cell, sizeof cell, " %.2f |", ulps);
    row += cell;
  }
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  std::string whole = text.str();
  const std::size_t at = whole.find(row.substr(0, row.find('|', 2) + 1)), end = whole.find('\n', at);
  ASSERT_NE(at, std::string::npos) << page << " has no row `" << math_name(fn) << "`";
  if (const char* bless = std::getenv("BURIN_BLESS"); bless != nullptr && *bless != '\0') {
    whole.replace(at, end - at, row);
    std::ofstream(page) << whole;
    return;
  }
  EXPECT_EQ(whole.substr(at, end - at), row) << "BURIN_BLESS=1 build/dev/bin/burin_codegen_tests --gtest_filter='*UlpTable*' writes it";
}

class UlpTable : public testing::TestWithParam<MathFn> {};

TEST_P(UlpTable, IsWithinItsBoundsAndAsDocumented) {
  const MathFn fn = GetParam();
  std::vector<double> measured;
  const auto within = [&](const char* dtype, const Worst& worst, double limit) {
    EXPECT_LE(worst.ulps, limit) << math_name(fn) << ' ' << dtype << " at x = " << std::hexfloat << worst.x << ", y = " << worst.y
                                 << " of " << worst.tried << " tried";
    measured.push_back(worst.ulps);
  };
  within("f32", measure_f32(fn), 2);
  within("f64", measure_f64(fn), 4);
  within("bf16", measure_half(fn, bf16), 1);
  within("f16", measure_half(fn, f16), 1);
  compare_row(fn, measured);
}

std::vector<MathFn> accurate_functions() {
  std::vector<MathFn> functions;
  for (MathFn fn : all_math_functions) {
    if (fn != MathFn::erf_inv) functions.push_back(fn);  // follows another definition: erf_inv_test.cpp
  }
  return functions;
}

INSTANTIATE_TEST_SUITE_P(VectorMath, UlpTable, testing::ValuesIn(accurate_functions()),
                         [](const auto& info) { return std::string(math_name(info.param)); });

}  // namespace
}  // namespace burin::codegen
