// The memory forecast of a compiled function against what the program's own allocator sees during a call.
#include <burin/version.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "tests/frontend/expect.h"
#include "tests/frontend/mini_transformer.h"
#include "tests/support/counting.h"

#if BURIN_WITH_LLVM

namespace burin::test {
namespace {

// Never destroyed: compiled functions keep their arenas.
struct Meter {
  std::atomic<std::int64_t> held{0}, peak{0};
};
Meter& meter = *new Meter;

class Memory : public testing::TestWithParam<int> {
 public:
  Memory() : before_(std::getenv("BURIN_BACKEND")) {
    setenv("BURIN_BACKEND", "machine", 1);
    set_runtime({.allocate = [](std::size_t bytes) {
                   meter.held += static_cast<std::int64_t>(bytes);
                   meter.peak = std::max(meter.peak.load(), meter.held.load());
                   return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                 },
                 .release = [](void* data, std::size_t bytes) {
                   meter.held -= static_cast<std::int64_t>(bytes);
                   std::free(data);
                 }});
    reset();
  }
  ~Memory() override {
    set_runtime({});
    setenv("BURIN_BACKEND", before_.c_str(), 1);
  }

  JitOptions options(std::vector<int> donate = {}) const { return {.donate = std::move(donate), .num_threads = GetParam()}; }
  static void reset() { meter.held = meter.peak = 0; }

 private:
  std::string before_;
};

constexpr std::int64_t pointers_only = 16 << 10;  // bytes of one block: lists of a call, whatever its tensors' sizes

// Calls f twice, the second time with the arena of the first. The arguments are older than the meter's zero.
template <class F, class... A>
std::int64_t expect_forecast(F& f, A&... args) {
  const Compiled compiled = f.lower(args...).compile();
  const std::int64_t forecast = compiled.peak_bytes();
  Memory::reset();
  for (int call = 0; call < 2; ++call) {
    reset_largest_new();
    (void)f(args...);
    // The first call looks for the compiled function by tracing once more.
    if (call == 1) {
      EXPECT_LE(largest_new(), pointers_only) << "bytes beside the allocator's";
    }
    EXPECT_EQ(meter.peak, forecast) << "call " << call << '\n' << compiled.memory();
  }
  const std::string first_line = "a call holds " + std::to_string(forecast) + " bytes besides its arguments: arena ";
  EXPECT_TRUE(compiled.memory().starts_with(first_line)) << compiled.memory();
  return forecast;
}

Tensor drawn(const Shape& shape, DType dtype = f32) { return random::normal(random::key(7), shape).astype(dtype); }

TEST_P(Memory, OfAnElementwiseChain) {
  for (const DType dtype : {f32, f64, bf16, i32})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5}, Shape{0, 4}, Shape{1000, 37}}) {
      auto f = jit([](Tensor x) { return (x * x + 3) * x; }, options());
      const Tensor x = ones(shape, dtype);
      EXPECT_EQ(expect_forecast(f, x), shape.size() * static_cast<std::int64_t>(size_of(dtype))) << x;
    }
}

TEST_P(Memory, OverTheBudgetIsAnError) {
  const auto f = [&](std::int64_t budget) {
    JitOptions with = options();
    with.memory_budget = budget;
    return jit([](Tensor a, Tensor b) { return matmul(a, b).sum(); }, with);
  };
  const Tensor a = drawn({33, 65}), b = drawn({65, 129});
  const std::int64_t needed = f(-1).lower(a, b).compile().peak_bytes();
  EXPECT_EQ(float(f(needed)(a, b)), float(f(-1)(a, b)));
  const std::string message = error_text([&] { (void)f(needed - 1)(a, b); });
  EXPECT_TRUE(message.ends_with(" (memory_test.cpp:" + std::to_string(__LINE__ - 1) + ")")) << message;
  EXPECT_TRUE(message.starts_with("jit: memory_budget: a call holds " + std::to_string(needed) + " bytes besides its arguments, " +
                                  std::to_string(needed - 1) + " are allowed (arena "))
      << message;
  EXPECT_NE(message.find("; the largest value is f32[33,129] of "), std::string::npos) << message;
}

TEST_P(Memory, OfMatmulsThatPack) {
  for (const DType dtype : {f32, bf16, f64}) {
    auto f = jit([](Tensor a, Tensor b) { return matmul(matmul(a.swapaxes(0, 1), b), b.swapaxes(0, 1)); }, options());
    const Tensor a = drawn({301, 203}, dtype), b = drawn({301, 301}, dtype);
    const std::int64_t arena_and_result = (203 * 301 + 203 * 301) * static_cast<std::int64_t>(size_of(dtype));
    EXPECT_GT(expect_forecast(f, a, b), arena_and_result) << "nothing packed: " << f.lower(a, b).compile().memory();
  }
  auto tiny = jit([](Tensor a, Tensor b) { return matmul(a, b); }, options());
  const Tensor a = drawn({1, 3}), b = drawn({3, 1}), none = drawn({0, 3}), empty = drawn({3, 0});
  expect_forecast(tiny, a, b);
  expect_forecast(tiny, none, b);
  expect_forecast(tiny, empty, none);  // sums of nothing
}

