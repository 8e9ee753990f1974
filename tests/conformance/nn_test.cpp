// Layers and losses: far arguments, cancelling sums, masks, heads and positions.
#include <cmath>
#include <numeric>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::error_text;
using test::expect_near;
using test::expect_values;

// tracel-ai/burn#5607: a variance as E[x^2] - E[x]^2 cancels in f32; vector lanes and tails differ.
TEST(LayerNorm, OfRowsFarFromZero) {
  const auto norm = jit([](Tensor x) { return nn::layer_norm(x, ones({x.shape()[0]}), {}, 1e-5); });
  const auto row = [](double m, int n) {
    std::vector<float> values;
    for (int i = 0; i < n; ++i) values.push_back(static_cast<float>(m + i * 1e-3));
    return values;
  };
  struct Row {
    double m, first, tolerance;
  };
  for (const Row& r :
       {Row{0, -1.341641, 1e-5}, Row{100, -1.341528, 5e-3}, Row{1000, -1.341508, 0.1}, Row{10000, -1.331333, 0.4}})
    EXPECT_NEAR(float(norm(tensor(row(r.m, 16)))[0]), r.first, r.tolerance) << r.m;
  // Rows that end inside a vector: the mean is rounded to f32, which shifts all by ulp(m) / deviation.
  for (int n : {1, 3, 17, 31})
    for (double m : {0.0, 100.0}) {
      const std::vector<float> values = row(m, n);
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
      double variance = 0;
      for (float v : values) variance += (v - mean) * (v - mean) / n;
      const std::vector<float> found = norm(tensor(values)).to_vector<float>();
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(found[i], (values[i] - mean) / std::sqrt(variance + 1e-5), m == 0 ? 1e-5 : 5e-3) << n << ' ' << m;
    }
}

// microsoft/onnxruntime#25855: a norm is recognised though its scale is larger than what is normalised.
TEST(LayerNorm, WithAScaleOfMoreRowsThanTheInput) {
  const Tensor x = tensor({{1.0, 3.0}}), gamma = tensor({{1.0}, {2.0}, {3.0}});
  const std::vector<double> expected = {-1, 1, -2, 2, -3, 3};
  EXPECT_THROW(nn::layer_norm(x, gamma), Error);
  const auto by_hand = jit([](Tensor t, Tensor g) {
    const Tensor centred = t - mean(t, -1, keepdims);
    return g * centred / sqrt(mean(square(centred), -1, keepdims));
  });
  expect_near(by_hand(x, gamma), expected, 1e-6);
  expect_near(jit([](Tensor t, Tensor g) { return g * (t - t.mean(0, keepdims)); })(tensor({{1.0, 3.0}, {3.0, 9.0}}),
                                                                                    tensor({{1.0}, {2.0}})),
              {-1, -3, 2, 6}, 1e-6);  // another axis
}

// ooples/AiDotNet.Tensors#355: the square overflows where 1 - tanh^2 is 0.
TEST(Gelu, FarOut) {
  using nn::Gelu;
  for (Gelu form : {Gelu::tanh, Gelu::erf})
    for (bool compiled : {true, false}) {
      const auto f = [=](Tensor x) { return nn::gelu(x, form); };
      const auto slope = grad([=](Tensor x) { return f(x).sum(); });
      const auto check = [&](const Tensor& x, const std::vector<double>& far) {
        std::vector<double> values, slopes;
        for (double v : far) {
          values.push_back(v > 0 ? v : 0);
          slopes.push_back(v > 0 ? 1 : 0);
        }
        expect_values(compiled ? jit(f)(x) : f(x), values);
        expect_values(compiled ? jit(slope)(x) : slope(x), slopes);
      };
      check(tensor({1e20, -1e20, 3e38, -3e38, 20.0, -20.0}),
            {static_cast<float>(1e20), static_cast<float>(-1e20), static_cast<float>(3e38), static_cast<float>(-3e38),
             20, -20});
      check(tensor({1e200, -1e200, 40.0, -40.0}, f64), {1e200, -1e200, 40, -40});
      check(tensor({60000.0, -60000.0, 300.0, -300.0, 30.0, -30.0}, f16), {60000, -60000, 300, -300, 30, -30});
      check(tensor({0x1p127, -0x1p127, 1024.0, -1024.0}, bf16), {0x1p127, -0x1p127, 1024, -1024});
    }
  const Tensor one = tensor({1.0, -1.0});
  const auto slope = [&](Gelu form) { return jit(grad([=](Tensor x) { return nn::gelu(x, form).sum(); }))(one); };
  expect_near(slope(Gelu::erf), {1.0833155, -0.0833155}, 1e-6);
  expect_near(slope(Gelu::tanh), {1.0829641, -0.0829641}, 1e-6);
}

