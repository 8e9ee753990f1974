// What runs on a product's tile costs little more than the product: counters are time over the time of the product alone, or over the
// same in two calls.
#include <burin/burin.h>

#include "bench/paired.h"

namespace burin {
namespace {

struct Operands {
  Tensor x = random::normal(random::key(1), {1024, 512}), w = random::normal(random::key(2), {512, 2048}) * 0.05,
         g = random::normal(random::key(3), {1024, 2048});
};

void gelu_on_the_tile(benchmark::State& state) {
  const Operands o;
  auto product = jit([](Tensor x, Tensor w) { return matmul(x, w); });
  auto both = jit([](Tensor x, Tensor w) { return nn::gelu(matmul(x, w)); });
  state.counters["over_product"] = bench::time_in_turn(state, [&] { return both(o.x, o.w); }, [&] { return product(o.x, o.w); }).ratio();
}
BENCHMARK(gelu_on_the_tile)->Unit(benchmark::kMillisecond);

void gelu_on_the_tile_or_after(benchmark::State& state) {
  const Operands o;
  auto product = jit([](Tensor x, Tensor w) { return matmul(x, w); });
  auto gelu = jit([](Tensor y) { return nn::gelu(y); });
  auto both = jit([](Tensor x, Tensor w) { return nn::gelu(matmul(x, w)); });
  state.counters["over_two_calls"] = bench::time_in_turn(state, [&] { return both(o.x, o.w); }, [&] { return gelu(product(o.x, o.w)); }).ratio();
}
BENCHMARK(gelu_on_the_tile_or_after)->Unit(benchmark::kMillisecond);

void update_on_the_gradients_tile(benchmark::State& state) {
  const Operands o;
  const auto gradient = [](Tensor x, Tensor g) { return matmul(x.swapaxes(0, 1), g); };
  auto alone = jit(gradient);
  auto update = jit([](Tensor w, Tensor d) { return w - 1e-3 * d; }, {.donate = {0}});
  auto both = jit([&](Tensor w, Tensor x, Tensor g) { return w - 1e-3 * gradient(x, g); }, {.donate = {0}});
  Tensor one = o.w + 0, two = o.w + 0;
  state.counters["over_two_calls"] =
      bench::time_in_turn(state, [&] { return one = both(one, o.x, o.g); }, [&] { return two = update(two, alone(o.x, o.g)); }).ratio();
}
BENCHMARK(update_on_the_gradients_tile)->Unit(benchmark::kMillisecond);

// What a product packs it computes on the way: f32 weights rounded to bf16, rows scaled by a norm.
void cast_while_packing(benchmark::State& state) {
  const Operands o;
  const Tensor x = o.x.astype(bf16), w = o.w.astype(bf16);
  auto product = jit([](Tensor a, Tensor b) { return matmul(a, b); });
  auto both = jit([](Tensor a, Tensor b) { return matmul(a, b.astype(bf16)); });
  state.counters["over_product"] = bench::time_in_turn(state, [&] { return both(x, o.w); }, [&] { return product(x, w); }).ratio();
}
BENCHMARK(cast_while_packing)->Unit(benchmark::kMillisecond);

void norm_scale_while_packing(benchmark::State& state) {
  const Operands o;
  const Tensor w = o.w.astype(bf16);
  const auto norm = [](Tensor x) { return (x * rsqrt((x * x).mean(1, keepdims) + 1e-6)).astype(bf16); };
  auto alone = jit(norm);
  auto product = jit([](Tensor a, Tensor b) { return matmul(a, b); });
  auto both = jit([&](Tensor a, Tensor b) { return matmul(norm(a), b); });
  state.counters["over_two_calls"] = bench::time_in_turn(state, [&] { return both(o.x, w); }, [&] { return product(alone(o.x), w); }).ratio();
}
BENCHMARK(norm_scale_while_packing)->Unit(benchmark::kMillisecond);

// Backward reads the derivative that forward made on its tile: it costs as much as where there is none.
void derivative_saved_by_forward(benchmark::State& state) {
  const Operands o;
  const Tensor v = random::normal(random::key(4), {2048, 512}) * 0.05;
  const auto step = [](auto f) {
    return jit([f](Tensor x, Tensor w, Tensor v) {
      return grad<0, 1, 2>([&](Tensor a, Tensor b, Tensor c) { return matmul(f(matmul(a, b)), c).sum(); })(x, w, v);
    });
  };
  auto with = step([](Tensor y) { return nn::gelu(y); }), without = step([](Tensor y) { return y; });
  state.counters["over_linear"] = bench::time_in_turn(state, [&] { return with(o.x, o.w, v); }, [&] { return without(o.x, o.w, v); }).ratio();
}
BENCHMARK(derivative_saved_by_forward)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace burin
