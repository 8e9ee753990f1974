// Small training steps drawn at random: whatever happens to the weights between steps, no bit depends on packed copies
// that are kept.
#include <burin/io.h>
#include <burin/optim.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/compile.h"
#include "frontend/node.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "ir/target.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "tests/frontend/expect.h"
#include "tests/support/machine.h"

namespace burin {
namespace {

using Leaves = std::vector<Tensor>;

struct Layer {
  std::int64_t k = 0, n = 0;
  bool turned = false;      // the weights lie as [n, k]
  bool again = false;       // y = x w w^T w: one matrix in both orientations, forward
  bool checkpoint = false;  // made again for its gradient
  bool half = false;        // weights in bf16
  int activation = 0;
};

enum class Update { descent, clipped, momentum, adamw };

/// A training step, and what is drawn with it.
struct Model {
  std::vector<Layer> layers;
  std::int64_t m = 0;
  Update update = Update::descent;
  bool twice = false;        // each new matrix is a result two times
  bool norm_of_old = false;  // the old weights are read by something besides products
  bool excess = true;
};

struct State {
  Leaves weights, first, second;
  Tensor count, loss;
  BURIN_TREE(weights, first, second, count, loss)
};

class Draw {
 public:
  explicit Draw(unsigned seed) : rng_(seed) {}
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(rng_) < p; }
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(rng_); }
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937 rng_;
};

/// `small`: for caches that hold next to nothing.
Model draw_model(Draw& draw, bool small = false) {
  Model model;
  model.m = small ? draw.one_of({77, 144, 150}) : draw.one_of({512, 768, 777});
  const auto width = [&] {
    return small ? draw.one_of({31, 33, 48, 50, 64, 65, 97, 130}) : draw.one_of({130, 161, 192, 201, 256, 300, 301});
  };
  std::int64_t k = width();
  for (std::int64_t layers = 1 + draw.below(3); layers > 0; --layers) {
    Layer layer;
    layer.k = k;
    layer.n = draw.chance(0.3) ? k : draw.chance(0.1) ? draw.one_of({0, 1, 3, 8, 17}) : width();
    layer.turned = draw.chance(0.5);
    layer.again = draw.chance(0.2);
    layer.checkpoint = draw.chance(0.2);
    layer.half = draw.chance(0.2);
    layer.activation = static_cast<int>(draw.below(3));
    model.layers.push_back(layer);
    k = layer.n;
  }
  model.update = static_cast<Update>(draw.below(4));
  model.twice = draw.chance(0.15);
  model.norm_of_old = draw.chance(0.15);
  model.excess = draw.chance(0.8);
  return model;
}

std::string describe(const Model& model) {
  std::ostringstream text;
  text << "m " << model.m << ", update " << static_cast<int>(model.update) << (model.twice ? ", twice" : "")
       << (model.norm_of_old ? ", norm" : "") << (model.excess ? "" : ", rounded");
  for (const Layer& layer : model.layers)
    text << "; " << layer.k << "x" << layer.n << (layer.turned ? " turned" : "") << (layer.again ? " again" : "")
         << (layer.checkpoint ? " checkpoint" : "") << (layer.half ? " bf16" : "") << " activation "
         << layer.activation;
  return text.str();
}

Tensor apply(const Layer& layer, Tensor x, Tensor w) {
  const Tensor half = w.astype(bf16), right = layer.turned ? half.transpose() : half;
  Tensor y = matmul(x, right);
  if (layer.again) y = matmul(matmul(y, right.transpose()), right);
  return layer.activation == 0 ? y : layer.activation == 1 ? nn::relu(y) : nn::gelu(y);
}

Tensor loss(const Model& model, const Leaves& weights, Tensor x) {
  Tensor h = x.astype(bf16);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Layer layer = model.layers[i];
    const auto one = [layer](Tensor a, Tensor w) { return apply(layer, a, w); };
    h = layer.checkpoint ? checkpoint(one)(h, weights[i]) : one(h, weights[i]);
  }
  const Tensor y = h.astype(f32);
  return (y * y).mean();
}

