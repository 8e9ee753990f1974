// The work of what people time is cut evenly: eight workers finish within a tenth of an even share, counted on the kernels' loops.
#include <gtest/gtest.h>

#include <burin/burin.h>

#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/frontend/traced_step.h"
#include "tests/support/task_work.h"

namespace burin::test {
namespace {

constexpr int workers = 8;
// Below, a step stays with one thread: runtime/executable.cpp.
constexpr double least_ns = 5e3;

void expect_even(const std::string& name, const ir::Function& f, std::vector<bool> donated = {}) {
  for (const char* target : {"avx2", "avx512", "avx512_bf16", "amx"}) {
    ir::Target t;
    ASSERT_TRUE(ir::isa_from_name(target, &t.isa));
    passes::Options options;
    options.donated = donated;
    EXPECT_LE(unevenness(passes::build_program(f, t, options), workers, least_ns), 1.1) << name << " for " << target;
  }
}

template <class F, class... A>
void expect_even_call(const std::string& name, F f, const A&... args) {
  expect_even(name, ir::parse(jit(f).lower(args...).text()));
}

TEST(TaskGrid, OfTrainingSteps) {
  for (const StepShape& shape : {small_shape, StepShape{50257, 64, 768, 12, 2, 4}}) {
    const TracedStep step = traced_step(shape);
    expect_even("train_step of width " + std::to_string(shape.dim), step.function, step.donated);
  }
}

TEST(TaskGrid, OfMatmuls) {
  for (const DType dtype : {f32, bf16}) {
    const auto nn = [](Tensor a, Tensor b) { return matmul(a, b); };
    const Tensor square = zeros({1024, 1024}, dtype);
    expect_even_call("matmul nn", nn, square, square);
    expect_even_call("matmul nt", [](Tensor a, Tensor b) { return matmul(a, b.swapaxes(0, 1)); }, square, square);
    expect_even_call("matmul tn", [](Tensor a, Tensor b) { return matmul(a.swapaxes(0, 1), b); }, square, square);
    expect_even_call("matmul 256x3072x768", nn, zeros({256, 768}, dtype), zeros({768, 3072}, dtype));
    expect_even_call("matmul 1x3072x768", nn, zeros({1, 768}, dtype), zeros({768, 3072}, dtype));
    expect_even_call("matmul tn 768x3072x256", [](Tensor a, Tensor b) { return matmul(a.swapaxes(0, 1), b); }, zeros({256, 768}, dtype),
                     zeros({256, 3072}, dtype));
  }
}

TEST(TaskGrid, OfAttention) {
  const auto gradient = [](Tensor q, Tensor k, Tensor v, Tensor g) {
    return grad<0, 1, 2>([&](Tensor a, Tensor b, Tensor c) { return (nn::attention(a, b, c, {.causal = true}) * g).astype(f32).sum(); })(q, k, v);
  };
  for (const DType dtype : {f32, bf16})
    for (const auto& [batch, length] : {std::pair{2, 512}, std::pair{1, 2048}}) {
      const Tensor x = zeros({batch, length, 8, 64}, dtype);
      expect_even_call("attention_grad of length " + std::to_string(length), gradient, x, x, x, x);
    }
}

TEST(TaskGrid, OfRowKernels) {
  const Tensor x = zeros({4096, 1024}), scale = ones({1024}), logits = zeros({256, 50257}), ids = zeros({256}, i32);
  expect_even_call("rms_norm", [](Tensor a, Tensor s) { return nn::rms_norm(a, s); }, x, scale);
  expect_even_call(
      "rms_norm_grad", [](Tensor a, Tensor s, Tensor g) { return grad<0, 1>([&](Tensor b, Tensor t) { return (nn::rms_norm(b, t) * g).sum(); })(a, s); }, x,
      scale, x);
  expect_even_call("softmax", [](Tensor a) { return softmax(a, -1); }, x);
  expect_even_call("gelu", [](Tensor a) { return nn::gelu(a); }, x);
  expect_even_call("gelu_grad", [](Tensor a, Tensor g) { return grad([&](Tensor b) { return (nn::gelu(b) * g).sum(); })(a); }, x, x);
  expect_even_call(
      "cross_entropy_grad", [](Tensor a, Tensor t) { return value_and_grad([&](Tensor b) { return nn::cross_entropy(b, t); })(a); }, logits, ids);
}

// What the measure says of a grid that is not even.
TEST(TaskGrid, WorkThatGrowsFromTaskToTaskIsSeen) {
  const ir::Kernel kernel = ir::parse_kernel(R"(kernel @k(out y: f32[64,64]) tasks (t in 64) cost 100000 {
    for i in 0..t + 1 {
      %0 = constant 1 : f32
      store y[t, i], %0
    }
  })");
  const std::vector<double> work = task_work(kernel);
  ASSERT_EQ(work.size(), 64u);
  EXPECT_EQ(work.front(), 2);
  EXPECT_EQ(work.back(), 128);
  ir::Program program;
  program.kernels.push_back(kernel);
  program.steps.emplace_back();
  EXPECT_GT(unevenness(program, 48, 1), 1.2);
  EXPECT_LT(unevenness(program, 4, 1), 1.1);
  EXPECT_EQ(unevenness(program, 48, 1e9), 1) << "too cheap to be shared";
}

}  // namespace
}  // namespace burin::test
