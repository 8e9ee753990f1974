#include <burin/optim.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <string>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_near;
using test::expect_values;

TEST(Nn, ActivationsHaveFiniteGradientsFarOut) {
  const Tensor far = tensor({-1e20, -100.0, 0.0, 100.0, 1e20});
  const auto slope = [&](auto f) { return grad([=](Tensor x) { return f(x).sum(); })(far); };
  expect_near(slope([](Tensor x) { return nn::gelu(x); }), {0, 0, 0.5, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::gelu(x, nn::Gelu::erf); }), {0, 0, 0.5, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::silu(x); }), {0, 0, 0.5, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::relu(x); }), {0, 0, 0, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::softplus(x); }), {0, 0, 0.5, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::elu(x); }), {0, 0, 1, 1, 1}, 1e-30);
  expect_near(slope([](Tensor x) { return nn::leaky_relu(x, 0.5); }), {0.5, 0.5, 1, 1, 1}, 0);
}

TEST(Nn, ActivationsKeepNan) {
  const Tensor x = tensor({burin::nan, 1.0});
  for (const Tensor& y : {nn::gelu(x), nn::gelu(x, nn::Gelu::erf), nn::silu(x), nn::relu(x), nn::softplus(x), nn::elu(x), nn::leaky_relu(x),
                          nn::log_sigmoid(x), nn::sigmoid(x), clip(x, -1, 1), softmax(x), log_softmax(x)})
    EXPECT_TRUE(bool(isnan(y[0]))) << y;
}

TEST(Nn, SoftplusIsSmoothAtZero) {
  const auto second = [](auto f) { return grad(grad(f)); };
  EXPECT_NEAR(float(second([](Tensor x) { return nn::softplus(x); })(0.0)), 0.25, 1e-7);
  EXPECT_NEAR(float(second([](Tensor x) { return nn::log_sigmoid(x); })(0.0)), -0.25, 1e-7);
  EXPECT_EQ(float(grad([](Tensor x) { return nn::softplus(x); })(inf)), 1);
  EXPECT_EQ(float(grad([](Tensor x) { return nn::log_sigmoid(x); })(-inf)), 1);
}

TEST(Nn, GeluFormsAreDifferentFunctions) {
  const Tensor x = tensor({0.5, 1.0, -1.0});
  const auto exact = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
  const auto with_tanh = [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))); };
  expect_near(nn::gelu(x, nn::Gelu::erf), {exact(0.5), exact(1), exact(-1)}, 1e-7);
  expect_near(nn::gelu(x), {with_tanh(0.5), with_tanh(1), with_tanh(-1)}, 1e-7);
}

TEST(Nn, NormsOfZeroRowsAreFinite) {
  const Tensor zero = zeros({2, 3});
  const auto all = [](Tensor x) { return (nn::rms_norm(x, ones({3})) + nn::layer_norm(x, ones({3}), zeros({3}))).sum(); };
  EXPECT_TRUE(bool(tree::all_finite(value_and_grad(all)(zero))));
  EXPECT_EQ(nn::rms_norm(ones({2, 3}, bf16), ones({3})).dtype(), f32);
  EXPECT_EQ(nn::rms_norm(ones({2, 3}, bf16), ones({3}, bf16)).dtype(), bf16);
  expect_near(nn::layer_norm(tensor({1.0, 3.0}), ones({2}), zeros({2}), 0), {-1, 1}, 1e-6);
}

TEST(Nn, AttentionIsThePlainLoop) {
  const std::int64_t B = 2, Tq = 3, Tk = 5, H = 4, D = 6;
  const Tensor q = random::normal(random::key(1), {B, Tq, H, D}), k = random::normal(random::key(2), {B, Tk, H, D}),
               v = random::normal(random::key(3), {B, Tk, H, D});
  const std::vector<double> qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>();
  const auto at = [&](const std::vector<double>& x, std::int64_t T, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t d) {
    return x[static_cast<std::size_t>(((b * T + t) * H + h) * D + d)];
  };
  for (bool causal : {false, true}) {
    std::vector<double> expected;
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t t = 0; t < Tq; ++t)
        for (std::int64_t h = 0; h < H; ++h) {
          std::vector<double> weights;
          double total = 0;
          for (std::int64_t s = 0; s < Tk; ++s) {
            double score = 0;
            for (std::int64_t d = 0; d < D; ++d) score += at(qs, Tq, b, t, h, d) * at(ks, Tk, b, s, h, d);
            // The last query sees every key.
            const bool seen = !causal || s <= t + (Tk - Tq);
            weights.push_back(seen ? std::exp(score / std::sqrt(static_cast<double>(D))) : 0);
            total += weights.back();
          }
          for (std::int64_t d = 0; d < D; ++d) {
            double out = 0;
            for (std::int64_t s = 0; s < Tk; ++s) out += weights[static_cast<std::size_t>(s)] / total * at(vs, Tk, b, s, h, d);
            expected.push_back(out);
          }
        }
    expect_near(nn::attention(q, k, v, {.causal = causal}), expected, 2e-6);
  }
  const Tensor blind = nn::attention(q, k, v, {}, zeros({Tq, Tk}, bool_));
  EXPECT_TRUE(bool(all_of(blind == 0)));
}