TEST_P(Memory, OfRowKernels) {
  for (const Shape& shape : {Shape{3, 5}, Shape{64, 1000}, Shape{1, 1}, Shape{7, 70000}}) {
    auto f = jit([](Tensor x) { return softmax(x, -1); }, options());
    auto g = jit([](Tensor x) { return grad([](Tensor y) { return square(softmax(y, -1)).sum(); })(x); }, options());
    const Tensor x = drawn(shape), half = drawn(shape, bf16);
    EXPECT_GE(expect_forecast(f, x), shape.size() * 4);
    expect_forecast(f, half);
    expect_forecast(g, x);
  }
}

TEST_P(Memory, OfColumnReductions) {
  auto f = jit([](Tensor x) { return std::pair{x.sum(0), max(x, 0)}; }, options());
  for (const Shape& shape : {Shape{4099, 37}, Shape{3, 5}, Shape{1, 1}, Shape{70000, 3}}) {
    const Tensor x = drawn(shape);
    EXPECT_GE(expect_forecast(f, x), shape[1] * 8);
  }
  // The gradient of a norm's scale: rows and columns of the same values, partial sums of columns by task.
  auto g = jit([](Tensor scale, Tensor x) { return grad<0, 1>([](Tensor s, Tensor y) { return square(nn::rms_norm(y, s)).sum(); })(scale, x); },
               options());
  for (const Shape& shape : {Shape{4099, 37}, Shape{3, 5}}) {
    const Tensor x = drawn(shape), scale = ones({shape[1]});
    EXPECT_GT(expect_forecast(g, scale, x), shape.size() * 4 + shape[1] * 4) << "no partial sums";
  }
}

TEST_P(Memory, OfScatters) {
  auto f = jit([](Tensor x, Tensor ids) { return grad([&](Tensor t) { return square(t[ids]).sum(); })(x); }, options());
  const Tensor x = drawn({300, 40}), half = drawn({300, 40}, bf16), ids = arange(1000) % 300;
  expect_forecast(f, x, ids);
  expect_forecast(f, half, ids);
}

TEST_P(Memory, OfResultsWithoutElements) {
  auto nothing = jit([](Tensor x) { return x * 2; }, options());
  auto both = jit([](Tensor x, Tensor y) { return std::pair{x + 1, y + 1}; }, options());
  const Tensor empty = drawn({3, 0, 2}), x = drawn({3, 5});
  EXPECT_EQ(expect_forecast(nothing, empty), 0);
  EXPECT_EQ(expect_forecast(both, empty, x), 60);
}

TEST_P(Memory, OfResultsThatAreArgumentsOrConstants) {
  const Tensor captured = drawn({9, 11});
  auto f = jit([captured](Tensor x) { return std::tuple{x, captured, ones({5}), x}; }, options());
  const Tensor x = drawn({3, 5});
  EXPECT_EQ(expect_forecast(f, x), 60 + 396 + 20 + 60);
}

TEST_P(Memory, OfDonatedArguments) {
  auto f = jit([](Tensor x, Tensor y) { return std::pair{x + y, x * y}; }, options({0}));
  const Tensor y = drawn({300, 7});
  Tensor x = drawn({300, 7}) + 0;
  const Compiled compiled = f.lower(x, y).compile();
  EXPECT_EQ(compiled.peak_bytes(), 300 * 7 * 4) << "one of the results is in the argument's place";
  reset();
  (void)f(x, y);
  EXPECT_EQ(meter.peak, compiled.peak_bytes());
  EXPECT_NE(compiled.memory().find(" = in0 "), std::string::npos) << compiled.memory();
}

// While an index may yet be out of range the argument must stay whole: the forecast knows of the copy.
TEST_P(Memory, OfDonatedArgumentsThatACheckProtects) {
  auto f = jit([](Tensor x, Tensor table, Tensor y) { return std::pair{x + 1, table[argmax(y, 1)]}; }, options({0}));
  const Tensor table = drawn({10, 3}), y = drawn({4, 9});
  Tensor x = drawn({300, 7}) + 0;
  const Compiled compiled = f.lower(x, table, y).compile();
  EXPECT_EQ(compiled.num_steps(), 3) << compiled.kernels();
  EXPECT_EQ(compiled.peak_bytes(), 64 + 300 * 7 * 4 + 4 * 3 * 4);
  reset();
  (void)f(x, table, y);
  EXPECT_EQ(meter.peak, compiled.peak_bytes());
}

