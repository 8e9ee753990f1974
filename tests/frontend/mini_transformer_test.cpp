// The tutorial's model against numbers from elsewhere (JAX and float64), through every backend.
#include "tests/frontend/mini_transformer.h"

#include <burin/io.h>

#include <cmath>

#include "tests/frontend/each_backend.h"
#include "tests/frontend/expect.h"

namespace burin::test {
namespace {

constexpr int V = 32, T = 16, D = 64, H = 4, L = 2;

const std::map<std::string, Tensor>& reference() {
  static const auto all = io::load_safetensors("tests/data/mini_transformer.safetensors");
  return all;
}

// |a - b| / |b|, 2-norms over all elements.
double relative_error(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  return std::sqrt(difference / size);
}

Params reference_params() {
  return tree::map_with_path([](std::string_view path, Tensor) { return reference().at("params." + std::string(path)); },
                             init_model(random::key(0), V, T, D, L));
}
Batch reference_batch() { return {reference().at("inputs"), reference().at("targets")}; }

class MiniTransformer : public EachBackend {};

TEST_P(MiniTransformer, InitialParametersAreThoseOfJax) {
  for (const auto& [path, found] : tree::leaves(init_model(random::key(0), V, T, D, L))) {
    const Tensor& expected = reference().at("params." + path);
    // The evaluator and the interpreter compute erf_inv itself; JAX's approximation, which machine code follows, is up to
    // a dozen units in the last place away from it.
    if (!is("machine")) {
      EXPECT_LE(relative_error(found, expected), 1e-6) << path;
      continue;
    }
    const std::vector<float> a = found.to_vector<float>(), b = expected.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(std::abs(a[i] - b[i]), 2 * (std::nextafter(std::abs(b[i]), 1e9f) - std::abs(b[i]))) << path << ' ' << i;
  }
}

TEST_P(MiniTransformer, LogitsAndGradientsAreAsNearToTheTruthAsThoseOfJax) {
  const Params params = reference_params();
  const Batch batch = reference_batch();
  const auto limit = [](const std::string& leaf) { return 2 * reference().at("jax_error." + leaf).item<double>(); };
  EXPECT_LE(relative_error(model(params, batch.inputs, H), reference().at("logits_f64")), limit("logits"));
  const auto jitted = jit([](Params p, Batch b) { return grad(loss_fn)(p, b, H); });
  for (const Params& grads : {grad(loss_fn)(params, batch, H), jitted(params, batch)})
    for (const auto& [path, g] : tree::leaves(grads))
      EXPECT_LE(relative_error(g, reference().at("grads_f64." + path)), limit(path)) << path;
}

TEST_P(MiniTransformer, LossesFollowThoseOfJax) {
  const int steps = is("interpreter") ? 3 : 200;
  const auto step = jit(train_step, {.donate = {0}});
  Params params = reference_params();
  const std::vector<double> expected = reference().at("losses").to_vector<double>();
  for (int i = 0; i < steps; ++i) {
    Tensor loss;
    std::tie(params, loss) = step(params, reference_batch(), 1e-3);
    ASSERT_NEAR(double(loss), expected[static_cast<std::size_t>(i)], 1e-5 * expected[static_cast<std::size_t>(i)]) << "step " << i;
  }
}

TEST_P(MiniTransformer, MistakesSayWhatIsWrong) {
  const Params params = reference_params();
  const Tensor ids = reference().at("inputs");
  EXPECT_NE(error_text([&] { (void)model(params, ids, 5); }).find("5 heads do not divide a width of 64"), std::string::npos);
  EXPECT_NE(error_text([&] { (void)model(params, ids + 20, H); }).find("index 32 is out of range for axis 0 of f32[32,64]"), std::string::npos);
  EXPECT_NE(error_text([&] { (void)model(params, zeros({2, 17}, i32), H); }).find("slice: stop 17 is past axis 0 of f32[16,64]"), std::string::npos);
  const auto jitted = jit([](Params p, Tensor t) { return model(p, t, H); });
  EXPECT_NE(error_text([&] { (void)jitted(params, zeros({2, 17}, i32)); }).find("slice: stop 17 is past axis 0 of f32[16,64], position_embedding"), std::string::npos);
  EXPECT_NE(error_text([&] { (void)jitted(params, ids + 20); }).find("mini_transformer.h:"), std::string::npos);
}

TEST_P(MiniTransformer, MixedDtypesAreThoseOfJax) {
  const auto run = [](DType of_weights, DType of_scales) {
    Params p = tree::map_with_path(
        [=](std::string_view path, Tensor t) { return t.astype(path.find("norm") == std::string_view::npos ? of_weights : of_scales); },
        reference_params());
    return model(p, reference().at("inputs"), H).dtype();
  };
  EXPECT_EQ(run(bf16, bf16), bf16);
  EXPECT_EQ(run(f32, bf16), f32);
  EXPECT_EQ(run(bf16, f32), f32);
}

// causal_self_attention from its definition: each head by itself, each position over those up to it, in f64.
std::vector<double> attention_by_loops(const Attention& p, const Tensor& x, std::int64_t num_heads) {
  const auto [B, T, D] = x.shape<3>();
  const std::int64_t Dh = D / num_heads;
  const auto rows_times = [&, D = D](const std::vector<double>& rows, const Tensor& weight) {
    const std::vector<double> w = weight.to_vector<double>();
    std::vector<double> product(rows.size(), 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0, d = static_cast<std::size_t>(D); k < d; ++k) product[i] += rows[i / d * d + k] * w[k * d + i % d];
    return product;
  };
  const std::vector<double> input = x.to_vector<double>();
  const std::vector<double> q = rows_times(input, p.wq), k = rows_times(input, p.wk), v = rows_times(input, p.wv);
  std::vector<double> context(input.size());
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < num_heads; ++h)
      for (std::int64_t i = 0; i < T; ++i) {
        const auto at = [&, T = T, D = D](std::int64_t t, std::int64_t c) { return static_cast<std::size_t>((b * T + t) * D + h * Dh + c); };
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < Dh; ++c) score += q[at(i, c)] * k[at(j, c)];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(Dh))));
          sum += weights.back();
        }
        for (std::int64_t c = 0; c < Dh; ++c)
          for (std::int64_t j = 0; j <= i; ++j) context[at(i, c)] += weights[static_cast<std::size_t>(j)] / sum * v[at(j, c)];
      }
  return rows_times(context, p.wo);
}

