// Numbers of keys that are known at run time bound the walk of attention kernels over tiles: results are those of the text
// for any number, and what no query sees is not read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/fuse/attention.h"
#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"
#include "tests/support/literals.h"
#include "tests/support/machine.h"
#include "tests/support/task_work.h"
#include "tests/support/transforms.h"

namespace burin::passes {
namespace {

using namespace ir;

constexpr std::int64_t batch = 2, queries = 67, keys = 195, head = 5;

// Statements that make %m, bool[batch,queries,keys], of %i and %j (positions) and %len; `hidden` where it is true.
struct Mask {
  std::string name, length_type, text;
  bool hidden = false, plain_too = false;
  std::string low = "-inf";
  bool added = false;   // to scores, not chosen in their place
  bool sunken = false;  // the scores lie where -2000 is a score like any other
};

std::string all() { return fmt::format("[{}, {}, {}]", batch, queries, keys); }
std::string i32_all() { return fmt::format("i32[{},{},{}]", batch, queries, keys); }

const std::string from_scalar = "  %l = broadcast %len {shape = " + all() + ", dims = []}\n";
const std::string from_batch = "  %l = broadcast %len {shape = " + all() + ", dims = [0]}\n";
const std::string causal = "  %c = ge %i, %j\n";

std::vector<Mask> masks_with_infinities() {
  const std::string scalar = "i32[]", rows = fmt::format("i32[{}]", batch);
  return {
      {"one for all", scalar, from_scalar + "  %m = lt %j, %l\n", false, true},
      {"one per row of the batch", rows, from_batch + "  %m = lt %j, %l\n"},
      {"with axes of extent 1", fmt::format("i32[{},1,1]", batch),
       "  %l = broadcast %len {shape = " + all() + ", dims = [0, 1, 2]}\n  %m = lt %j, %l\n"},
      {"64 bits", "i64[]", from_scalar + "  %jj = convert %j {dtype = i64}\n  %m = lt %jj, %l\n"},
      {"turned round", scalar, from_scalar + "  %m = gt %l, %j\n"},
      {"true where hidden", rows, from_batch + "  %m = ge %j, %l\n", true},
      {"up to the last", scalar, "  %one = constant 1 : i32[]\n  %last = sub %len, %one\n  %l = broadcast %last {shape = " + all() + ", dims = []}\n  %m = le %j, %l\n"},
      {"the last computed for each position", scalar,
       from_scalar + "  %one = constant 1 : " + i32_all() + "\n  %last = sub %l, %one\n  %m = le %j, %last\n"},
      {"added to positions", scalar,
       from_scalar + "  %one = constant 1 : " + i32_all() + "\n  %jj = add %j, %one\n  %m = le %jj, %l\n"},
      {"at most so many", scalar,
       "  %most = constant 100 : i32[]\n  %some = min %len, %most\n  %l = broadcast %some {shape = " + all() + ", dims = []}\n  %m = lt %j, %l\n"},
      {"and causal", rows, from_batch + causal + "  %n = lt %j, %l\n  %m = bit_and %c, %n\n", false, true},
      {"window", scalar,
       from_scalar + "  %by = constant 70 : " + i32_all() + "\n  %from = sub %l, %by\n  %m0 = lt %j, %l\n  %m1 = ge %j, %from\n  %m = bit_and %m0, %m1\n", false, true},
      // The last query sees the last key: where the sum wraps, as the text says.
      {"causal behind what came before", rows,
       fmt::format("  %past = constant {} : {}\n", queries, rows) + "  %begin = sub %len, %past\n  %b = broadcast %begin {shape = " + all() +
           ", dims = [0]}\n  %ii = add %i, %b\n  %m = ge %ii, %j\n", false, true},
      {"from there on", scalar, from_scalar + "  %m = ge %j, %l\n"},
      {"a single key", scalar, from_scalar + "  %m = eq %j, %l\n", false, true},
      {"of queries", scalar, from_scalar + "  %m = lt %i, %l\n", false, true},
      {"per query", fmt::format("i32[{}]", queries), "  %l = broadcast %len {shape = " + all() + ", dims = [1]}\n  %m = lt %j, %l\n"},
      {"unsigned", "u32[]", from_scalar + "  %jj = convert %j {dtype = u32}\n  %m = lt %jj, %l\n"},
  };
}

// What is hidden is a number, which counts for nothing where something else is seen.
std::vector<Mask> masks_with_numbers() {
  std::vector<Mask> all;
  for (Mask mask : masks_with_infinities()) {
    if (mask.name != "one for all" && mask.name != "and causal" && mask.name != "window" && mask.name != "true where hidden") continue;
    mask.name += ", a number";
    mask.low = "-1e9";
    all.push_back(mask);
    mask.low = "-2000";
    mask.name += ", among scores";
    mask.sunken = true;
    all.push_back(mask);
  }
  for (bool sunken : {false, true}) {
    Mask mask = masks_with_infinities()[0];
    mask.name = sunken ? "added, among scores" : "added";
    mask.low = sunken ? "-2000" : "-1e9";
    mask.sunken = sunken;
    mask.added = true;
    all.push_back(mask);
  }
  return all;
}

std::vector<Mask> masks() {
  std::vector<Mask> all = masks_with_infinities();
  for (Mask& mask : masks_with_numbers()) all.push_back(std::move(mask));
  return all;
}

std::string text_of(const Mask& mask, bool guarded, const std::string& dtype) {
  const std::string scores = fmt::format("f32[{},{},{}]", batch, queries, keys), row = fmt::format("f32[{},{}]", batch, queries),
                    spread = "{shape = " + all() + ", dims = [0, 1]}";
  std::string text = fmt::format("func @main(%q: {0}[{1},{2},{4}], %k: {0}[{1},{3},{4}], %v: {0}[{1},{3},{4}], %len: {5}) -> ({0}[{1},{2},{4}]) {{\n",
                                 dtype, batch, queries, keys, head, mask.length_type);
  text += "  %s0 = dot_general %q, %k {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2], dtype = f32}\n";
  text += fmt::format("  %scale = constant 0.5 : {0}\n  %s1 = mul %s0, %scale\n  %depth = constant {1} : {0}\n  %s = add %s1, %depth\n", scores, mask.sunken ? -2000 : 0);
  text += "  %i = iota {dtype = i32, shape = " + all() + ", axis = 1}\n  %j = iota {dtype = i32, shape = " + all() + ", axis = 2}\n";
  text += mask.text + fmt::format("  %low = constant {} : {}\n", mask.low, scores);
  if (mask.added)
    text += fmt::format("  %none = constant 0 : {}\n  %bias = select %m, %none, %low\n  %masked = add %s, %bias\n", scores);
  else
    text += mask.hidden ? "  %masked = select %m, %low, %s\n" : "  %masked = select %m, %s, %low\n";
  text += "  %max0 = reduce_max %masked {axes = [2]}\n  %max = stop_gradient %max0\n";
  if (guarded)
    text += fmt::format("  %lowest = constant -inf : {0}\n  %dead = eq %max, %lowest\n  %zero = constant 0 : {0}\n"
                        "  %shift = select %dead, %zero, %max\n  %one1 = constant 1 : {0}\n", row);
  text += fmt::format("  %sb = broadcast {} {}\n  %d = sub %masked, %sb\n  %e = exp %d\n  %sum = reduce_sum %e {{axes = [2]}}\n", guarded ? "%shift" : "%max", spread);
  if (guarded) text += "  %safe = select %dead, %one1, %sum\n";
  text += fmt::format("  %tb = broadcast {} {}\n  %w32 = div %e, %tb\n", guarded ? "%safe" : "%sum", spread);
  const bool narrow = dtype != "f32";
  if (narrow) text += fmt::format("  %w = convert %w32 {{dtype = {}}}\n", dtype);
  text += fmt::format("  %o = dot_general {}, %v {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1], dtype = f32}}\n", narrow ? "%w" : "%w32");
  if (narrow) text += fmt::format("  %out = convert %o {{dtype = {}}}\n", dtype);
  return text + (narrow ? "  return %out\n}\n" : "  return %o\n}\n");
}

Function fused(const Function& f) {
  Options before;
  before.stop_after = "remove_dead";
  before.verify = true;
  return fuse(fusion::take_attentions(run_function_passes(f, before), nullptr, {.pairs = 1, .length = 1}));
}

std::size_t count_attentions(const Function& f) {
  std::size_t count = 0;
  f.for_each_op([&](OpId op) { count += f.kind(op) == Op::fusion && std::string(f.attrs<Op::fusion>(op).kind) == "attention"; });
  return count;
}

// One length, or in turn `length` and one less.
std::vector<Literal> inputs_of(const Function& f, std::int64_t length) {
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < f.args().size(); ++i) {
    const Type& type = f.type(f.args()[i]);
    if (is_float(type.dtype)) {
      inputs.push_back(test::spread(type, -2, 2, i + 1));
      continue;
    }
    std::vector<double> lengths;
    for (std::int64_t n = 0; n < type.size(); ++n) lengths.push_back(static_cast<double>(length - (n % 2 == 0 || length == INT_MIN ? 0 : 1)));
    inputs.push_back(test::from_doubles(type, lengths));
  }
  return inputs;
}

constexpr std::int64_t lengths[] = {0, 1, 2, 64, 65, 128, 194, 195, 196, 1000, -1, INT_MIN, INT_MAX};

void check(const Function& f, std::size_t attentions, double tolerance, bool every_target) {
  const Function kernels = fused(f);
  EXPECT_EQ(count_attentions(kernels), attentions) << print(kernels);
  Options options;
  options.verify = true;
  const Program program = run_lowering(kernels, Target{}, options);
  std::vector<Target> targets = test::runnable_targets();
  if (!every_target && targets.size() > 1) targets.erase(targets.begin(), targets.end() - 1);
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::unique_ptr<test::Machine>> machines;
  for (const Target& target : targets) {
    programs.push_back(std::make_unique<Program>(run_lowering(kernels, target, options)));
    machines.push_back(std::make_unique<test::Machine>(*programs.back(), target));
  }
  for (const std::int64_t length : lengths) {
    if (length < 0 && f.type(f.args()[3]).dtype == DType::u32) continue;
    SCOPED_TRACE(length);
    const std::vector<Literal> inputs = inputs_of(f, length), expected = evaluate(f, inputs);
    const bool interpret_this = every_target && (length == 1 || length == 65 || length == INT_MIN);
    const std::vector<Literal> read = interpret_this ? interpret(program, inputs) : std::vector<Literal>{};
    for (std::size_t i = 0; i < read.size(); ++i)
      EXPECT_EQ(test::difference(read[i], expected[i], tolerance), "") << "interpreted result " << i;
    for (const auto& machine : machines) {
      const std::vector<Literal> found = machine->run(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(test::difference(found[i], expected[i], tolerance), "") << "machine result " << i;
    }
  }
}

TEST(AttentionLengths, AreWhatTheTextSays) {
  for (const Mask& mask : masks())
    for (const bool guarded : {true, false}) {
      if (!guarded && !mask.plain_too) continue;
      SCOPED_TRACE(mask.name + (guarded ? ", guarded" : ""));
      const Function forward = parse(text_of(mask, guarded, "f32"));
      // Two floats there are 2^-13 apart.
      const double tolerance = mask.sunken ? 0x1p-12 : 2e-5;
      check(forward, 1, tolerance, guarded && !mask.sunken);
      check(test::gradient(forward, test::float_args(forward)), 3, 2 * tolerance, guarded && mask.name == "and causal");
    }
}

TEST(AttentionLengths, SixteenBits) {
  for (const Mask& mask : masks()) {
    if (mask.name != "one per row of the batch" && mask.name != "and causal") continue;
    const Function forward = parse(text_of(mask, true, "bf16"));
    check(forward, 1, 0x1p-5, true);
    check(test::gradient(forward, test::float_args(forward)), 3, 0x1p-4, false);
  }
}

// Keys and values that are NaN from `from` up to `to`: 0 * NaN shows wherever one is read.
std::vector<Literal> poisoned(const Function& f, std::int64_t length, std::int64_t from, std::int64_t to) {
  std::vector<Literal> inputs = inputs_of(f, length);
  for (const std::size_t arg : {1, 2}) {
    std::vector<double> elements = test::to_doubles(inputs[arg]);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = (b * keys + from) * head; i < (b * keys + to) * head; ++i) elements[static_cast<std::size_t>(i)] = std::nan("");
    inputs[arg] = test::from_doubles(inputs[arg].type(), elements);
  }
  return inputs;
}

// By tile of 64 keys: whether a NaN in it reaches the results.
std::string tiles_read(const Function& f, std::int64_t length) {
  const Program program = run_lowering(fused(f), Target{}, {});
  std::string read;
  for (std::int64_t from = 0; from < keys; from += 64) {
    const std::vector<Literal> results = interpret(program, poisoned(f, length, from, std::min(from + 64, keys)));
    const bool nan = std::ranges::any_of(results, [](const Literal& result) {
      return std::ranges::any_of(test::to_doubles(result), [](double x) { return std::isnan(x); });
    });
    read += nan ? 'x' : '.';
  }
  return read;
}

Function with_mask(const std::string& name, bool guarded) {
  for (const Mask& mask : masks())
    if (mask.name == name) return parse(text_of(mask, guarded, "f32"));
  throw std::invalid_argument("no mask is named " + name);
}

// By f, and by its gradient in the arguments that are wanted.
std::string tiles_read_by_both(const Function& f, const std::vector<bool>& wanted, std::int64_t length) {
  return tiles_read(f, length) + " " + tiles_read(test::gradient(f, wanted), length);
}

TEST(AttentionLengths, TilesBeyondThemAreNotRead) {
  const auto reads = [](const std::string& name, std::int64_t length) {
    const Function guarded = with_mask(name, true);
    const std::string forward = tiles_read(guarded, length);
    EXPECT_EQ(tiles_read(test::gradient(guarded, test::float_args(guarded)), length), forward) << name;
    return forward;
  };
  for (const char* name : {"one for all", "one per row of the batch", "with axes of extent 1", "64 bits", "turned round", "true where hidden", "up to the last",
                           "the last computed for each position", "added to positions"}) {
    EXPECT_EQ(reads(name, 2), "x...") << name;
    EXPECT_EQ(reads(name, 66), "xx..") << name;
  }
  EXPECT_EQ(reads("one for all", 0), "....");
  EXPECT_EQ(reads("one for all", -7), "....");
  EXPECT_EQ(reads("one for all", 64), "x...");
  EXPECT_EQ(reads("one for all", 65), "xx..");
  EXPECT_EQ(reads("one for all", 192), "xxx.");
  EXPECT_EQ(reads("one for all", 193), "xxxx");
  EXPECT_EQ(reads("one for all", INT_MAX), "xxxx");
  EXPECT_EQ(reads("at most so many", 190), "xx..");
  EXPECT_EQ(reads("and causal", 1000), "xx..");  // 67 queries
  EXPECT_EQ(reads("and causal", 60), "x...");
  EXPECT_EQ(reads("window", 192), ".xx.");
  EXPECT_EQ(reads("causal behind what came before", 130), "xxx.");
  EXPECT_EQ(reads("causal behind what came before", queries), "xx..");
  EXPECT_EQ(reads("from there on", 128), "..xx");
  EXPECT_EQ(reads("a single key", 70), ".x..");
  EXPECT_EQ(reads("of queries", 0), "....");
  EXPECT_EQ(reads("of queries", 1), "xxxx");
  // Nothing is known of a length that differs within a tile, nor of what compares no signed positions.
  EXPECT_EQ(reads("per query", 1), "xxxx");
  EXPECT_EQ(reads("unsigned", 1), "xxxx");
}

// A tile of nothing but a number far below each row's maximum so far adds zeros. One among scores does not, nor is anything
// known of a tile whose scores are still part of what is hidden.
TEST(AttentionLengths, TilesOfANumberFarBelowAreNotRead) {
  const auto reads = [](const std::string& name, std::int64_t length) {
    return tiles_read_by_both(with_mask(name, false), {true, true, true, false}, length);
  };
  EXPECT_EQ(reads("one for all, a number", 66), "xx.. xx..");
  EXPECT_EQ(reads("one for all, a number", 0), "xxxx xxxx");
  EXPECT_EQ(reads("and causal, a number", 60), "x... x...");
  EXPECT_EQ(reads("and causal, a number", 1000), "xx.. xx..");
  EXPECT_EQ(reads("true where hidden, a number", 66), "xx.. xx..");
  EXPECT_EQ(reads("window, a number", 192), "xxx. xxx.");
  EXPECT_EQ(reads("one for all, a number, among scores", 66), "xxxx xxxx");
  EXPECT_EQ(reads("added", 66), "xxxx xxxx");
  EXPECT_EQ(reads("added, among scores", 66), "xxxx xxxx");
}

// A derivative in which a row without keys would make NaN of all skips tiles when each row is seen to have one at an end.
TEST(AttentionLengths, WithoutAGuardRowsMustHaveKeys) {
  const auto reads = [](const std::string& name, std::int64_t length) {
    const Function plain = with_mask(name, false);
    return tiles_read_by_both(plain, test::float_args(plain), length);
  };
  EXPECT_EQ(reads("one for all", 1), "x... x...");
  EXPECT_EQ(reads("one for all", 66), "xx.. xx..");
  EXPECT_EQ(reads("and causal", 60), "x... x...");
  EXPECT_EQ(reads("window", 70), "xx.. xx..");
  EXPECT_EQ(reads("window", 192), ".xx. xxxx");
}

// Statements carried out, by what the kernels bind: without keys, what is left is to pack one side and to write zeros.
TEST(AttentionLengths, BoundTheWork) {
  const Function forward = parse(text_of(masks()[0], true, "f32"));
  for (const Function& f : {forward, test::gradient(forward, test::float_args(forward))}) {
    const Program program = run_lowering(fused(f), Target{}, {});
    std::size_t bounded = 0;
    for (const Kernel& kernel : program.kernels) {
      const auto work = [&](std::int64_t length) {
        const std::vector<double> by_task = test::task_work(kernel, length);
        return std::accumulate(by_task.begin(), by_task.end(), 0.0);
      };
      if (print(kernel).find(" clip\n") == std::string::npos) continue;
      ++bounded;
      EXPECT_LT(work(0), 0.2 * work(keys)) << print(kernel);
      EXPECT_LT(work(1), 0.45 * work(keys));
      EXPECT_EQ(work(1), work(64));
      EXPECT_LT(work(64), work(65));
      EXPECT_EQ(work(193), work(keys));
    }
    EXPECT_EQ(bounded, f.results().size() == 1 ? 1u : 3u);
  }
}

}  // namespace
}  // namespace burin::passes
