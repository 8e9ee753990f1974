// Attention and its derivative as kernels whose scores live in tiles, against the plain meaning: every spelling at sizes that
// fit no tile, for each instruction set, interpreted and as machine code.
#include "passes/fuse/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"
#include "tests/support/literals.h"
#include "tests/support/machine.h"
#include "tests/support/threads.h"
#include "tests/support/transforms.h"

namespace burin::passes {
namespace {

using namespace ir;

enum class Mask { none, causal, shifted, window, argument, added, shared };
enum class Spelling { guarded, plain, after };

struct Form {
  std::int64_t queries = 4, keys = 4, head = 4, width = 4;
  Mask mask = Mask::none;
  Spelling spelling = Spelling::guarded;
  std::string dtype = "f32";
  std::int64_t heads = 2, groups = 2;  // of queries, of keys and values
  bool squared = false;                // so that the derivative begins with the result
  bool half_values = false;            // the values alone are bf16, and converted before they are weighted
};

std::string mask_text(const Form& form, const std::string& scores) {
  const std::string small = fmt::format("{}, {}", form.queries, form.keys), all = fmt::format("{}, {}", form.heads, small);
  std::string text = fmt::format("  %i = iota {{dtype = i32, shape = [{0}], axis = 0}}\n  %j = iota {{dtype = i32, shape = [{0}], axis = 1}}\n", small);
  switch (form.mask) {
    case Mask::none: return fmt::format("  %masked = mul %s, %unit\n");
    case Mask::causal: text += "  %m = ge %i, %j\n"; break;
    case Mask::shifted: text += fmt::format("  %by = constant 2 : i32[{}]\n  %jj = add %j, %by\n  %m = ge %i, %jj\n", small); break;
    case Mask::window:
      text += fmt::format("  %by = constant 3 : i32[{}]\n  %from = sub %i, %by\n  %m0 = ge %i, %j\n  %m1 = gt %j, %from\n  %m = bit_and %m0, %m1\n", small);
      break;
    case Mask::argument: text = "  %m = bit_not %hidden\n"; break;
    case Mask::added: return fmt::format("  %ab = broadcast %bias {{shape = [{}], dims = [0, 2]}}\n  %masked = add %s, %ab\n", all);
    case Mask::shared: return fmt::format("  %ab = broadcast %bias {{shape = [{}], dims = [1, 2]}}\n  %masked = add %s, %ab\n", all);
  }
  return text + fmt::format("  %mb = broadcast %m {{shape = [{}], dims = [1, 2]}}\n  %low = constant -inf : {}\n  %masked = select %mb, %s, %low\n", all, scores);
}

std::string text_of(const Form& form) {
  const std::string all = fmt::format("{}, {}, {}", form.heads, form.queries, form.keys);
  const std::string scores = fmt::format("f32[{},{},{}]", form.heads, form.queries, form.keys);
  std::string args = fmt::format("%q: {0}[{1},{2},{3}], %k: {0}[{4},{5},{3}], %v: {0}[{4},{5},{6}]", form.dtype, form.heads, form.queries,
                                 form.head, form.groups, form.keys, form.width);
  if (form.half_values) args.replace(args.find("%v: ") + 4, form.dtype.size(), "bf16");
  if (form.mask == Mask::argument) args += fmt::format(", %hidden: bool[{},{}]", form.queries, form.keys);
  if (form.mask == Mask::added) args += fmt::format(", %bias: f32[{},{}]", form.heads, form.keys);
  if (form.mask == Mask::shared) args += fmt::format(", %bias: f32[{},{}]", form.queries, form.keys);
  std::string text = fmt::format("func @main({}) -> ({}[{},{},{}]) {{\n", args, form.dtype, form.heads, form.queries, form.width);
  std::string k = "%k", v = form.half_values ? "%v32" : "%v";
  if (form.half_values) text += "  %v32 = convert %v {dtype = f32}\n";
  if (form.heads != form.groups) {
    for (const auto& [name, width] : {std::pair{"k", form.head}, std::pair{"v", form.width}})
      text += fmt::format("  %{0}g = broadcast %{0} {{shape = [{1}, {2}, {3}, {4}], dims = [0, 2, 3]}}\n  %{0}r = reshape %{0}g {{shape = [{5}, {3}, {4}]}}\n",
                          name, form.groups, form.heads / form.groups, form.keys, width, form.heads);
    k = "%kr";
    v = "%vr";
  }
  text += fmt::format("  %s0 = dot_general %q, {} {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2], dtype = f32}}\n", k);
  text += fmt::format("  %unit = constant 1 : {0}\n  %scale = constant 0.5 : {0}\n  %s = mul %s0, %scale\n", scores);
  text += mask_text(form, scores);
  const std::string row = fmt::format("f32[{},{}]", form.heads, form.queries), spread = fmt::format("{{shape = [{}], dims = [0, 1]}}", all);
  text += "  %max0 = reduce_max %masked {axes = [2]}\n";
  const bool guarded = form.spelling == Spelling::guarded;
  if (guarded)
    text += fmt::format("  %max = stop_gradient %max0\n  %lowest = constant -inf : {0}\n  %dead = eq %max, %lowest\n  %zero = constant 0 : {0}\n"
                        "  %shift = select %dead, %zero, %max\n  %one = constant 1 : {0}\n", row);
  text += fmt::format("  %sb = broadcast {} {}\n  %d = sub %masked, %sb\n  %e = exp %d\n  %sum = reduce_sum %e {{axes = [2]}}\n", guarded ? "%shift" : "%max0", spread);
  if (guarded) text += "  %safe = select %dead, %one, %sum\n";
  std::string weights = "%e";
  if (form.spelling != Spelling::after) {
    text += fmt::format("  %tb = broadcast {} {}\n  %w32 = div %e, %tb\n", guarded ? "%safe" : "%sum", spread);
    weights = "%w32";
  }
  if (form.dtype != "f32") {
    text += fmt::format("  %w = convert {} {{dtype = {}}}\n", weights, form.dtype);
    weights = "%w";
  }
  text += fmt::format("  %o32 = dot_general {}, {} {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1], dtype = f32}}\n", weights, v);
  std::string result = "%o32";
  if (form.spelling == Spelling::after) {
    text += fmt::format("  %tb = broadcast %sum {{shape = [{}, {}, {}], dims = [0, 1]}}\n  %o = div %o32, %tb\n", form.heads, form.queries, form.width);
    result = "%o";
  }
  if (form.dtype != "f32") {
    text += fmt::format("  %out = convert {} {{dtype = {}}}\n", result, form.dtype);
    result = "%out";
  }
  if (form.squared) {
    text += fmt::format("  %y = mul {0}, {0}\n", result);
    result = "%y";
  }
  return text + "  return " + result + "\n}\n";
}

std::vector<Literal> inputs_of(const Function& f) {
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < f.args().size(); ++i) {
    const Type& type = f.type(f.args()[i]);
    inputs.push_back(is_float(type.dtype) ? test::spread(type, -2, 2, i + 1) : test::spread(type, 0, 1, i + 1));
  }
  return inputs;
}

std::size_t count_attentions(const Function& f) {
  std::size_t count = 0;
  f.for_each_op([&](OpId op) { count += f.kind(op) == Op::fusion && std::string(f.attrs<Op::fusion>(op).kind) == "attention"; });
  return count;
}

// However short it is.
Function fused(const Function& f, std::vector<fusion::AttentionNote>* notes = nullptr) {
  Options before;
  before.stop_after = "remove_dead";
  before.verify = true;
  return fuse(fusion::take_attentions(run_function_passes(f, before), notes, {.pairs = 1, .length = 1}));
}

void check_machine(const Function& kernels, const std::vector<Literal>& inputs, const std::vector<Literal>& expected, double tolerance) {
  Options options;
  options.verify = true;
  for (const Target& target : test::runnable_targets()) {
    const Program program = run_lowering(kernels, target, options);
    const std::vector<Literal> found = test::run_machine(program, inputs, target, 2);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(test::difference(found[i], expected[i], tolerance), "") << "machine result " << i << " on " << to_string(target);
  }
}

void check(const Function& f, std::optional<std::size_t> attentions, double tolerance, const std::vector<Literal>& inputs) {
  const Function kernels = fused(f);
  if (attentions) {
    EXPECT_EQ(count_attentions(kernels), *attentions) << print(kernels);
  }
  const std::vector<Literal> expected = evaluate(f, inputs), as_said = evaluate(kernels, inputs);
  Options options;
  options.verify = true;
  for (Isa isa : {Isa::amx, Isa::avx512_bf16, Isa::avx512, Isa::avx2}) {
    Target target;
    target.isa = isa;
    const Program program = run_lowering(kernels, target, options);
    const std::vector<Literal> found = interpret(program, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(test::difference(as_said[i], expected[i], tolerance), "") << "evaluated result " << i;
      EXPECT_EQ(test::difference(found[i], expected[i], tolerance), "") << "interpreted result " << i;
    }
  }
  check_machine(kernels, inputs, expected, tolerance);
}

void check(const Function& f, std::optional<std::size_t> attentions, double tolerance) { check(f, attentions, tolerance, inputs_of(f)); }

void check_with_gradient(const Form& form, std::optional<std::size_t> attentions) {
  const std::string text = text_of(form);
  SCOPED_TRACE(text);
  const Function forward = parse(text);
  const double tolerance = form.dtype == "f32" ? 2e-5 : form.dtype == "f16" ? 0x1p-8 : 0x1p-5;
  check(forward, attentions ? std::optional<std::size_t>(1) : std::nullopt, tolerance);
  check(test::gradient(forward, test::float_args(forward)), attentions, 2 * tolerance);
}

TEST(Attention, SizesThatFitNoTile) {
  for (const auto& [queries, keys, head, width] : {std::array<std::int64_t, 4>{3, 5, 1, 1}, {6, 7, 5, 3}, {64, 64, 16, 16}, {65, 63, 17, 33}, {130, 70, 5, 40}, {17, 200, 8, 8}})
    check_with_gradient({.queries = queries, .keys = keys, .head = head, .width = width}, 3);
}

TEST(Attention, Masks) {
  for (Mask mask : {Mask::causal, Mask::shifted, Mask::window, Mask::argument})
    check_with_gradient({.queries = 70, .keys = 70, .head = 6, .width = 5, .mask = mask}, 3);
}

// The derivative of a bias per key is one more sum over queries; that of a bias of all heads adds up scores of different heads,
// which meet in memory alone.
TEST(Attention, ABiasThatIsTrained) {
  check_with_gradient({.queries = 70, .keys = 40, .head = 6, .width = 5, .mask = Mask::added}, 3);
  const Function forward = parse(text_of({.queries = 20, .keys = 30, .mask = Mask::shared}));
  check(forward, 1, 2e-5);
  std::vector<fusion::AttentionNote> notes;
  const Function both = test::gradient(forward, test::float_args(forward));
  EXPECT_EQ(count_attentions(fused(both, &notes)), 0u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].why_not, "");
  check(test::gradient(forward, {true, true, true, false}), 3, 4e-5);
}

