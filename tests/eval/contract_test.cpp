#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::apply;
using test::text;
using test::values;

const std::vector<DType> numbers{f64, f32, bf16, f16, i8, i16, i32, i64, u8, u16, u32, u64};

attrs::dot_general matmul(DType dtype) { return {.lhs_contract = {1}, .rhs_contract = {0}, .dtype = dtype}; }

TEST(EvalDot, A2x3By3x2InEveryDtype) {
  for (DType dtype : numbers) {
    const Literal x = values(dtype, {2, 3}, "1 2 3 4 5 6"), y = values(dtype, {3, 2}, "1 0 2 1 0 3");
    EXPECT_EQ(text(apply<Op::dot_general>({x, y}, matmul(dtype))), "5 11 14 23") << dtype;
  }
}

TEST(EvalDot, WiderResults) {
  const auto dot = [](DType from, DType to, const char* x, const char* y) {
    return text(apply<Op::dot_general>({values(from, x), values(from, y)},
                                       {.lhs_contract = {0}, .rhs_contract = {0}, .dtype = to}));
  };
  EXPECT_EQ(dot(i8, i32, "100 100 -100", "100 100 100"), "10000");
  EXPECT_EQ(dot(u8, u16, "255 255", "255 2"), "65535");
  EXPECT_EQ(dot(u8, i32, "255", "255"), "65025");
  EXPECT_EQ(dot(bf16, f32, "256 1", "1 0.00390625"), text(values(f32, "256.00390625")));
  EXPECT_EQ(dot(f16, f32, "65504 65504", "1 1"), "131008");
  EXPECT_EQ(dot(f32, f64, "16777216 1", "1 1"), "16777217");
}

TEST(EvalDot, AccumulatesWideAndRoundsOnce) {
  const Literal row = Literal::splat({1, 1024}, Literal::scalar(bf16, 1)),
                column = Literal::splat({1024, 1}, Literal::scalar(bf16, 1));
  EXPECT_EQ(text(apply<Op::dot_general>({row, column}, matmul(bf16))), "1024");
  EXPECT_EQ(
      text(apply<Op::dot_general>({values(f32, {1, 3}, "1e8 1 -1e8"), values(f32, {3, 1}, "1 1 1")}, matmul(f32))),
      "1");
  EXPECT_EQ(
      text(apply<Op::dot_general>({values(f64, {1, 3}, "1e16 1 -1e16"), values(f64, {3, 1}, "1 1 1")}, matmul(f64))),
      "1");
  EXPECT_EQ(text(apply<Op::dot_general>({values(i8, {1, 2}, "100 100"), values(i8, {2, 1}, "2 1")}, matmul(i8))), "44");
  EXPECT_EQ(text(apply<Op::dot_general>({values(f32, {1, 2}, "inf 0"), values(f32, {2, 1}, "0 1")}, matmul(f32))),
            "nan");
}

TEST(EvalDot, SizesZeroAndOne) {
  EXPECT_EQ(text(apply<Op::dot_general>({Literal(Type{f32, {2, 0}}), Literal(Type{f32, {0, 3}})}, matmul(f32))),
            "0 0 0 0 0 0");
  EXPECT_EQ(apply<Op::dot_general>({Literal(Type{f32, {0, 2}}), Literal(Type{f32, {2, 3}})}, matmul(f32)).type(),
            (Type{f32, {0, 3}}));
  EXPECT_EQ(text(apply<Op::dot_general>({values(f32, {1, 1}, "3"), values(f32, {1, 1}, "5")}, matmul(f32))), "15");
  EXPECT_EQ(text(apply<Op::dot_general>({Literal::scalar(i32, 3), Literal::scalar(i32, 5)}, {.dtype = i32})), "15");
}

// Batched matmul of random floats against loops in another order, summed in double.
TEST(EvalDot, BatchedAgainstLoops) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  constexpr std::int64_t batches = 3, rows = 5, columns = 7, depth = 11;
  for (DType dtype : {f64, f32, bf16, f16}) {
    Literal x(Type{dtype, {rows, batches, depth}}), y(Type{dtype, {batches, depth, columns}});
    for (std::int64_t i = 0; i < x.type().size(); ++i) x.set(i, uniform(random));
    for (std::int64_t i = 0; i < y.type().size(); ++i) y.set(i, uniform(random));
    const Literal z = apply<Op::dot_general>(
        {x, y}, {.lhs_batch = {1}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}, .dtype = dtype});
    ASSERT_EQ(z.shape(), (Shape{batches, rows, columns}));
    std::vector<long double> sums(batches * rows * columns);
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t b = 0; b < batches; ++b)
            sums[static_cast<std::size_t>((b * rows + i) * columns + j)] +=
                static_cast<long double>(x.at((i * batches + b) * depth + k)) * y.at((b * depth + k) * columns + j);
    Literal expected(z.type());
    for (std::int64_t i = 0; i < expected.type().size(); ++i)
      expected.set(i, static_cast<double>(sums[static_cast<std::size_t>(i)]));
    EXPECT_EQ(text(z), text(expected)) << dtype;
  }
}

// Random dimension numbers, with JAX's results.
TEST(EvalDot, RandomDimensionNumbersAsInJax) {
  const auto data = nlohmann::json::parse(std::ifstream("tests/data/index_cases.json"));
  int cases = 0;
  for (const auto& c : data["cases"]) {
    if (c["op"] != "dot_general") continue;
    const auto tensor = [&](const char* shape, const char* elements) {
      const auto extents = c[shape].get<Ints>();
      Literal result(Type{i32, Shape(extents)});
      std::int64_t i = 0;
      for (std::int64_t value : c[elements]) result.set_int(i++, value);
      return result;
    };
    const Literal result = apply<Op::dot_general>({tensor("lhs_shape", "lhs"), tensor("rhs_shape", "rhs")},
                                                  {.lhs_batch = c["lhs_batch"],
                                                   .rhs_batch = c["rhs_batch"],
                                                   .lhs_contract = c["lhs_contract"],
                                                   .rhs_contract = c["rhs_contract"],
                                                   .dtype = i32});
    EXPECT_EQ(result, tensor("shape", "values")) << c.dump();
    ++cases;
  }
  EXPECT_EQ(cases, 24);
}

}  // namespace
}  // namespace burin::ir
