#include "ir/kernel/interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "ir/kernel/program.h"
#include "tests/kernel/kernels.h"

namespace burin::ir {
namespace {

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

// Runs the kernel with its tasks in each order; `out` starts from the same bytes each time and must end with the same.
template <class T>
void run_in_every_order(const Kernel& kernel, std::vector<std::byte*> params, std::size_t out_param,
                        std::vector<T>& out) {
  const std::vector<T> before = out;
  std::vector<T> first;
  for (TaskOrder order : {TaskOrder::forward, TaskOrder::reverse, TaskOrder::shuffled}) {
    out = before;
    params[out_param] = bytes(out);
    EXPECT_FALSE(KernelRunner(kernel).run(params, order));
    if (order == TaskOrder::forward) first = out;
    ASSERT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(T)), 0);
  }
}

TEST(Interpreter, ElementwiseWithAPartialGroup) {
  std::vector<float> a = random_floats(100, 1), b = random_floats(100, 2), y(100, -7);
  run_in_every_order(parse_kernel(kernels::elementwise), {bytes(a), bytes(b), nullptr}, 2, y);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], a[i] * b[i] + 1) << i;
}

TEST(Interpreter, TilesCutOffByASecondBound) {
  std::vector<std::int32_t> a(100), y(100, -7);
  for (int i = 0; i < 100; ++i) a[i] = 7 * i - 300;
  run_in_every_order(parse_kernel(kernels::tails), {bytes(a), nullptr}, 1, y);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 2 * a[i]) << i;
}

// Element n goes to lane n mod 8; lanes are combined by halves.
float lane_sum(std::span<const float> values) {
  float lanes[8] = {};
  for (std::size_t n = 0; n < values.size(); ++n) lanes[n % 8] += values[n];
  for (int half = 4; half >= 1; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

TEST(Interpreter, RowSoftmaxSumsInItsStatedOrder) {
  std::vector<float> x = random_floats(5 * 37, 3), y(5 * 37);
  run_in_every_order(parse_kernel(kernels::softmax), {bytes(x), nullptr}, 1, y);
  for (std::size_t r = 0; r < 5; ++r) {
    const std::span<const float> row(x.data() + 37 * r, 37);
    std::vector<float> e;
    const float highest = *std::ranges::max_element(row);
    for (float value : row) e.push_back(static_cast<float>(std::exp(static_cast<double>(value - highest))));
    for (std::size_t j = 0; j < 37; ++j) EXPECT_EQ(y[37 * r + j], e[j] / lane_sum(e)) << r << " " << j;
  }
}

TEST(Interpreter, StridesReadATransposedView) {
  std::vector<double> x(24), y(24);
  for (int i = 0; i < 24; ++i) x[i] = i;
  run_in_every_order(parse_kernel(kernels::transpose), {bytes(x), nullptr}, 1, y);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j) EXPECT_EQ(y[4 * i + j], 6 * j + i);
}

TEST(Interpreter, GuardedLoadsPad) {
  std::vector<float> x = random_floats(10, 4), y(13, -7);
  run_in_every_order(parse_kernel(kernels::pad), {bytes(x), nullptr}, 1, y);
  for (std::size_t i = 0; i < 13; ++i) EXPECT_EQ(y[i], i >= 2 && i < 12 ? x[i - 2] : 0) << i;
}

TEST(Interpreter, BindClampsOrReports) {
  std::vector<float> table = random_floats(21, 5), y(15);
  std::vector<std::int32_t> ids = {3, -1, 6, 7, 0};
  run_in_every_order(parse_kernel(kernels::gather_clip), {bytes(table), bytes(ids), nullptr}, 2, y);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_EQ(y[3 * i + j], table[3 * static_cast<std::size_t>(std::clamp(ids[i], 0, 6)) + j]);

  const Kernel kernel = parse_kernel(kernels::gather_error);
  std::byte* params[] = {bytes(table), bytes(ids), bytes(y)};
  EXPECT_EQ(interpret(kernel, params), "take: index -1 is out of range for axis 0, whose extent is 7 (model.cpp:42)");
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(y[3 + j], table[j]);
  for (TaskOrder order : {TaskOrder::forward, TaskOrder::reverse, TaskOrder::shuffled}) {
    const auto report = KernelRunner(kernel).run(params, order);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->task, 1);
  }
  ids = {3, 1, 6, 6, 0};
  EXPECT_EQ(interpret(kernel, params), "");
}

