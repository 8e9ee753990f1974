// Optimisers, schedules, accumulated gradients and what a checkpoint holds.
#include <burin/io.h>
#include <burin/optim.h>

#include <cmath>

#include "tests/frontend/expect.h"
#include "tests/support/temporary_folder.h"

namespace burin {
namespace {

using test::expect_near;
using test::expect_values;

struct Layer {
  Tensor matrix, scale, bias;
  BURIN_TREE(matrix, scale, bias)
};

// AI-Hypercomputer/maxtext#5143: a sum of squares kept in 16 bits.
TEST(GlobalNorm, OfHalvesIsSummedInF32) {
  const auto norm = jit([](std::vector<Tensor> t) { return optim::global_norm(t); });
  for (DType dtype : {bf16, f16}) {
    EXPECT_EQ(float(norm({ones({1024}, dtype)})), 32);
    EXPECT_EQ(float(norm(std::vector<Tensor>(4, ones({256}, dtype)))), 32);
  }
}

// karpathy/nanochat#304: eps is added before the bias is corrected.
TEST(Adam, EpsilonStandsBehindTheBiasCorrection) {
  const auto step =
      jit([](Tensor p, Tensor g) { return optim::adamw(p, g, optim::adam_state(p), 1.0, {.weight_decay = 0}).first; });
  // As in optax, 1 - 0.999 is not exact in f32.
  expect_near(step(tensor({0.0}), tensor({1e-8})), {-0.5}, 1e-5);
}

// Lightning-AI/lit-llama#254: weight decay reaches norms and biases.
TEST(Adam, DecayReachesOnlyWhatIsAskedFor) {
  const Layer p{full({3, 5}, 1.5), full({5}, 1.5), full({5}, 1.5)};
  const auto step = jit([](Layer q) {
    return optim::adamw(q, tree::zeros_like(q), optim::adam_state(q), 0.1, {.weight_decay = 0.1},
                        [](std::string_view, const Tensor& leaf) { return leaf.rank() >= 2; })
        .first;
  });
  const Layer next = step(p);
  expect_near(next.matrix, std::vector<double>(15, 1.485), 1e-6);
  EXPECT_TRUE(array_equal(next.scale, p.scale));
  EXPECT_TRUE(array_equal(next.bias, p.bias));
}

// meta-pytorch/torchtune#1917: the mean of the means of batches that differ in their number of tokens.
TEST(Accumulation, OverUnequalBatchesWeighsTokens) {
  // Losses of the tokens of two micro-batches, padded to three; w has gradient equal to their mean.
  const Tensor losses = tensor({{4.0, 0.0, 0.0}, {1.0, 1.0, 1.0}}),
               valid = tensor({{true, false, false}, {true, true, true}});
  const auto sums = [](Tensor w, Tensor l, Tensor v) {
    return std::pair{sum(where(v, l * w, 0.0)), sum(v.astype(f32))};
  };
  const auto piece = jit([&](Tensor w, Tensor l, Tensor v) { return value_and_grad(sums)(w, l, v); });
  Tensor total = 0.0f, count = 0.0f, gradient = 0.0f;
  for (int i = 0; i < 2; ++i) {
    const auto [loss, n, g] = piece(1.0f, losses[i], valid[i]);
    total = total + loss;
    count = count + n;
    gradient = gradient + g;
  }
  EXPECT_EQ(float(total / count), 1.75);
  EXPECT_EQ(float(gradient / count), 1.75);

  // The same for a real loss: accumulated gradients are those of all tokens at once, whatever is masked.
  const Tensor w = random::normal(random::key(0), {4, 7}), x = random::normal(random::key(1), {2, 3, 4}),
               targets = tensor({{6, 0, -1}, {2, -1, 5}});
  const auto mean_loss = [](Tensor p, Tensor in, Tensor t) { return nn::cross_entropy(matmul(in, p), t, t >= 0); };
  const auto sum_loss = [&](Tensor p, Tensor in, Tensor t) { return mean_loss(p, in, t) * sum((t >= 0).astype(f32)); };
  const auto one_piece = jit(value_and_grad(sum_loss));
  const auto [whole_loss, whole] = jit(value_and_grad(mean_loss))(w, x, targets);
  Tensor pieces = zeros_like(w), loss = 0.0f;
  for (const auto& [row, from, to] : {std::tuple{0, 0, 3}, {1, 0, 1}, {1, 1, 3}}) {
    const auto [l, g] = one_piece(w, x[{row, slice(from, to)}], targets[{row, slice(from, to)}]);
    pieces = pieces + g;
    loss = loss + l;
  }
  EXPECT_NEAR(float(loss / 4), float(whole_loss), 1e-6);
  expect_near(pieces / 4, whole.to_vector<double>(), 1e-6);
}

// AI-Hypercomputer/maxtext#2883
TEST(Schedule, BoundariesOfWarmupAndCosine) {
  const auto rate = jit([](Tensor step) { return optim::warmup_cosine(step, 1.0, 10, 100, 0.0, 0.1); });
  for (const auto& [step, expected] : {std::pair{0, 0.0}, {5, 0.5}, {10, 1.0}, {55, 0.55}, {100, 0.1}, {1000, 0.1}})
    EXPECT_NEAR(float(rate(step)), expected, 1e-6) << step;
}

// AI-Hypercomputer/maxdiffusion#484: a checkpoint of n + 1 updates that says n, so that a batch is seen twice.
TEST(Resuming, GoesOnWithTheFirstUnseenBatch) {
  struct Run {
    Layer params;
    AdamState<Layer> optimiser;
    Key key;
    Tensor step;
    BURIN_TREE(params, optimiser, key, step)
  };
  const auto batch = [](int i) { return random::normal(random::fold_in(random::key(7), i), {4, 3}); };
  const auto rate = [](const Tensor& step) { return optim::warmup_cosine(step, 0.1, 2, 10); };
  const auto update = jit([&](Run run, Tensor x) {
    const auto [key, mine] = random::split(run.key);
    const auto loss = [&, sub = mine](Layer p) {
      return square(nn::dropout(sub, nn::linear(x, p.matrix * p.scale, p.bias), 0.25)).mean();
    };
    const Layer g = grad(loss)(run.params);
    const auto [params, optimiser] = optim::adamw(run.params, g, run.optimiser, rate(run.step));
    return Run{params, optimiser, key, run.step + 1};
  });
  const Layer start{random::normal(random::key(0), {3, 5}), ones({5}), zeros({5})};
  const Run fresh{start, optim::adam_state(start), random::key(1), tensor({0})[0]};
  const test::TemporaryFolder folder;
  const std::string file = folder / "run.safetensors";
  Run whole = fresh;
  for (int i = 0; i < 5; ++i) whole = update(whole, batch(i));
  Run run = fresh;
  for (int done = 0; done < 5; ++done) {
    io::save(file, run);
    run = io::load(file, fresh);  // as after a restart, before every update
    EXPECT_EQ(int(run.step), done);
    EXPECT_EQ(int(run.optimiser.count), done);
    EXPECT_EQ(float(jit(rate)(run.step)), float(jit(rate)(done)));
    run = update(run, batch(int(run.step)));
  }
  const std::vector<Tensor> a = tree::flatten(run), b = tree::flatten(whole);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(array_equal(a[i], b[i])) << i;
}

}  // namespace
}  // namespace burin