// The same fault in other activations, dtypes and at the ends of their ranges.
TEST(Activations, HaveTheirLimitsFarOutInEveryDtype) {
  struct Activation {
    const char* name;
    Tensor (*f)(const Tensor&);
    double value_at_minus, slope_at_minus, slope_at_plus;  // values at plus are x, but for the bounded ones
    bool bounded;
  };
  const Activation all[] = {
      {"gelu", [](const Tensor& x) { return nn::gelu(x); }, 0, 0, 1, false},
      {"gelu erf", [](const Tensor& x) { return nn::gelu(x, nn::Gelu::erf); }, 0, 0, 1, false},
      {"silu", [](const Tensor& x) { return nn::silu(x); }, 0, 0, 1, false},
      {"relu", [](const Tensor& x) { return nn::relu(x); }, 0, 0, 1, false},
      {"softplus", [](const Tensor& x) { return nn::softplus(x); }, 0, 0, 1, false},
      {"elu", [](const Tensor& x) { return nn::elu(x); }, -1, 0, 1, false},
      {"sigmoid", [](const Tensor& x) { return nn::sigmoid(x); }, 0, 0, 0, true},
      {"tanh", [](const Tensor& x) { return tanh(x); }, -1, 0, 0, true},
  };
  for (DType dtype : {f32, f64, bf16, f16}) {
    const double largest = dtype == f16 ? 65504 : dtype == f64 ? 0x1.fp1023 : 0x1.fcp127;
    for (double at : {largest, largest / 4, std::sqrt(largest), 1000.0, 800.0})
      for (const Activation& a : all)
        for (bool compiled : {true, false}) {
          const auto f = [&](Tensor x) { return a.f(x); };
          const auto slope = grad([&](Tensor x) { return a.f(x).sum(); });
          const Tensor x = tensor({at, -at}, dtype);
          const double plus = x.to_vector<double>()[0];
          SCOPED_TRACE(std::string(a.name) + " " + std::string(name(dtype)) + " " + std::to_string(plus));
          expect_values(compiled ? jit(f)(x) : f(x), {a.bounded ? 1 : plus, a.value_at_minus});
          expect_values(compiled ? jit(slope)(x) : slope(x), {a.slope_at_plus, a.slope_at_minus});
        }
  }
}

// pytorch/pytorch#11752: max + log(sum) in one rounding drowns the logarithm.
TEST(CrossEntropy, OfHugeLogits) {
  const auto loss = jit([](Tensor l, Tensor t) { return nn::cross_entropy(l, t); });
  const double two_ulps = 2 * 0x1p-24;
  expect_near(loss(tensor({{1e8, 1e8}}), tensor({1})), {0.6931472}, two_ulps);
  expect_near(loss(tensor({{-1e8, -1e8}}), tensor({0})), {0.6931472}, two_ulps);
  expect_near(jit([](Tensor l) { return log_softmax(l); })(tensor({1e8, 1e8})), {-0.6931472, -0.6931472}, two_ulps);
  expect_near(jit(grad([](Tensor l, Tensor t) { return nn::cross_entropy(l, t); }))(tensor({{1e8, 1e8}}), tensor({1})),
              {0.5, -0.5}, 1e-7);
}

// pytorch/pytorch#12670: a label out of range reads memory. Positions to ignore are told by a mask; all others are
// checked, from the end too.
TEST(CrossEntropy, LabelsOutOfRangeAndIgnored) {
  const auto loss = [](Tensor l, Tensor t, Tensor ignored) { return nn::cross_entropy(l, t, t != ignored); };
  const auto compiled = jit(loss);
  const Tensor logits = zeros({2, 4});
  for (int label : {4, -5, -4}) {
    const std::string text = error_text([&] { (void)compiled(logits, tensor({0, label}), -1); });
    EXPECT_NE(text.find("index " + std::to_string(label) + " is out of range"), std::string::npos) << text;
  }
  // The mask comes before any look-up: -1 is ignored, no class.
  expect_near(compiled(logits, tensor({0, -1}), -1), {1.3862944}, 1e-6);
  const auto clipped = jit([](Tensor l, Tensor t) {
    return take_along_axis(log_softmax(l), t[{all, newaxis}], -1, Mode::clip);
  });
  expect_near(clipped(logits, tensor({4, 100})), {-1.3862944, -1.3862944}, 1e-6);
  const auto filled = jit([](Tensor l, Tensor t) {
    return take_along_axis(log_softmax(l), t[{all, newaxis}], -1, Mode::fill);
  });
  expect_values(isnan(filled(logits, tensor({4, 3}))), {1, 0});
  // An ignored class that exists stays in the denominator of the others.
  expect_near(compiled(logits, tensor({0, 1}), 0), {1.3862944}, 1e-6);
  expect_near(jit(grad(loss))(logits, tensor({0, 1}), 0), {0, 0, 0, 0, 0.25, -0.75, 0.25, 0.25}, 1e-7);
}