TEST(Interpreter, UnsignedIndicesBeyondSignedOnesClampHigh) {
  const Kernel kernel = parse_kernel(R"(kernel @take(in x: f32[3], in ids: u64[1], out y: f32[1]) {
  %0 = load ids[0]
  bind i = %0 in 0..3 clip
  %1 = load x[i]
  store y[0], %1
})");
  std::vector<float> x = {1, 2, 3}, y(1);
  std::vector<std::uint64_t> ids = {std::numeric_limits<std::uint64_t>::max()};
  std::byte* params[] = {bytes(x), bytes(ids), bytes(y)};
  EXPECT_EQ(interpret(kernel, params), "");
  EXPECT_EQ(y[0], 3);
}

TEST(Interpreter, MatmulFusesEachProductIntoItsSum) {
  std::vector<float> a = random_floats(30 * 9, 6), b = random_floats(9 * 40, 7), c(30 * 40);
  run_in_every_order(parse_kernel(kernels::matmul), {bytes(a), bytes(b), nullptr}, 2, c);
  for (std::size_t i = 0; i < 30; ++i)
    for (std::size_t j = 0; j < 40; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 9; ++k) sum = std::fma(a[9 * i + k], b[40 * k + j], sum);
      EXPECT_EQ(c[40 * i + j], sum) << i << " " << j;
    }
}

TEST(Interpreter, MmaOfHalvesAccumulatesInTheTilesDtype) {
  const Kernel kernel = parse_kernel(R"(kernel @dot(in a: bf16[2,3], in b: f16[3,2], out c: f32[2,2]) {
  tile t: f32[2,2]
  for r in 0..2 unroll {
    for j in 0..2 unroll {
      %0 = constant 0.5 : f32
      store t[r, j], %0
    }
  }
  mma t[r, j] += a[r, k] * b[2 - k, j] for k in 0..3
  for r in 0..2 unroll {
    for j in 0..2 unroll {
      %1 = load t[r, j]
      store c[r, j], %1
    }
  }
})");
  std::vector<bfloat16> a;
  std::vector<float16> b;
  for (int i = 0; i < 6; ++i) {
    a.emplace_back(0.3 * i - 1);
    b.emplace_back(1.7 - 0.9 * i);
  }
  std::vector<float> c(4);
  run_in_every_order(kernel, {bytes(a), bytes(b), nullptr}, 2, c);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      float sum = 0.5;
      for (std::size_t k = 0; k < 3; ++k) sum = std::fma(float(a[3 * i + k]), float(b[2 * (2 - k) + j]), sum);
      EXPECT_EQ(c[2 * i + j], sum);
    }
}

// Within a block the low halves' products are summed apart from those of the high halves, both from zero.
TEST(Interpreter, MmaOfPairsByBlocks) {
  const auto pair = [](float low, float high) {
    return (std::bit_cast<std::uint32_t>(high) & 0xffff0000u) | std::bit_cast<std::uint32_t>(low) >> 16;
  };
  const float u = 0x1p-24f;  // 1 + u is 1, 1 + 2u is a number
  std::vector<std::uint32_t> a = {pair(1, u), pair(u, u), pair(0, 0), pair(0, 0), pair(0, 0),   // 1 + u, u + u
                                  pair(u, 0), pair(0, u), pair(u, 0), pair(0, 0), pair(u, 0)};  // (u, u), (u, 0), (u, 0)
  std::vector<std::uint32_t> b(15, pair(1, 1));
  for (std::size_t k = 0; k < 5; ++k) b[3 * k + 2] = pair(-1, -1);
  std::vector<float> c = {0, 1, 0, 1, 1 + 2 * u, 0x1p-130f};
  run_in_every_order(parse_kernel(kernels::pairs), {bytes(a), bytes(b), nullptr}, 2, c);
  EXPECT_EQ(c, (std::vector<float>{1 + 2 * u, 2, -1 - 2 * u, 1 + 4 * u, 1 + 4 * u, -4 * u}));
}

TEST(Interpreter, OtherStatements) {
  std::vector<std::uint16_t> x;
  std::vector<std::uint64_t> n = {0, 1, 2, 3};
  std::vector<std::int32_t> y = {0};
  std::byte* params[] = {bytes(x), bytes(n), bytes(y)};
  const Kernel kernel = parse_kernel(kernels::assorted);
  EXPECT_EQ(kernel.buffers[0].span(), 0);
  EXPECT_EQ(interpret(kernel, params), "");
  EXPECT_EQ(y[0], 0);  // no number is less than NaN
  EXPECT_EQ(n, (std::vector<std::uint64_t>{0, ~std::uint64_t{1}, ~std::uint64_t{2}, ~std::uint64_t{3}}));
}