TEST_P(MiniTransformer, AttentionIsALoopOverHeads) {
  const int batch = 2, heads = 3, length = 5, head_width = 7, width = heads * head_width;
  const auto keys = random::split<5>(random::key(4));
  const auto draw = [&](std::size_t i, const Shape& shape) { return random::normal(keys[i], shape, f64); };
  const auto weight = [&](std::size_t i) { return draw(i, {width, width}) * 0.3; };
  const Attention p{.wq = weight(0), .wk = weight(1), .wv = weight(2), .wo = weight(3)};
  const Tensor x = draw(4, {batch, length, width});
  const std::vector<double> expected = attention_by_loops(p, x, heads);
  const auto jitted = jit([](Attention p, Tensor x) { return causal_self_attention(p, x, heads); });
  expect_near(causal_self_attention(p, x, heads), expected, 1e-12);
  expect_near(jitted(p, x), expected, 1e-12);
  const auto single = [](Tensor t) { return t.astype(f32); };
  const Attention p32 = tree::map(single, p);
  expect_near(causal_self_attention(p32, single(x), heads), expected, 2e-5);
  expect_near(jitted(p32, single(x)), expected, 2e-5);
}

// Rows 1 and 2 are zero: the result is zero and the gradient scale / sqrt(eps), which is large, and finite.
TEST_P(MiniTransformer, ZeroRowsOfTheNormAreFinite) {
  const auto total = [](Tensor scale, Tensor x) { return sum(rms_norm(scale, x).astype(f32)); };
  const auto gradients = grad<0, 1>(total);
  for (const DType dtype : {f64, f32, bf16, f16}) {
    const Tensor scale = tensor({2.0, 1.0, -0.5, 1.5, 0.25}).astype(dtype);
    const Tensor x = (random::normal(random::key(6), {4, 5}) * tensor({1.0, 0.0, 0.0, 1.0})[{all, newaxis}]).astype(dtype);
    const Tensor y = rms_norm(scale, x);
    EXPECT_TRUE(bool(all_of(isfinite(y)))) << dtype << y;
    expect_values(y[slice(1, 3)], std::vector<double>(10, 0.0));
    for (const auto& [of_scale, of_x] : {gradients(scale, x), jit(gradients)(scale, x)}) {
      EXPECT_TRUE(bool(all_of(isfinite(of_scale)))) << dtype << of_scale;
      EXPECT_TRUE(bool(all_of(isfinite(of_x)))) << dtype << of_x;
      const Tensor row = scale.astype(f64) * 1000;
      expect_near(of_x[1], row.to_vector<double>(), dtype == bf16 ? 8 : 1);
      expect_near(of_x[2], row.to_vector<double>(), dtype == bf16 ? 8 : 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gate, MiniTransformer, every_backend(), backend_name);

TEST(MiniTransformer, MoreLayersCompileNoMoreOps) {
  (void)init_model(random::key(0), V, T, D, 2);
  const auto compiles = jit_statistics().compiles;
  (void)init_model(random::key(0), V, T, D, 12);
  EXPECT_EQ(jit_statistics().compiles, compiles);
  const Params params = reference_params();
  (void)model(params, reference().at("inputs"), H);
  const auto after_forward = jit_statistics().compiles;
  (void)model(params, reference().at("inputs"), H);
  EXPECT_EQ(jit_statistics().compiles, after_forward);
}

}  // namespace
}  // namespace burin::test
