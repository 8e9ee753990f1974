// Gradients that are known to go wrong: at the edge of a function's domain, through indices, broadcasts and products.
#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_near;
using test::expect_values;

// jax-ml/jax#17117: exp is taken of large masked logits before the mask; 0 * inf on the way back.
TEST(Gradients, OfASoftmaxWithMaskedLogits) {
  const Tensor x = tensor({1.0, 1.0, 100.0}), keep = tensor({true, true, false});
  const auto masked = [](Tensor t, Tensor k) { return where(k, t, -inf); };
  const auto by_hand = [&](Tensor t, Tensor k) {
    const Tensor m = masked(t, k), e = exp(m - stop_gradient(max(m)));
    return e / sum(e);
  };
  expect_near(jit([&](Tensor t, Tensor k) { return softmax(masked(t, k)); })(x, keep), {0.5, 0.5, 0}, 1e-7);
  expect_near(jit(by_hand)(x, keep), {0.5, 0.5, 0}, 1e-7);
  expect_near(jit([&](Tensor t, Tensor k) { return log_softmax(masked(t, k)); })(x, keep)[first(2)],
              {-0.6931472, -0.6931472}, 1e-7);
  const auto zero = [&](const Tensor& g) {
    expect_near(g, {0, 0, 0}, 1e-6);
    EXPECT_EQ(float(g[2]), 0);
  };
  zero(jit(grad([&](Tensor t, Tensor k) { return sum(softmax(masked(t, k))); }))(x, keep));
  zero(jit(grad([&](Tensor t, Tensor k) { return sum(by_hand(t, k)); }))(x, keep));
  const auto kept_log = [&](Tensor t, Tensor k) { return sum(where(k, log_softmax(masked(t, k)), 0.0)); };
  zero(jit(grad(kept_log))(x, keep));
  zero(jit(grad([&](Tensor t, Tensor k) { return log_softmax(masked(t, k))[first(2)].sum(); }))(x, keep));
  // A row without any kept logit.
  expect_values(jit(grad([&](Tensor t, Tensor k) { return sum(softmax(masked(t, k))); }))(x, keep & false), {0, 0, 0});
}

// ml-explore/mlx#3668: the inner where keeps the root's derivative finite; no pass may drop it.
TEST(Gradients, OfARootBehindTwoWheres) {
  const auto f = [](Tensor x) {
    const Tensor inside = x > 0;
    return where(inside, sqrt(where(inside, x, 1.0)), 0.0).sum();
  };
  expect_values(jit(grad(f))(tensor({0.0, 4.0})), {0, 0.25});
  expect_values(grad(f)(tensor({0.0, 4.0})), {0, 0.25});
  // Without it the plain meaning stays: 0 * inf.
  const Tensor g = jit(grad([](Tensor x) { return maximum(sqrt(x), 0.1).sum(); }))(tensor({0.0, 4.0}));
  expect_values(isnan(g), {1, 0});
}

// jax-ml/jax#4177
TEST(Gradients, OfASumOfSquaresAtTheOrigin) {
  const Tensor zero = zeros({3});
  expect_values(jit(grad([](Tensor x) { return sum(x * x); }))(zero), {0, 0, 0});
  const auto normed = [](Tensor x) { return x[0] / sqrt(sum(x * x) + 1e-6); };
  expect_near(jit(grad(normed))(zero), {1000, 0, 0}, 1e-3);
  expect_values(isnan(jit(grad([](Tensor x) { return sqrt(sum(x * x)); }))(zero)), {1, 1, 1});  // the plain meaning
}

// jax-ml/jax#7595: reading clamps but the way back drops, or the reverse.
TEST(Gradients, OfIndicesPastTheEnd) {
  const Tensor x = tensor({1.0, 2.0, 3.0}), ids = tensor({5});
  const auto read = [](Mode mode) { return [=](Tensor t, Tensor i) { return take(t, i, 0, mode); }; };
  const auto total = [](Mode mode) { return [=](Tensor t, Tensor i) { return take(t, i, 0, mode).sum(); }; };
  expect_values(jit(read(Mode::clip))(x, ids), {3});
  expect_values(jit(grad(total(Mode::clip)))(x, ids), {0, 0, 1});
  expect_values(isnan(jit(read(Mode::fill))(x, ids)), {1});
  expect_values(jit(grad(total(Mode::fill)))(x, ids), {0, 0, 0});
  // With zero instead of NaN.
  const auto or_zero = [](Tensor t, Tensor i) { return where(i < 3, take(t, i, 0, Mode::fill), 0.0); };
  expect_values(jit(or_zero)(x, ids), {0});
  expect_values(jit(grad([&](Tensor t, Tensor i) { return or_zero(t, i).sum(); }))(x, ids), {0, 0, 0});
  for (const std::string& text : {error_text([&] { (void)jit(read(Mode::error))(x, ids); }),
                                  error_text([&] { (void)jit(grad(total(Mode::error)))(x, ids); })})
    EXPECT_NE(text.find("index 5 is out of range for axis 0 of "), std::string::npos) << text;
}