// Each row of a softmax without a guard keeps its own meaning where it has no key: NaN.
TEST(Attention, WithoutAGuard) {
  for (Mask mask : {Mask::none, Mask::causal, Mask::shifted})
    check_with_gradient({.queries = 70, .keys = 75, .head = 6, .width = 5, .mask = mask, .spelling = Spelling::plain}, 4);
  check_with_gradient({.queries = 70, .keys = 75, .head = 6, .width = 5, .mask = Mask::causal, .spelling = Spelling::after}, 4);
}

// The sum over keys in the derivative comes from the result then, not from one more walk over the scores.
TEST(Attention, DerivativeThatBeginsWithTheResult) {
  for (const char* dtype : {"f32", "bf16"})
    for (Spelling spelling : {Spelling::guarded, Spelling::plain}) {
      const Form form{.queries = 40, .keys = 45, .head = 6, .width = 5, .mask = Mask::causal, .spelling = spelling, .dtype = dtype, .squared = true};
      check_with_gradient(form, spelling == Spelling::plain ? 4 : 3);  // one more for what flows through the maximum
    }
  check_with_gradient({.queries = 40, .keys = 45, .head = 6, .width = 5, .heads = 6, .groups = 2, .squared = true}, 3);
}

TEST(Attention, HeadsThatShareKeys) {
  check_with_gradient({.queries = 20, .keys = 30, .head = 6, .width = 5, .mask = Mask::causal, .heads = 6, .groups = 2}, 3);
}