TEST(Nn, AttentionSeesKeysBeforeALength) {
  const std::int64_t B = 2, Tq = 3, Tk = 5, H = 4, D = 6;
  const Tensor q = random::normal(random::key(1), {B, Tq, H, D}), k = random::normal(random::key(2), {B, Tk, H, D}),
               v = random::normal(random::key(3), {B, Tk, H, D});
  const auto shortened = [](const Tensor& x, std::int64_t row, std::int64_t length) { return x[{slice(row, row + 1), slice(0, length)}]; };
  const Tensor each = nn::attention(q, k, v, {.kv_length = tensor({4, 2})}), same = nn::attention(q, k, v, {.kv_length = full({}, 3, i32)});
  for (std::int64_t row = 0; row < B; ++row)
    for (const auto& [found, length] : {std::pair{each, std::int64_t{row == 0 ? 4 : 2}}, {same, std::int64_t{3}}})
      expect_near(found[{slice(row, row + 1)}],
                  nn::attention(q[{slice(row, row + 1)}], shortened(k, row, length), shortened(v, row, length)).to_vector<double>(), 2e-6);
  EXPECT_TRUE(bool(all_of(nn::attention(q, k, v, {.kv_length = full({}, 0, i32)}) == 0)));
  EXPECT_TRUE(bool(all_of(nn::attention(q, k, v, {.kv_length = full({}, -1, i32)}) == 0)));
  EXPECT_TRUE(bool(all_of(nn::attention(q, k, v, {.kv_length = full({}, 9, i32)}) == nn::attention(q, k, v))));
}

// As long as it need be to be fused: what lies beyond the length is not read.
TEST(Nn, AttentionDoesNotReadBeyondItsLength) {
  if (std::string(std::getenv("BURIN_BACKEND")) == "evaluator") GTEST_SKIP() << "the evaluator reads everything";
  const std::int64_t T = 300;
  const auto step = [](Tensor q, Tensor k, Tensor v, Tensor length) {
    const auto run = [&](Tensor a, Tensor b, Tensor c) { return nn::attention(a, b, c, {.causal = true, .kv_length = length}); };
    auto [out, pull] = vjp(run, q, k, v);
    return std::pair(out, pull(ones_like(out)));
  };
  const Tensor q = random::normal(random::key(1), {2, T, 4, 8}), far = arange(T).reshape({T, 1, 1}) >= 128;
  const Tensor k = random::normal(random::key(2), {2, T, 2, 8}), v = random::normal(random::key(3), {2, T, 2, 8});
  const Tensor nans = full({}, std::numeric_limits<double>::quiet_NaN(), f32), length = tensor({128, 60});
  const auto jitted = jit(step);
  const auto [out, grads] = jitted(q, k, v, length);
  const auto [far_out, far_grads] = jitted(q, where(far, nans, k), where(far, nans, v), length);
  EXPECT_TRUE(bool(all_of(out == far_out)));
  const auto& [dq, dk, dv] = grads;
  const auto& [far_dq, far_dk, far_dv] = far_grads;
  EXPECT_TRUE(bool(all_of(dq == far_dq)));
  EXPECT_TRUE(bool(all_of(dk == far_dk)));
  EXPECT_TRUE(bool(all_of(dv == far_dv)));
  EXPECT_TRUE(bool(all_of(where(far, dk, 0.0) == 0)));
}

TEST(Nn, CrossEntropyCountsValidPositions) {
  const Tensor logits = tensor({{1.0, 2.0, 3.0}, {0.0, 0.0, 0.0}}), targets = tensor({2, 1});
  const double first = std::log(std::exp(-2.0) + std::exp(-1.0) + 1), second = std::log(3.0);
  expect_near(nn::cross_entropy(logits, targets), {(first + second) / 2}, 1e-6);
  expect_near(nn::cross_entropy(logits, targets, tensor({false, true})), {second}, 1e-6);
  expect_values(nn::cross_entropy(logits, targets, tensor({false, false})), {0});
  expect_near(nn::cross_entropy(logits, tensor({2, -7}), tensor({true, false})), {first}, 1e-6);
  EXPECT_NE(error_text([&] { (void)nn::cross_entropy(logits, tensor({2, -1})); }).find("index -1 is out of range"), std::string::npos);
  const Tensor g = grad([&](Tensor l) { return nn::cross_entropy(l, targets, tensor({false, false})); })(logits);
  EXPECT_TRUE(bool(all_of(g == 0)));
}