// pytorch/pytorch#1631: the way back of a gather writes instead of adding.
TEST(Gradients, OfRepeatedIndicesAddUp) {
  const auto picked = [](Tensor t, Tensor i, Tensor c) { return sum(t[i] * c); };
  expect_near(jit(grad(picked))(tensor({0.1}), tensor({0, 0}), tensor({0.2, 0.3})), {0.5}, 1e-7);
  const auto rows = [](Tensor t, Tensor i, Tensor c) { return sum(nn::embedding(t, i) * c); };
  const Tensor cotangents = tensor({{1.0, 1.0}, {2.0, 2.0}, {3.0, 3.0}, {4.0, 4.0}});
  expect_values(jit(grad(rows))(zeros({5, 2}), tensor({3, 1, 3, 3}), cotangents), {0, 0, 2, 2, 0, 0, 8, 8, 0, 0});
}

// tenstorrent/tt-metal#40008: the way back of a broadcast forgets to sum over axes of extent 1.
TEST(Gradients, OfBroadcastsAreSums) {
  const Tensor h = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const auto g = jit(grad<0, 1>([](Tensor a, Tensor b) { return sum(a * b); }));
  const auto [dh, dm] = g(h, tensor({{10.0}, {20.0}}));
  expect_values(dh, {10, 10, 10, 20, 20, 20});
  expect_values(dm, {6, 15});
  EXPECT_EQ(dm.shape(), (Shape{2, 1}));
  for (const Shape& shape : {Shape{1, 1}, Shape{1}, Shape{}}) {
    const auto [all_ten, total] = g(h, full(shape, 10.0));
    expect_values(all_ten, {10, 10, 10, 10, 10, 10});
    expect_values(total, {21});
    EXPECT_EQ(total.shape(), shape);
  }
}

// tracel-ai/burn#3864: the gradient of running products divides by the elements.
TEST(Gradients, OfRunningProductsWithZeros) {
  // Row i of the square holds the elements up to i, and ones.
  const auto by_prod = [](Tensor x) {
    const std::int64_t n = x.shape()[0];
    return prod(where(tril(ones({n, n}, bool_)), broadcast_to(x, {n, n}), 1.0), 1).sum();
  };
  const auto by_steps = [](Tensor x) {
    Tensor running = x[0], total = running;
    for (std::int64_t i = 1; i < x.shape()[0]; ++i) {
      running = running * x[i];
      total = total + running;
    }
    return total;
  };
  const auto check = [&](const Tensor& x, const std::vector<double>& expected) {
    expect_values(jit(grad(by_prod))(x), expected);
    expect_values(jit(grad(by_steps))(x), expected);
  };
  check(tensor({2.0, 0.0, 3.0, 4.0}), {1, 32, 0, 0});
  check(tensor({0.0, 2.0, 3.0}), {9, 0, 0});
  check(tensor({2.0, 3.0, 0.0}), {4, 2, 6});
  check(tensor({2.0, 0.0, 0.0, 3.0}), {1, 2, 0, 0});
}

// jax-ml/jax#34228: the batched form of a clamped index loses the clamp in its derivative.
TEST(Gradients, OfBatchedClampedIndices) {
  const Tensor x = tensor({1.0}), ids = tensor({1}), one = tensor({1.0});
  const auto sliced = [](Tensor t, Tensor i) {
    return vmap([&](Tensor j) { return dynamic_slice(t, {j}, {1})[0]; })(i);
  };
  const auto taken = [](Tensor t, Tensor i) { return vmap([&](Tensor j) { return take(t, j, 0, Mode::clip); })(i); };
  const auto mapped = [](Tensor t, Tensor i) {
    return vmap([](Tensor u, Tensor j) { return take(u, j, 0, Mode::clip); }, {.in_axes = {unmapped, 0}})(t, i);
  };
  const auto check = [&](auto f) {
    expect_values(jit(f)(x, ids), {1});
    expect_values(jit([=](Tensor t, Tensor i, Tensor dt) {
                    return jvp([=](Tensor u) { return f(u, i); }, t, dt).second;
                  })(x, ids, one),
                  {1});
    expect_values(jit(grad([=](Tensor t, Tensor i) { return f(t, i).sum(); }))(x, ids), {1});
  };
  check(sliced);
  check(taken);
  check(mapped);
  // Several, some inside: the last element gets what was clamped to it.
  const auto g = jit(grad([=](Tensor t, Tensor i, Tensor c) { return (sliced(t, i) * c).sum(); }));
  expect_values(g(tensor({1.0, 2.0, 3.0}), tensor({-4, 1, 9, 2}), tensor({1.0, 10.0, 100.0, 1000.0})), {1, 10, 1100});
}

// pytorch/pytorch#91322: a softmax made of a maximum, which an empty axis does not have.
TEST(Gradients, OfSoftmaxesOfNothing) {
  for (const Shape& shape : {Shape{4, 0, 0}, Shape{2, 3, 0}, Shape{0, 5}, Shape{0}})
    for (bool log : {false, true}) {
      const auto f = [=](Tensor x) { return log ? log_softmax(x) : softmax(x); };
      const Tensor x = zeros(shape);
      EXPECT_EQ(jit(f)(x).shape(), shape);
      EXPECT_EQ(jit(grad([=](Tensor t) { return f(t).sum(); }))(x).shape(), shape);
    }
}

}  // namespace
}  // namespace burin