// A sequence of n values 0, 1, 2, ... under keys that are all alike: attention gives means of what is seen.
Tensor counting(std::int64_t n) { return arange(n).astype(f32).reshape({1, n, 1, 1}); }
Tensor alike(std::int64_t n) { return zeros({1, n, 1, 1}); }

// ml-explore/mlx#2835
TEST(Attention, CausalWithFewerQueriesThanKeysIsAlignedAtTheEnd) {
  const auto f = jit([](Tensor q, Tensor k, Tensor v) { return nn::attention(q, k, v, {.causal = true}); });
  expect_near(f(alike(2), alike(5), counting(5)), {1.5, 2.0}, 1e-6);
  const auto from_the_top =
      jit([](Tensor q, Tensor k, Tensor v) { return nn::attention(q, k, v, {.causal = true, .offset = 0}); });
  expect_near(from_the_top(alike(2), alike(5), counting(5)), {0, 0.5}, 1e-6);
}

// hyprstream/hyprstream#1521: the mask for several new tokens forgets those in the cache.
TEST(Attention, WithACacheSeesWhatCameBefore) {
  struct Cache {
    Tensor k, v, length;
    BURIN_TREE(k, v, length)
  };
  // New keys and values are written behind the old ones; a query sees all up to itself.
  const auto extend = jit(
      [](Cache c, Tensor q, Tensor k, Tensor v) {
        c.k = dynamic_update_slice(c.k, k, {0, c.length, 0, 0});
        c.v = dynamic_update_slice(c.v, v, {0, c.length, 0, 0});
        const std::int64_t fresh = q.shape()[1], room = c.k.shape()[1];
        const Tensor mask = iota({fresh, room}, 1) <= iota({fresh, room}, 0) + c.length;
        c.length = c.length + fresh;
        return std::pair{nn::attention(q, c.k, c.v, {}, mask), c};
      },
      {.donate = {0}});
  const auto run = [&](const std::vector<std::int64_t>& pieces) {
    Cache cache{full({1, 7, 1, 1}, 100.0), full({1, 7, 1, 1}, 1e6), tensor({0})[0]};  // what is not written is not seen
    std::vector<double> found;
    std::int64_t from = 0;
    for (std::int64_t n : pieces) {
      const Tensor v = counting(5)[{all, slice(from, from + n)}];
      const auto [out, next] = extend(cache, alike(n), alike(n), v);
      for (double x : out.to_vector<double>()) found.push_back(x);
      cache = next;
      from += n;
    }
    return tensor(found);
  };
  const std::vector<double> means = {0, 0.5, 1, 1.5, 2};
  expect_near(run({3, 2}), means, 1e-6);
  expect_near(run({5}), means, 1e-6);
  expect_near(run({1, 1, 1, 1, 1}), means, 1e-6);
  // Without a cache object: the last queries over all keys.
  const auto tail = jit([](Tensor q, Tensor k, Tensor v) { return nn::attention(q, k, v, {.causal = true}); });
  expect_near(concatenate({tail(alike(3), alike(3), counting(3)), tail(alike(2), alike(5), counting(5))}, 1), means,
              1e-6);
}

// ml-explore/mlx-lm#390: a window one key too wide, and another one in decoding.
TEST(Attention, WindowsAreTheSameInPrefillAndDecoding) {
  const std::int64_t window = 3;
  const auto windowed = jit([=](Tensor q, Tensor k, Tensor v, Tensor position) {
    const std::int64_t n = q.shape()[1], m = k.shape()[1];
    const Tensor i = iota({n, m}, 0) + position, j = iota({n, m}, 1);
    return nn::attention(q, k, v, {}, (j <= i) & (j > i - window));
  });
  const std::vector<double> expected = {0, 0.5, 1, 2, 3};
  expect_near(windowed(alike(5), alike(5), counting(5), 0), expected, 1e-6);
  for (int t = 0; t < 5; ++t)
    expect_near(windowed(alike(1), alike(5), counting(5), t), {expected[static_cast<std::size_t>(t)]}, 1e-6);
}