TEST(Nn, DropoutKeepsTheMean) {
  const Tensor kept = nn::dropout(random::key(0), ones({10000}), 0.25);
  EXPECT_NEAR(float(kept.mean()), 1, 0.03);
  expect_near(kept.max(), {1 / 0.75}, 1e-6);
  EXPECT_EQ(float(kept.min()), 0);
}

struct Params {
  Tensor w, b;
  BURIN_TREE(w, b)
};

TEST(Optim, SgdAndMomentum) {
  const Params p{tensor({1.0}), tensor({2.0})}, g{tensor({0.5}), tensor({1.0})};
  expect_near(optim::sgd(p, g, 0.1).w, {0.95}, 1e-7);
  auto state = optim::sgd_state(p);
  auto [p1, s1] = optim::sgd(p, g, state, 0.1, 0.9);
  auto [p2, s2] = optim::sgd(p1, g, s1, 0.1, 0.9);
  expect_near(p2.w, {1 - 0.05 - 0.1 * (0.5 + 0.45)}, 1e-7);
  expect_near(s2.trace.b, {1.9}, 1e-7);
}

TEST(Optim, AdamwIsItsFormula) {
  const Params start{tensor({1.0}), tensor({-2.0})}, g{tensor({0.5}), tensor({1.5})};
  const auto reference = [](double p, double grad, bool decay) {
    double m = 0, v = 0;
    for (int t = 1; t <= 3; ++t) {
      m = 0.9 * m + 0.1 * grad;
      v = 0.999 * v + 0.001 * grad * grad;
      const double update = m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8) + (decay ? 0.01 * p : 0);
      p -= 0.1 * update;
    }
    return p;
  };
  const auto step = jit([](Params p, AdamState<Params> s, Params grads, Tensor rate) {
    return optim::adamw(p, grads, s, rate, {.weight_decay = 0.01}, [](std::string_view path, const Tensor&) { return path != "b"; });
  });
  Params p = start;
  auto state = optim::adam_state(p);
  for (int t = 0; t < 3; ++t) std::tie(p, state) = step(p, state, g, 0.1);
  // 1 - 0.999^t loses about ten bits of f32, as it does in optax.
  expect_near(p.w, {reference(1, 0.5, true)}, 2e-5);
  expect_near(p.b, {reference(-2, 1.5, false)}, 2e-5);
  EXPECT_EQ(int(state.count), 3);
}

TEST(Optim, ClipsByGlobalNorm) {
  const Params g{tensor({3.0}), tensor({4.0})};
  EXPECT_EQ(float(optim::global_norm(g)), 5);
  expect_near(optim::clip_by_global_norm(g, 1.0).b, {0.8}, 1e-7);
  expect_values(optim::clip_by_global_norm(g, 10.0).b, {4});
  const Params zero{zeros({1}), zeros({1})};
  const auto clipped = [](Params q) { return optim::clip_by_global_norm(q, 1.0).w.sum(); };
  expect_values(grad(clipped)(zero).w, {1});
  expect_values(grad(clipped)(zero).b, {0});
}

TEST(Optim, WarmupThenCosine) {
  const auto rate = [](int step) { return float(optim::warmup_cosine(step, 1.0, 10, 110, 0.0, 0.1)); };
  EXPECT_EQ(rate(0), 0);
  EXPECT_NEAR(rate(5), 0.5, 1e-6);
  EXPECT_NEAR(rate(10), 1, 1e-6);
  EXPECT_NEAR(rate(60), 0.55, 1e-6);
  EXPECT_NEAR(rate(110), 0.1, 1e-6);
  EXPECT_NEAR(rate(1000), 0.1, 1e-6);
  const int line = __LINE__ + 1;
  const std::string text = error_text([] { (void)optim::warmup_cosine(0, 1, 5, 5); });
  EXPECT_EQ(text, "warmup_cosine: expected 0 <= warmup < total, found 5 and 5 (nn_test.cpp:" + std::to_string(line) + ", in warmup_cosine)");
}

}  // namespace
}  // namespace burin