State draw_state(const Model& model, int seed) {
  State state;
  auto keys = random::split(random::key(seed), static_cast<std::int64_t>(model.layers.size()));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const Shape shape = layer.turned ? Shape{layer.n, layer.k} : Shape{layer.k, layer.n};
    const DType dtype = layer.half ? bf16 : f32;
    state.weights.push_back((0.08 * random::normal(keys[static_cast<std::int64_t>(i)], shape)).astype(dtype));
    state.first.push_back(zeros(shape, dtype));
    state.second.push_back(zeros(shape, dtype));
  }
  state.count = zeros({}, i32);
  state.loss = zeros({}, f32);
  return state;
}

struct Program {
  int num_threads = 2;
  std::int64_t budget = -1;
  std::string max_isa = {};
  double rate = 0.5;  // of one loss; another rate is another program that packs the same weights
};

/// With ids that may be out of range.
auto compile_step(const Model& model, const Program& program, bool keep) {
  setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
  return jit(
      [model, program](State s, Tensor x, Tensor ids) -> std::pair<State, Leaves> {
        const double rate = program.rate;
        auto [l, grads] = value_and_grad([model](Leaves w, Tensor a) { return loss(model, w, a); })(s.weights, x[ids]);
        State next = s;
        next.count = s.count + 1;
        next.loss = l;
        if (model.norm_of_old)
          for (const Tensor& w : s.weights) next.loss = next.loss + 1e-3 * w.astype(f32).sum();
        if (model.update == Update::clipped) grads = optim::clip_by_global_norm(grads, 0.05);
        if (model.update == Update::momentum) {
          next.first = tree::map([](Tensor m, Tensor g) { return 0.5 * m + g; }, s.first, grads);
          next.weights = tree::map([rate](Tensor w, Tensor m) { return w - rate * m; }, s.weights, next.first);
        } else if (model.update == Update::adamw) {
          const auto [weights, adam] =
              optim::adamw(s.weights, grads, AdamState<Leaves>{s.first, s.second, s.count}, rate * 0.02);
          next.weights = weights;
          next.first = adam.mu;
          next.second = adam.nu;
        } else {
          next.weights = tree::map([rate](Tensor w, Tensor g) { return w - rate * g; }, s.weights, grads);
        }
        return {next, model.twice ? next.weights : Leaves{}};
      },
      {.donate = {0},
       .num_threads = program.num_threads,
       .memory_budget = program.budget,
       .excess_precision = model.excess,
       .max_isa = program.max_isa});
}
using Step = decltype(compile_step({}, {}, true));

