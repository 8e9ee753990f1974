// Programs of a hundred thousand ops go through every pass in time that grows with their length: what is quadratic in
// any of them takes minutes here, and the run is given up.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "passes/pipeline.h"
#include "tests/support/sanitized.h"
#include "tests/support/transforms.h"

namespace burin::passes {
namespace {

using namespace ir;

const Type row_type{f32, {8, 64}};

// The lengths below, or a tenth of them under a sanitizer, which would take the minutes itself.
constexpr int length(int n) { return test::sanitized ? n / 10 : n; }

Program compile(const Function& f) { return build_program(f, Target{}, {}); }

TEST(LongPrograms, AnElementwiseChainIsFewKernels) {
  Builder b("main");
  const ValueId x = b.add_arg(row_type, "x");
  ValueId y = x;
  for (int i = 0; i < length(50'000); ++i) y = b.add(b.sin(y), x);
  const Program program = compile(b.finish({y}));
  EXPECT_LT(program.steps.size(), std::size_t{length(50'000) / 16});
  EXPECT_LT(program.kernels.size(), 10);
}

// A tower of layers with a norm, a matmul and a residual connection: what reads x spans the whole layer.
ValueId layer(Builder& b, ValueId x, ValueId w) {
  const ValueId sum = b.reduce(Op::reduce_sum, b.mul(x, x), {1});
  const ValueId norm = b.mul(x, b.broadcast(b.rsqrt(sum), {8, 64}, {0}));
  return b.add(x, b.tanh(b.emit<Op::dot_general>({norm, w}, {.lhs_contract = {1}, .rhs_contract = {0}, .dtype = f32})));
}

ValueId tower(Builder& b, int layers) {
  ValueId x = b.add_arg(row_type, "x");
  const ValueId w = b.add_arg({f32, {64, 64}}, "w");
  for (int i = 0; i < layers; ++i) x = layer(b, x, w);
  return x;
}

TEST(LongPrograms, ATowerOfLayers) {
  Builder b("main");
  const int layers = length(12'000);
  const ValueId x = tower(b, layers);
  const Program program = compile(b.finish({x}));
  EXPECT_EQ(program.steps.size(), 2u * layers);
  EXPECT_LT(program.kernels.size(), 10);
}

TEST(LongPrograms, TheGradientOfATower) {
  Builder b("main");
  const int layers = length(3'000);
  const ValueId x = tower(b, layers);
  const Function gradient = test::gradient(b.finish({b.reduce(Op::reduce_sum, x, {0, 1})}), {false, true});
  EXPECT_GT(gradient.num_ops(), std::size_t{length(60'000)});
  const Program program = compile(gradient);
  EXPECT_LE(program.steps.size(), 7u * layers);
  EXPECT_LT(program.kernels.size(), 40);
}

TEST(LongPrograms, ManyReductionsOfOneArray) {
  Builder b("main");
  const ValueId x = b.add_arg(row_type, "x");
  std::vector<ValueId> results;
  for (int i = 0; i < length(25'000); ++i) {
    const ValueId factor = b.full(row_type, i + 1.0);
    results.push_back(b.reduce(Op::reduce_max, b.mul(x, factor), {1}));
  }
  const Program program = compile(b.finish(results));
  EXPECT_LT(program.steps.size(), std::size_t{length(25'000) / 16});
}

}  // namespace
}  // namespace burin::passes