Batch batch_of(std::int64_t rows, std::int64_t length, int vocabulary) {
  const Tensor ids = (arange(rows * length) % vocabulary).reshape({rows, length});
  return {.inputs = ids, .targets = (ids + 1) % vocabulary};
}

TEST_P(Memory, OfATrainingStep) {
  auto step = jit(train_step, options());
  const Batch small = batch_of(2, 16, 32), odd = batch_of(3, 5, 33), large = batch_of(4, 128, 500);
  const Tensor rate(1e-3f);
  const auto run = [&](const Params& params, const Batch& batch) {
    EXPECT_GT(expect_forecast(step, params, batch, rate), tree::count(params) * 4);
  };
  run(init_model(random::key(0), 32, 16, 64, 2), small);
  run(init_model(random::key(0), 33, 7, 20, 1), odd);
  run(init_model(random::key(0), 500, 128, 128, 2), large);
}

TEST_P(Memory, OfATrainingStepWithDonation) {
  auto step = jit(train_step, options({0}));
  const Batch batch = batch_of(2, 96, 300);
  Params params = tree::map([](Tensor t) { return t + 0; }, init_model(random::key(0), 300, 96, 128, 2));
  const Tensor rate(1e-3f);
  const Compiled compiled = step.lower(params, batch, rate).compile();
  reset();
  for (int call = 0; call < 3; ++call) {
    meter.peak = 0;
    Tensor loss;
    std::tie(params, loss) = step(params, batch, rate);
    EXPECT_EQ(meter.peak, compiled.peak_bytes()) << "call " << call << '\n' << compiled.memory();
  }
  auto kept = jit(train_step, options());
  EXPECT_GE(kept.lower(params, batch, rate).compile().peak_bytes() - compiled.peak_bytes(), tree::count(params) * 4 * 85 / 100)
      << "donation saved less than nearly all parameters";
}

// Values are computed again in place of being kept: the same bits in less memory, as forecast.
TEST_P(Memory, OfATrainingStepUnderABudget) {
  for (const bool donates : {false, true}) {
    const Batch batch = batch_of(3, 48, 65);
    const Params start = init_model(random::key(0), 65, 48, 64, 4);
    const auto fresh = [&] { return tree::map([](Tensor t) { return t + 0; }, start); };
    const Tensor rate(1e-3f);
    JitOptions with = options(donates ? std::vector{0} : std::vector<int>{});
    auto step = jit(train_step, with);
    Params params = fresh();
    const std::int64_t needed = step.lower(params, batch, rate).compile().peak_bytes();
    const auto [expected, expected_loss] = step(params, batch, rate);
    for (const int percent : {90, 75}) {
      with.memory_budget = needed * percent / 100;
      auto tight = jit(train_step, with);
      Params mine = fresh();
      const Compiled compiled = tight.lower(mine, batch, rate).compile();
      EXPECT_LE(compiled.peak_bytes(), with.memory_budget);
      EXPECT_GT(compiled.num_steps(), step.lower(start, batch, rate).compile().num_steps()) << "nothing is computed again";
      reset();
      const auto [updated, loss] = tight(mine, batch, rate);
      EXPECT_EQ(meter.peak, compiled.peak_bytes()) << percent << " percent\n" << compiled.memory();
      EXPECT_EQ(float(loss), float(expected_loss));
      const auto is = tree::flatten(updated), should = tree::flatten(expected);
      ASSERT_EQ(is.size(), should.size());
      for (std::size_t i = 0; i < is.size(); ++i) EXPECT_EQ(is[i].to_vector<float>(), should[i].to_vector<float>()) << "leaf " << i;
    }
  }
}

TEST_P(Memory, IsListedByValueWithTheLinesThatMadeThem) {
  auto step = jit(train_step, options({0}));
  const Params params = init_model(random::key(0), 32, 16, 64, 2);
  const std::string text = step.lower(params, batch_of(2, 16, 32), Tensor(1e-3f)).compile().memory();
  for (const char* part : {"f32[2,16,64]  mini_transformer.h:", ", in softmax, in block0", "f32[]  mini_transformer.h:", "fullest at step"})
    EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
  EXPECT_EQ(text.find(".temp\n"), std::string::npos) << "a value without its line\n" << text;
}

INSTANTIATE_TEST_SUITE_P(Threads, Memory, testing::Values(1, 8), testing::PrintToStringParamName());

}  // namespace
}  // namespace burin::test

#endif