std::vector<float> numbers(const State& state) {
  std::vector<float> all;
  for (const auto& leaf : tree::leaves(state))
    for (float value : leaf.second.astype(f32).to_vector<float>()) all.push_back(value);
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {  // NaN is like itself
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

struct Outcome {
  std::vector<std::vector<float>> seen;
  std::string what;
  std::size_t kept = 0;
};

Outcome run_steps(const Model& model, unsigned seed, const Program& program, bool keep, std::int64_t steps) {
  Draw draw(seed);
  Outcome result;
  const auto x = [&](std::int64_t i) {
    return random::normal(random::key(static_cast<int>(i)), {model.m, model.layers[0].k});
  };
  const Tensor good = arange(model.m), bad = arange(model.m) + 5;
  Step main = compile_step(model, program, keep);
  State p = draw_state(model, 1);
  std::int64_t peak = 0;
  {
    setenv("BURIN_KEEP_PACKED", keep ? "1" : "0", 1);
    const Compiled compiled = main.lower(p, x(0), good).compile();
    peak = compiled.peak_bytes();
    const std::string text = compiled.text();
    for (std::size_t at = text.find("\n  keep"); at != std::string::npos; at = text.find("\n  keep", at + 1))
      ++result.kept;
  }
  std::vector<std::pair<State, std::vector<float>>> held;
  Leaves kept_results;
  const std::string path =
      std::filesystem::temp_directory_path() / ("burin_kept_packs_" + std::to_string(getpid()) + ".safetensors");
  const auto shrink = jit(
      [](State s) {
        s.weights = tree::map([](Tensor w) { return w * 0.75; }, s.weights);
        return s;
      },
      {.donate = {0}});
  const auto evaluate = jit([model](Leaves w, Tensor a) { return loss(model, w, a); });
  const auto other = [&](Program q) {
    Step f = compile_step(model, q, keep);
    std::tie(p, kept_results) = f(p, x(50), good);
  };
  for (std::int64_t i = 0; i < steps; ++i) {
    std::tie(p, kept_results) = main(p, x(i), good);
    result.seen.push_back(numbers(p));
    const auto leaf = static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(p.weights.size())));
    const std::int64_t event = draw.below(19);
    result.what += " " + std::to_string(event) + "(" + std::to_string(leaf) + ")";
    Tensor& w = p.weights[leaf];
    switch (event) {
      case 0:
        held.emplace_back(p, numbers(p));
        break;
      case 1:
        w = w * 1.25;
        break;
      case 2:
        io::save(path, p.weights);
        p.weights = io::load(path, p.weights);
        std::filesystem::remove(path);
        break;
      case 3:
        for (Tensor& v : p.weights)
          if (&v != &w && v.shape() == w.shape() && v.dtype() == w.dtype()) std::swap(v, w);
        break;
      case 4:
        result.seen.push_back({evaluate(p.weights, x(i + 7)).item<float>()});
        break;
      case 5:
        p = shrink(p);
        break;
      case 6:
        other({.rate = 0.25});
        break;
      case 7:
        // Where a layer has no columns, nothing is made of the rows, and nobody looks at the ids.
        if (std::ranges::none_of(model.layers, [](const Layer& layer) { return layer.n == 0; })) {
          EXPECT_NE(test::error_of([&] { (void)main(p, x(i), bad); }), "no error");
        }
        break;
      case 8:
        if (!held.empty()) p = held[0].first;
        break;
      case 9:
        other({.max_isa = "avx2"});
        break;
      case 10:
        other({.budget = result.kept > 0 ? peak - 1 : -1});
        break;
      case 11:
        other({.num_threads = 3});
        break;
      case 12:
        w = w.at(first(1)).set(w[first(1)] * 2);
        break;
      case 13:
        std::thread([&] { std::tie(p, kept_results) = main(p, x(i + 3), good); }).join();
        break;
      case 14:
        w = w.transpose().transpose();
        break;
      case 15: {
        // Calls from two threads at once, on weights that they share and on ones of their own.
        State mine = p, own = draw_state(model, 5);
        std::vector<float> seen[2];
        const Tensor a = x(i + 11), b = x(i + 12);
        std::thread one([&] {
          for (int k = 0; k < 2; ++k) own = main(own, a, good).first;
        });
        std::thread two([&] {
          for (int k = 0; k < 2; ++k) mine = main(mine, b, good).first;
        });
        one.join();
        two.join();
        result.seen.push_back(numbers(own));
        result.seen.push_back(numbers(mine));
        break;
      }
      case 16: {
        const State moved = std::move(p);
        p = State(moved);
        break;
      }
      case 17:  // one Tensor is two arguments
        for (Tensor& v : p.weights)
          if (v.shape() == w.shape() && v.dtype() == w.dtype()) v = w;
        break;
      default:
        break;
    }
  }
  result.seen.push_back(numbers(p));
  for (const auto& [state, before] : held)
    EXPECT_TRUE(same(numbers(state), before)) << "weights that are held have changed";
  return result;
}

TEST(KeptPacksRandom, ChangeNoBit) {
  if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  if (!ir::host_target().multiplies_bf16_pairs()) GTEST_SKIP() << "products of bf16 are not of packed pairs here";
  const std::string before = std::getenv("BURIN_BACKEND");
  setenv("BURIN_BACKEND", "machine", 1);
  std::size_t kept = 0;
  for (const unsigned seed : {301U, 302U, 309U}) {
    Draw draw(seed);
    const Model model = draw_model(draw);
    const Program program{.num_threads = static_cast<int>(draw.one_of({1, 2, 8}))};
    const Outcome with = run_steps(model, seed, program, true, 6), without = run_steps(model, seed, program, false, 6);
    EXPECT_EQ(without.kept, 0u);
    kept += with.kept;
    ASSERT_EQ(with.seen.size(), without.seen.size());
    for (std::size_t i = 0; i < with.seen.size(); ++i)
      ASSERT_TRUE(same(with.seen[i], without.seen[i]))
          << "seed " << seed << ", " << i << " of " << with.seen.size() << ": " << describe(model) << ":" << with.what;
  }
  EXPECT_GE(kept, 3u);
  setenv("BURIN_BACKEND", before.c_str(), 1);
  unsetenv("BURIN_KEEP_PACKED");
}