TEST(Attention, SixteenBits) {
  for (const char* dtype : {"bf16", "f16"}) {
    check_with_gradient({.queries = 40, .keys = 70, .head = 8, .width = 16, .mask = Mask::causal, .dtype = dtype}, 3);
    check_with_gradient({.queries = 71, .keys = 65, .head = 7, .width = 5, .mask = Mask::causal, .dtype = dtype}, 3);
  }
}

// An f32 times a bf16 is exact to the last bits of f32, whatever instructions multiply halves; and where the bf16 is infinite, so is the
// product, also with weights of which a bf16 leaves nothing.
TEST(Attention, ValuesInSixteenBits) {
  for (std::int64_t width : {16, 33}) {
    const Form form{.queries = 70, .keys = 75, .head = 8, .width = width, .mask = Mask::causal, .half_values = true};
    check_with_gradient(form, 3);
    const Function f = parse(text_of({.queries = 20, .keys = 32, .head = 8, .width = width, .half_values = true}));
    std::vector<Literal> inputs = inputs_of(f);
    for (std::int64_t i = 0; i < inputs[0].type().size(); ++i) inputs[0].set(i, 0);  // each weight 1/32
    inputs[2].set(3, std::numeric_limits<double>::infinity());
    inputs[2].set(width + 5, -std::numeric_limits<double>::infinity());
    check(f, 1, 2e-5, inputs);
  }
}

