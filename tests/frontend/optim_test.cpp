// The numbers of optax 0.2.8 after five steps down the field sin(3 p) + 0.1 t, from the same start in f32.
#include <burin/burin.h>
#include <burin/optim.h>
#include <optional>
#include <gtest/gtest.h>

#include "tests/frontend/expect.h"

namespace burin {
namespace {

using test::expect_near;

struct Params {
  Tensor b, w;
  BURIN_TREE(b, w)
};

// A few ulp of values up to 2: the field is a sine, which each library rounds in its own way.
constexpr double tolerance = 1e-6;

template <class Step>
void expect_after_five(Step&& step, const std::vector<double>& b, const std::vector<double>& w) {
  Params p{tensor({-2.0, 0.3}), tensor({1.0, -0.5, 0.25}).reshape({1, 3})};
  for (int t = 0; t < 5; ++t) p = step(p, tree::map([t](const Tensor& x) { return sin(3 * x) + 0.1 * t; }, p));
  expect_near(p.b, b, tolerance);
  expect_near(p.w.reshape({3}), w, tolerance);
}

TEST(Optax, Sgd) {
  expect_after_five([](const Params& p, const Params& g) { return optim::sgd(p, g, 0.1); },
                    {-2.1526215076446533, -0.018410995602607727},
                    {0.7434107661247253, -0.19581520557403564, -0.02919181063771248});
}

TEST(Optax, Momentum) {
  for (const bool nesterov : {false, true}) {
    std::optional<SgdState<Params>> state;
    const auto step = [&](const Params& p, const Params& g) {
      if (!state) state = optim::sgd_state(p);
      auto [next, after] = optim::sgd(p, g, *state, 0.1, 0.9, nesterov);
      state = after;
      return next;
    };
    if (nesterov)
      expect_after_five(step, {-2.2768819332122803, -0.26552343368530273},
                        {0.03148135542869568, 0.03725208714604378, -0.24429810047149658});
    else
      expect_after_five(step, {-2.302246332168579, -0.3627113997936249},
                        {0.42262938618659973, 0.19281911849975586, -0.3270965814590454});
  }
}

TEST(Optax, AdamW) {
  std::optional<AdamState<Params>> state;
  const auto with = [&](const AdamOptions& options, bool all) {
    state.reset();
    return [&state, options, all](const Params& p, const Params& g) {
      if (!state) state = optim::adam_state(p);
      auto [next, after] = optim::adamw(p, g, *state, 0.05, options,
                                        [all](std::string_view path, const Tensor&) { return all || path == "w"; });
      state = after;
      return next;
    };
  };
  expect_after_five(with({.weight_decay = 0.01}, true), {-2.2361443042755127, 0.05007730796933174},
                    {0.7602783441543579, -0.2566404342651367, 0.0008710026741027832});
  expect_after_five(with({.b1 = 0.8, .b2 = 0.99, .eps = 1e-6, .weight_decay = 0.1}, false),
                    {-2.236052989959717, 0.05108334869146347},
                    {0.7312358617782593, -0.25218385457992554, -0.001218501478433609});
}

TEST(Optax, ClipByGlobalNorm) {
  const auto step = [](const Params& p, const Params& g) {
    return optim::sgd(p, optim::clip_by_global_norm(g, 0.5), 0.1);
  };
  expect_after_five(step, {-2.067267656326294, 0.15794065594673157},
                    {0.9363037347793579, -0.3736819922924042, 0.12440340965986252});
}

TEST(Optax, WarmupCosine) {
  const double steps[] = {0, 1, 5, 10, 11, 60, 109, 110, 1000};
  const double rates[] = {
      0, 0.10000002384185791, 0.5, 1, 0.9997779130935669, 0.5499999523162842, 0.10022205859422684, 0.1, 0.1};
  for (std::size_t i = 0; i < std::size(steps); ++i)
    EXPECT_NEAR(float(optim::warmup_cosine(int(steps[i]), 1.0, 10, 110, 0.0, 0.1)), rates[i], 2e-7) << steps[i];
  const double short_rates[] = {
      0.25, 0.6875, 1.125, 1.5625, 2, 1.8090169429779053, 1.3090169429779053, 0.6909829378128052, 0.19098293781280518,
      0,    0};
  for (int i = 0; i < 11; ++i)
    EXPECT_NEAR(float(optim::warmup_cosine(i, 2.0, 4, 9, 0.25, 0.0)), short_rates[i], 5e-7) << i;
}

}  // namespace
}  // namespace burin