#if BURIN_WITH_LLVM

/// What calls hand on to one another, byte by byte.
using Kept = std::vector<std::vector<std::byte>>;

/// A call; of steps that `kept`, unless it is empty, makes needless there are none. Leaves in it what the call keeps.
std::vector<ir::Literal> call_once(const ir::Program& program, const runtime::Executable& executable,
                                   const std::vector<ir::Literal>& args, int num_threads, Kept* kept) {
  std::vector<runtime::KeptPlace> places;
  const bool given = !kept->empty();
  for (std::size_t k = 0; k < program.kept.size(); ++k) {
    if (!given) kept->emplace_back(static_cast<std::size_t>(program.kept[k].type.bytes()), std::byte{0xee});
    places.push_back({(*kept)[k].data(), given});
  }
  runtime::RunOptions options;
  options.num_threads = num_threads;
  options.threading_threshold_ns = 0;
  options.kept = places;
  return detail::run_literals(program, executable, args, options);
}

bool same_bits(const std::vector<ir::Literal>& a, const std::vector<ir::Literal>& b) {
  return std::ranges::equal(
      a, b, [](const ir::Literal& x, const ir::Literal& y) { return std::ranges::equal(x.raw(), y.raw()); });
}

TEST(KeptPacksRandom, ChangeNoBitOnAnyTarget) {
  for (const unsigned seed : {4U, 1021U}) {
    Draw draw(seed);
    const Model model = draw_model(draw, true);
    const State state = draw_state(model, static_cast<int>(seed));
    Step step = compile_step(model, {}, true);
    const Tensor x = random::normal(random::key(static_cast<int>(seed) + 100), {model.m, model.layers[0].k}),
                 ids = arange(model.m);
    const ir::Function f = ir::parse(step.lower(state, x, ids).text());
    const std::size_t num_state = tree::leaves(state).size();
    std::vector<ir::Literal> start;
    for (const auto& [path, leaf] : tree::leaves(state)) start.push_back(detail::to_literal(leaf, {}));
    start.push_back(detail::to_literal(x, {}));
    start.push_back(detail::to_literal(ids, {}));
    for (ir::Target target : test::runnable_targets()) {
      if (!target.multiplies_bf16_pairs()) continue;
      target.l1_bytes = 4 << 10;
      target.l2_bytes = 8 << 10;
      passes::Options options;
      options.verify = true;
      options.excess_precision = model.excess;
      options.donated.assign(f.args().size(), false);
      std::fill_n(options.donated.begin(), num_state, true);
      const ir::Program without = passes::build_program(f, target, options);
      options.keep_packed = true;
      const ir::Program with = passes::build_program(f, target, options);
      EXPECT_EQ(print(ir::parse_program(print(with))), print(with));
      EXPECT_GT(with.kept.size(), 0u) << describe(model);
      const auto plain = detail::make_executable(without, target, 1),
                 keeping = detail::make_executable(with, target, 1);
      const int threads = static_cast<int>(draw.one_of({1, 2, 8}));
      std::vector<ir::Literal> args = start;
      Kept kept, none;
      for (int call = 0; call < 2; ++call) {
        const std::vector<ir::Literal> want = call_once(without, *plain, args, threads, &none),
                                       got = call_once(with, *keeping, args, threads, &kept);
        ASSERT_TRUE(same_bits(got, want))
            << "seed " << seed << ", call " << call << ", " << to_string(target) << ": " << describe(model) << "\n"
            << print(with);
        std::copy_n(got.begin(), num_state, args.begin());
        // What packing would make of them.
        Kept left = kept, made;
        (void)call_once(with, *keeping, args, threads, &made);
        (void)call_once(with, *keeping, args, threads, &left);
        ASSERT_TRUE(made == left) << "seed " << seed << ", call " << call << ", " << to_string(target) << ": "
                                  << describe(model);
      }
    }
  }
}

#endif

}  // namespace
}  // namespace burin