// Long enough for the larger tiles of processors with tile instructions, and no multiple of them.
TEST(Attention, ManyPositions) {
  const Function forward = parse(text_of({.queries = 1030, .keys = 1101, .head = 16, .width = 8, .mask = Mask::causal, .dtype = "bf16", .heads = 1, .groups = 1}));
  for (const Function& f : {forward, test::gradient(forward, test::float_args(forward))}) {
    const std::vector<Literal> inputs = inputs_of(f);
    check_machine(fused(f), inputs, evaluate(f, inputs), 0x1p-5);
  }
}

// Whatever kernels they become.
TEST(Attention, RandomForms) {
  std::mt19937 rng(11);
  const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(most)) + 1; };
  for (int i = 0; i < 10; ++i) {
    Form form{.queries = up_to(70), .keys = up_to(70), .head = up_to(20), .width = up_to(40)};
    form.mask = static_cast<Mask>(rng() % 7);
    form.spelling = static_cast<Spelling>(rng() % 3);
    form.dtype = rng() % 3 == 0 ? "bf16" : "f32";
    form.groups = up_to(2);
    form.heads = form.groups * up_to(3);
    form.squared = rng() % 2 == 0;
    if (form.dtype == "bf16" && form.spelling == Spelling::after) form.spelling = Spelling::plain;
    check_with_gradient(form, std::nullopt);
  }
}

TEST(Attention, DerivativeOfTheDerivative) {
  const Function forward = parse(text_of({.queries = 20, .keys = 24, .head = 4, .width = 3, .mask = Mask::causal}));
  const Function once = test::gradient(forward, test::float_args(forward));
  check(test::gradient(once, test::float_args(once)), std::nullopt, 2e-4);
}

TEST(Attention, OnePositionIsPlain) {
  for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{1, 9}, {9, 1}}) {
    const Function f = parse(text_of({.queries = queries, .keys = keys, .head = 3, .width = 3}));
    check(f, 0, 2e-5);
  }
}

TEST(Attention, SameBitsForAnyThreads) {
  if (!test::has_machine) GTEST_SKIP() << test::no_machine;
  const Function forward = parse(text_of({.queries = 300, .keys = 260, .head = 16, .width = 16, .mask = Mask::causal}));
  const Function both = test::gradient(forward, test::float_args(forward));
  for (const Target& target : test::runnable_targets()) test::expect_same_for_any_threads(build_program(both, target, {}), inputs_of(both), target);
}

// 8 heads of 16384 positions: the scores alone would take 8 GiB.
TEST(Attention, NoValueOfAllPairsIsPlanned) {
  const std::int64_t length = 16384;
  const Function forward = parse(text_of({.queries = length, .keys = length, .head = 64, .width = 64, .mask = Mask::causal, .heads = 8, .groups = 8}));
  for (const Function& f : {forward, test::gradient(forward, test::float_args(forward))}) {
    Program program = build_program(f, Target{}, {});
    std::int64_t scratch = 0, outputs = 0;
    for (const PlannedValue& value : program.plan) EXPECT_LT(value.type.size(), length * length) << to_string(value.type);
    for (const Kernel& kernel : program.kernels) scratch = std::max(scratch, kernel.scratch_bytes());
    for (const Type& type : program.outputs) outputs += type.bytes();
    EXPECT_LT(program.arena_bytes + outputs + 64 * scratch, 500 << 20);
  }
}

}  // namespace
}  // namespace burin::passes