TEST(Interpreter, AccumulatorsStartAtTheirIdentityOrInLaneZero) {
  for (DType dtype : {f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64, bool_})
    for (std::string_view reduce : {"sum", "prod", "max", "min", "and", "or"}) {
      if (is_float(dtype) && (reduce == "and" || reduce == "or")) continue;
      const std::string type(name(dtype)), op(reduce);
      const Kernel kernel = parse_kernel("kernel @reduce(in x: " + type + "[3], out y: " + type + "[3]) {\n" +
                                         "  %0 = load x[0]\n"
                                         "  acc %a: " +
                                         type + " " + op +
                                         " lanes 4\n"
                                         "  acc %b: " +
                                         type + " " + op +
                                         " lanes 4 from %0\n"
                                         "  acc %c: " +
                                         type + " " + op +
                                         " lanes 4\n"
                                         "  for j in 0..3 vector 4 {\n"
                                         "    %1 = load x[j]\n"
                                         "    accumulate %c, %1\n"
                                         "  }\n"
                                         "  %2 = finish %a : " +
                                         type +
                                         "\n"
                                         "  %3 = finish %b : " +
                                         type +
                                         "\n"
                                         "  %4 = finish %c : " +
                                         type +
                                         "\n"
                                         "  store y[0], %2\n"
                                         "  store y[1], %3\n"
                                         "  store y[2], %4\n"
                                         "}");
      Literal x(Type{dtype, {3}}), y(Type{dtype, {3}});
      for (int i = 0; i < 3; ++i) x.set(i, dtype == bool_ ? i % 2 : 5 - i);
      std::byte* params[] = {x.mutable_raw().data(), y.mutable_raw().data()};
      EXPECT_EQ(interpret(kernel, params), "");
      EXPECT_EQ(y.at(1), x.at(0)) << type << op;  // the identity changes nothing
      const bool is_bool = dtype == bool_;
      const double expected = reduce == "sum"    ? (is_bool ? 1 : 12)
                              : reduce == "prod" ? (is_bool ? 0 : 60)
                              : reduce == "max"  ? (is_bool ? 1 : 5)
                              : reduce == "min"  ? (is_bool ? 0 : 3)
                              : reduce == "and"  ? (is_bool ? 0 : 0)
                                                 : (is_bool ? 1 : 7);
      EXPECT_EQ(y.at(2), expected) << type << op;
      if (is_float(dtype)) {
        EXPECT_EQ(y.at(0), reduce == "max" ? -INFINITY : reduce == "min" ? INFINITY : reduce == "prod");
      }
    }
}

TEST(Interpreter, ScratchIsUndefinedAtTheStartOfEachTask) {
  const Kernel kernel = parse_kernel(R"(kernel @leak(out y: f32[4]) tasks (t in 4) {
  scratch s: f32[1]
  %0 = load s[0]
  store y[t], %0
  %1 = index t : f32
  store s[0], %1
})");
  std::vector<float> y(4);
  std::byte* params[] = {bytes(y)};
  EXPECT_EQ(interpret(kernel, params), "");
  for (float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST(InterpreterDeath, AnAccessOutsideABufferAborts) {
  const Kernel kernel = parse_kernel("kernel @f(in x: f32[3], out y: f32[1]) {\n  %0 = load x[3]\n  store y[0], %0\n}");
  std::vector<float> x(4), y(1);
  std::byte* params[] = {bytes(x), bytes(y)};
  EXPECT_DEATH(interpret(kernel, params), "kernel f reaches element 3 of x, which has 3");
}

TEST(Interpreter, NoTasksAndEmptyLoopsDoNothing) {
  std::vector<float> y = {5};
  std::byte* params[] = {bytes(y)};
  EXPECT_EQ(
      interpret(parse_kernel("kernel @f(out y: f32[0]) tasks (t in 0) {\n  %0 = constant 1 : f32\n  store y[t], %0\n}"),
                params),
      "");
  EXPECT_EQ(interpret(parse_kernel(
                          "kernel @f(out y: f32[1]) {\n  for i in 3..3 {\n    %0 = constant 1 : f32\n    store y[i], "
                          "%0\n  }\n}"),
                      params),
            "");
  EXPECT_EQ(y[0], 5);
}

// The number of scalar operations of a small training step must stay a matter of a second or two.
TEST(Interpreter, RunsMillionsOfOperationsQuickly) {
  const Kernel kernel = parse_kernel(R"(kernel @f(in a: f32[1000], out y: f32[1000]) tasks (t in 400) {
  acc %s: f32 sum lanes 16
  for j in 0..1000 vector 16 {
    %0 = load a[j]
    %1 = mul %0, %0 : f32
    %2 = add %1, %0 : f32
    accumulate %s, %2
  }
  %3 = finish %s : f32
  store y[t], %3
})");
  std::vector<float> a = random_floats(1000, 8), y(1000);
  std::byte* params[] = {bytes(a), bytes(y)};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(interpret(kernel, params), "");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("nanoseconds_per_statement", std::to_string(seconds.count() * 1e9 / (400 * 1000 * 4)));
  EXPECT_LT(seconds.count(), 5) << "1.6 million statements";
}

}  // namespace
}  // namespace burin::ir