// PSAL-POSTECH/ONNXim#33: queries that share keys are divided by the wrong number, and numbers that do not divide pass.
TEST(Attention, HeadsShareKeysInOrder) {
  const auto f = jit([](Tensor q, Tensor k, Tensor v) { return nn::attention(q, k, v); });
  const auto own_head = [](std::int64_t heads) {  // every key's value is the number of its head
    return broadcast_to(arange(heads).astype(f32).reshape({1, 1, heads, 1}), {1, 3, heads, 1});
  };
  for (const auto& [queries, keys] : {std::pair{28, 4}, {12, 12}, {8, 1}}) {
    std::vector<double> expected;
    for (int h = 0; h < queries; ++h) expected.push_back(h / (queries / keys));
    expect_near(f(zeros({1, 1, queries, 1}), zeros({1, 3, keys, 1}), own_head(keys)), expected, 1e-6);
  }
  const std::string text = error_text([&] { (void)f(zeros({1, 1, 3, 1}), zeros({1, 3, 2, 1}), own_head(2)); });
  EXPECT_EQ(text.find("attention: 3 query heads cannot share 2 key heads"), 0u) << text;
  EXPECT_NE(error_text([&] { (void)f(zeros({1, 1, 2, 1}), zeros({1, 3, 4, 1}), own_head(4)); }), "no error");
  EXPECT_NE(error_text([&] { (void)f(zeros({1, 1, 4, 1}), zeros({1, 3, 4, 1}), own_head(2)); }), "no error");
  // The gradient of shared keys is the sum over their queries, as if they had been repeated.
  const Tensor q = random::normal(random::key(1), {2, 5, 6, 3}), k = random::normal(random::key(2), {2, 5, 2, 3}),
               v = random::normal(random::key(3), {2, 5, 2, 3});
  const auto loss = [](Tensor a, Tensor b, Tensor c) { return square(nn::attention(a, b, c, {.causal = true})).sum(); };
  const auto repeated = [&](Tensor a, Tensor b, Tensor c) { return loss(a, repeat(b, 3, 2), repeat(c, 3, 2)); };
  const auto [shared_k, shared_v] = jit(grad<1, 2>(loss))(q, k, v);
  const auto [repeated_k, repeated_v] = jit(grad<1, 2>(repeated))(q, k, v);
  expect_near(shared_k, repeated_k.to_vector<double>(), 1e-6);
  expect_near(shared_v, repeated_v.to_vector<double>(), 1e-6);
}

// Rotary positions as users write them: x is [batch, head, position, size].
Tensor angles(const Tensor& positions, std::int64_t size) {
  const Tensor rates = pow(10000.0, arange(size / 2).astype(f32) * (-2.0 / static_cast<double>(size)));
  return positions.astype(f32)[{all, newaxis}] * rates;
}
Tensor rotate_pairs(const Tensor& x, const Tensor& positions) {
  const Shape shape = x.shape();
  const Tensor angle = angles(positions, shape[3]);
  const Tensor pairs = x.reshape({shape[0], shape[1], shape[2], shape[3] / 2, 2});
  const Tensor a = pairs[{ellipsis, 0}], b = pairs[{ellipsis, 1}];
  return stack({a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle)}, -1).reshape(shape);
}
Tensor rotate_halves(const Tensor& x, const Tensor& positions) {
  const std::int64_t half = x.shape()[3] / 2;
  const Tensor angle = angles(positions, 2 * half);
  const Tensor a = x[{ellipsis, first(half)}], b = x[{ellipsis, slice(half, 2 * half)}];
  return concatenate({a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle)}, -1);
}

// tenstorrent/tt-metal#26844
TEST(RotaryPositions, OfPairsAndOfHalvesAreDifferent) {
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0}).reshape({1, 1, 1, 4}), one = tensor({1});
  expect_near(jit(rotate_pairs)(x, one), {-1.142640, 1.922076, 2.959851, 4.029800}, 2e-6);
  expect_near(jit(rotate_halves)(x, one), {-1.984111, 1.959901, 2.462378, 4.019800}, 2e-6);
}

// ml-explore/mlx#3949: a batched step of one token rotates the first row alone.
TEST(RotaryPositions, OfOneTokenRotateEveryRow) {
  const Tensor x = ones({2, 3, 1, 4}), six = tensor({6});
  const auto check = [&](const Tensor& found, const std::vector<double>& row) {
    std::vector<double> expected;
    for (int i = 0; i < 6; ++i) expected.insert(expected.end(), row.begin(), row.end());
    expect_near(found, expected, 2e-6);
  };
  check(jit(rotate_pairs)(x, six), {1.239586, .680755, .938237, 1.058165});
  check(jit(rotate_halves)(x, six), {1.239586, .938237, .680755, 1.058165});
}

}  // namespace
}  // namespace burin
