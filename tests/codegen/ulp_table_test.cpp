// Accuracy of the vector-math routines. Each test prints a row of the table in docs/numerics.md:
//   burin_codegen_tests --gtest_filter='*UlpTable*'
// BURIN_ULP_STEP=1 sweeps all 2^32 inputs of f32 (minutes per function); the default takes every 1009th bit pattern.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "codegen/vector_math/apply.h"
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

/// Bases of any size with exponents that make the result neither 0 nor infinity as a rule; points all around the
/// origin; edges against edges.
template <class T>
void try_pairs(MathFn fn, Worst& worst, int count) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(-1, 1);
  double range = sizeof(T) == 4 ? 155 : 1080;
  for (int k = 0; k < count; ++k) {
    T any = std::bit_cast<T>(static_cast<typename math::HostMachine<T>::I>(random()));
    T near_one = static_cast<T>(1 + unit(random) * std::ldexp(1.0, -static_cast<int>(random() % 50)));
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
  const char* step_text = std::getenv("BURIN_ULP_STEP");
  std::uint64_t step = step_text ? std::strtoull(step_text, nullptr, 10) : 1009;
  if (math_arity(fn) == 2) {
    try_pairs<float>(fn, worst, 200'000);
    return worst;
  }
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += step) {
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
    try_input(fn, std::ldexp(unit(random), -static_cast<int>(random() % 1080)), 0.0, worst);
    try_input(fn, 1 + std::ldexp(unit(random), -static_cast<int>(random() % 53)), 0.0, worst);
    for (double scale : {1.0, 3.0, 10.0, 30.0, 100.0, 800.0, 1e5}) try_input(fn, scale * unit(random), 0.0, worst);
  }
  for (double x : edge_inputs<double>()) try_input(fn, x, 0.0, worst);
  return worst;
}

void report(MathFn fn, const char* dtype, const Worst& worst, double limit) {
  std::printf("| %s | %s | %.2f | %llu |\n", std::string(math_name(fn)).c_str(), dtype, worst.ulps,
              static_cast<unsigned long long>(worst.tried));
  EXPECT_LE(worst.ulps, limit) << math_name(fn) << ' ' << dtype << " at x = " << std::hexfloat << worst.x
                               << ", y = " << worst.y;
}

class UlpTable : public testing::TestWithParam<MathFn> {};

TEST_P(UlpTable, F32WithinTwoUnits) { report(GetParam(), "f32", measure_f32(GetParam()), 2); }
TEST_P(UlpTable, F64WithinFourUnits) { report(GetParam(), "f64", measure_f64(GetParam()), 4); }

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
