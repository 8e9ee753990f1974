// Generated code of the vector-math routines: the same bits as on the host for every width and instruction set, and no
// call of a library.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "codegen/vector_math/apply.h"
#include "codegen/vector_math/convert.h"
#include "codegen/vector_math/probe.h"
#include "tests/codegen/host_machine.h"
#include "tests/codegen/math_reference.h"

namespace burin::codegen {
namespace {

/// Any bits, then arguments of common sizes, then edges; a multiple of 16 of them.
template <class T>
std::vector<T> inputs(unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<T> values = edge_inputs<T>();
  for (int k = 0; k < 1500; ++k)
    values.push_back(std::bit_cast<T>(static_cast<typename math::HostMachine<T>::I>(random())));
  for (double scale : {0.1, 1.0, 5.0, 20.0, 100.0, 1000.0}) {
    for (int k = 0; k < 300; ++k) values.push_back(static_cast<T>(scale * unit(random)));
  }
  while (values.size() % 16 != 0) values.push_back(T(0.25));
  return values;
}

template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
void expect_host_bits(MathProbe& probe) {
  std::vector<T> x = inputs<T>(1), y = x, out(x.size());
  std::shuffle(y.begin(), y.end(), std::mt19937(2));
  math::HostMachine<T> m;
  for (MathFn fn : all_math_functions) {
    probe.run(fn, x.data(), math_arity(fn) == 2 ? y.data() : nullptr, out.data(), static_cast<std::int64_t>(x.size()));
    int different = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      T expected = math::apply(m, fn, x[k], y[k]);
      if (same(out[k], expected)) continue;
      if (++different == 1)
        ADD_FAILURE() << math_name(fn) << '(' << x[k] << ", " << y[k] << ") = " << out[k] << ", host " << expected;
    }
    EXPECT_EQ(different, 0) << math_name(fn) << " f" << 8 * sizeof(T);
  }
}

struct Configuration {
  const char* name;
  int lanes;
  const char* features;
};

std::vector<Configuration> configurations() {
  return {{"avx512_16", 16, avx512_features()}, {"avx512_8", 8, avx512_features()}, {"avx512_1", 1, avx512_features()},
          {"avx2_8", 8, avx2_features()},       {"avx2_4", 4, avx2_features()},     {"avx2_1", 1, avx2_features()}};
}

class VectorMathCode : public testing::TestWithParam<Configuration> {};

TEST_P(VectorMathCode, EqualsTheHostBitForBitAndCallsNothing) {
  MathProbe probe(GetParam().lanes, GetParam().features);
  EXPECT_EQ(probe.undefined_symbols(), std::vector<std::string>());
  if (!host_has(GetParam().features)) GTEST_SKIP() << "compiled, not run: this machine lacks the instruction set";
  expect_host_bits<float>(probe);
  expect_host_bits<double>(probe);
}

TEST_P(VectorMathCode, ConvertsHalfTypesWithOneRounding) {
  MathProbe probe(GetParam().lanes, GetParam().features);
  if (!host_has(GetParam().features)) GTEST_SKIP() << "this machine lacks the instruction set";
  std::vector<float> f32 = inputs<float>(5);
  std::vector<double> f64 = inputs<double>(6);
  // Doubles next to the midpoint of two half numbers: where rounding twice goes wrong.
  for (int k = 0; k < 4096; ++k) {
    double middle = bfloat16_value(static_cast<std::uint16_t>(k * 16)) * (1 + 0x1p-8),
           half_middle = (1 + k * 0x1p-12) * (1 + 0x1p-11);
    for (double x : {middle, half_middle, half_middle * 0x1p-20}) {
      f64.push_back(std::nextafter(x, 0));
      f64.push_back(x);
      f64.push_back(std::nextafter(x, 1e300));
      f64.push_back(-x);
    }
  }
  auto is_nan16 = [](std::uint16_t bits, int mantissa) {
    unsigned magnitude = bits & 0x7fffu;
    return magnitude > (0x7fffu >> mantissa << mantissa);
  };
  auto check = [&](HalfConversion conversion, const auto& x, auto exact, int mantissa) {
    std::vector<std::uint16_t> out(x.size());
    probe.run(conversion, x.data(), out.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (std::isnan(x[k])) {
        EXPECT_TRUE(is_nan16(out[k], mantissa) && (out[k] >> (mantissa - 1) & 1)) << "NaN became " << out[k];
      } else {
        ASSERT_EQ(out[k], exact(x[k])) << x[k] << " by conversion " << static_cast<int>(conversion);
      }
    }
  };
  check(HalfConversion::f32_to_bf16, f32, bfloat16_bits, 7);
  check(HalfConversion::f64_to_bf16, f64, bfloat16_bits, 7);
  check(HalfConversion::f32_to_f16, f32, float16_bits, 10);
  check(HalfConversion::f64_to_f16, f64, float16_bits, 10);
  std::vector<std::uint16_t> all(65536);
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::uint16_t>(k);
  std::vector<float> out(all.size());
  probe.run(HalfConversion::bf16_to_f32, all.data(), out.data(), 65536);
  for (std::uint16_t bits : all) ASSERT_TRUE(same(out[bits], bfloat16_value(bits))) << bits;
  probe.run(HalfConversion::f16_to_f32, all.data(), out.data(), 65536);
  for (std::uint16_t bits : all) ASSERT_TRUE(same(out[bits], float16_value(bits))) << bits;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, VectorMathCode, testing::ValuesIn(configurations()),
                         [](const auto& info) { return std::string(info.param.name); });

// A change that makes these slower shows up here: instructions of the loop body at 16 lanes, loads and stores included.
TEST(VectorMathCode, CommonFunctionsAreShortAndHaveNoBranches) {
  MathProbe probe(16, avx512_features());
  auto count = [](const std::string& text, const std::string& word) {
    int n = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  struct Budget {
    MathFn fn;
    int instructions, divisions;
  };
  for (Budget budget : {Budget{MathFn::exp, 26, 0},
                        {MathFn::log, 38, 0},
                        {MathFn::expm1, 30, 0},
                        {MathFn::log1p, 44, 0},
                        {MathFn::tanh, 24, 0},
                        {MathFn::logistic, 32, 1},
                        {MathFn::erf, 42, 0}}) {
    std::string text = probe.assembly(budget.fn, 32);
    std::string body = text.substr(text.rfind(".LBB0_2:"));
    body = body.substr(0, body.find("\tj"));
    EXPECT_LE(count(body, "\tv"), budget.instructions) << body;
    EXPECT_EQ(count(body, "vdivps"), budget.divisions) << body;
    EXPECT_EQ(count(body, "gather") + count(body, "call"), 0) << body;
  }
}

}  // namespace
}  // namespace burin::codegen
