// Packed copies of weights that a program keeps: what its update leaves in them is what packing the new weights would, byte by byte, and
// calls that are given them compute what a program without them does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/lower/program.h"
#include "passes/pipeline.h"
#include "tests/support/machine.h"

namespace burin::passes {
namespace {

using namespace ir;

using Bytes = std::vector<std::byte>;

Target with(Isa isa) {
  Target target{.isa = isa};
  target.l1_bytes = 4 << 10;  // small ones, so that small products are shared out and packed
  target.l2_bytes = 8 << 10;
  return target;
}

/// What calls of a program hand on to one another.
struct Calls {
  explicit Calls(const Program& p) : program(p) {
    for (const KeptValue& value : p.kept) kept.emplace_back(static_cast<std::size_t>(value.type.bytes()), std::byte{0xee});
  }
  /// Runs the steps, but those that are not needed when `given`; `packing`: only those that are not needed then.
  std::vector<Literal> run(std::vector<Literal> in, bool given, bool packing = false) {
    std::vector<Literal> out;
    std::vector<std::byte*> inputs, outputs;
    for (Literal& literal : in) {
      literal.expand();
      inputs.push_back(literal.mutable_raw().data());
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const std::int32_t donor = program.aliases[i];
      out.push_back(donor >= 0 ? in[static_cast<std::size_t>(donor)] : Literal(program.outputs[i]));
      outputs.push_back(out.back().mutable_raw().data());
      if (donor >= 0) inputs[static_cast<std::size_t>(donor)] = outputs.back();
    }
    Bytes arena(static_cast<std::size_t>(program.arena_bytes) + 64, std::byte{0xee});
    for (const Step& step : program.steps) {
      if (given && !step.unless.empty()) continue;
      if (packing && step.unless.empty()) continue;
      std::vector<std::byte*> args;
      for (const BufferRef& ref : step.args) {
        std::byte* base = arena.data();
        if (ref.storage == Storage::input) base = inputs[ref.index];
        if (ref.storage == Storage::output) base = outputs[ref.index];
        if (ref.storage == Storage::constant) base = const_cast<std::byte*>(program.constants[ref.index].raw().data());
        if (ref.storage == Storage::kept) base = kept[ref.index].data();
        args.push_back(base + ref.offset);
      }
      EXPECT_EQ(interpret(program.kernels[step.kernel], args), "");
    }
    return out;
  }

  const Program& program;
  std::vector<Bytes> kept;
};

bool same(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  return std::ranges::equal(a, b, [](const Literal& x, const Literal& y) { return std::ranges::equal(x.raw(), y.raw()); });
}

Options options_for(const Function& f, const std::vector<int>& donated, bool keep) {
  Options options;
  options.verify = true;
  options.keep_packed = keep;
  options.donated.assign(f.args().size(), false);
  for (int i : donated) options.donated[static_cast<std::size_t>(i)] = true;
  return options;
}

/// Result i is the successor of argument i where that is donated. `kept`: how many packed copies are.
void check(const std::string& text, const std::vector<int>& donated, std::size_t kept) {
  const Function f = parse(text);
  for (const Isa isa : {Isa::avx512_bf16, Isa::amx}) {
    SCOPED_TRACE(std::string(name(isa)) + "\n" + text);
    const Target target = with(isa);
    const Program with_copies = build_program(f, target, options_for(f, donated, true));
    const Program without = build_program(f, target, options_for(f, donated, false));
    ASSERT_EQ(with_copies.kept.size(), kept) << print(with_copies);
    EXPECT_TRUE(without.kept.empty());
    std::int64_t copies = 0;
    for (const KeptValue& value : with_copies.kept) copies += value.type.bytes();
    EXPECT_EQ(held_bytes(with_copies) - with_copies.arena_bytes, held_bytes(without) - without.arena_bytes + copies);
    EXPECT_EQ(parse_program(print(with_copies)).kept.size(), kept);
    EXPECT_EQ(print(parse_program(print(with_copies))), print(with_copies));

    std::mt19937 rng(5);
    std::normal_distribution<double> normal;
    std::vector<Literal> args;
    for (ValueId arg : f.args()) {
      args.emplace_back(f.type(arg));
      for (std::int64_t i = 0; i < args.back().type().size(); ++i) args.back().set(i, normal(rng));
    }
    Calls calls(with_copies), plain(without);
    for (int call = 0; call < 3; ++call) {
      const std::vector<Literal> got = calls.run(args, call > 0 && kept > 0), want = plain.run(args, false);
      ASSERT_TRUE(same(got, want)) << "call " << call << "\n" << print(with_copies);
      const std::vector<Target> runnable = test::runnable_targets();
      const bool runs = std::ranges::any_of(runnable, [&](const Target& t) { return t.isa == isa; });
      for (int threads = 1; call == 0 && runs && threads <= 2; ++threads)
        ASSERT_TRUE(same(test::run_machine(with_copies, args, target, threads), got)) << threads << " threads";
      for (int i : donated) args[static_cast<std::size_t>(i)] = got[static_cast<std::size_t>(i)];
      Calls anew(with_copies);
      anew.run(args, false, true);
      for (std::size_t k = 0; k < kept; ++k) ASSERT_TRUE(calls.kept[k] == anew.kept[k]) << "keep" << k << " after call " << call << "\n" << print(with_copies);
    }
  }
}

/// One step of descent for y = x w: the gradients of w and x; `update` makes %new of %w and %dw.
std::string step(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& update, const std::string& extra = "", const std::string& type = "") {
  return fmt::format(
      "func @step(%w: f32[{1},{2}], %x: bf16[{0},{1}], %t: bf16[{0},{2}]) -> (f32[{1},{2}], bf16[{0},{1}]{5}) {{\n"
      "  %c = convert %w {{dtype = bf16}} : bf16[{1},{2}]\n"
      "  %y = dot_general %x, %c {{lhs_contract = [1], rhs_contract = [0], dtype = bf16}} : bf16[{0},{2}]\n"
      "  %dy = sub %y, %t : bf16[{0},{2}]\n"
      "  %dw = dot_general %x, %dy {{lhs_contract = [0], rhs_contract = [0], dtype = f32}} : f32[{1},{2}]\n"
      "  %dx = dot_general %dy, %c {{lhs_contract = [1], rhs_contract = [1], dtype = bf16}} : bf16[{0},{1}]\n"
      "{3}  return %new, %dx{4}\n}}\n",
      m, k, n, fmt::format(fmt::runtime(update), k, n), extra, fmt::format(fmt::runtime(type), k, n));
}

const std::string descend =
    "  %rate = constant 0.01 : f32[{0},{1}]\n  %move = mul %rate, %dw : f32[{0},{1}]\n  %new = sub %w, %move : f32[{0},{1}]\n";

TEST(kept_packs, of_the_update_in_the_product) {
  for (const auto& [k, n] : {std::pair(64, 96), std::pair(202, 50), std::pair(33, 47)})
    check(step(144, k, n, descend), {0}, 2);
}

TEST(kept_packs, of_an_update_on_its_own) {
  // The gradient is read by something else too, and the update waits for that: the update is a kernel of its own.
  const std::string clipped =
      "  %sum = reduce_sum %dx {{axes = [0, 1]}} : bf16[]\n  %wide = convert %sum {{dtype = f32}} : f32[]\n"
      "  %size = abs %wide : f32[]\n  %one = constant 1 : f32[]\n  %more = add %size, %one : f32[]\n"
      "  %scale = div %one, %more : f32[]\n  %all = broadcast %scale {{shape = [{0}, {1}], dims = []}} : f32[{0},{1}]\n"
      "  %move = mul %all, %dw : f32[{0},{1}]\n  %new = sub %w, %move : f32[{0},{1}]\n";
  for (const auto& [k, n] : {std::pair(50, 70), std::pair(33, 300)})
    check(step(144, k, n, clipped, ", %dw", ", f32[{0},{1}]"), {0}, 2);
}

TEST(kept_packs, of_weights_that_lie_the_other_way) {
  // y = x w^T, as w: [n, k]
  for (const auto& [k, n] : {std::pair(64, 96), std::pair(70, 50), std::pair(33, 47)})
    check(fmt::format("func @step(%w: f32[{2},{1}], %x: bf16[{0},{1}], %t: bf16[{0},{2}]) -> (f32[{2},{1}], bf16[{0},{1}]) {{\n"
                      "  %c = convert %w {{dtype = bf16}} : bf16[{2},{1}]\n"
                      "  %y = dot_general %x, %c {{lhs_contract = [1], rhs_contract = [1], dtype = bf16}} : bf16[{0},{2}]\n"
                      "  %dy = sub %y, %t : bf16[{0},{2}]\n"
                      "  %dw = dot_general %dy, %x {{lhs_contract = [0], rhs_contract = [0], dtype = f32}} : f32[{2},{1}]\n"
                      "  %dx = dot_general %dy, %c {{lhs_contract = [1], rhs_contract = [0], dtype = bf16}} : bf16[{0},{1}]\n"
                      "  %rate = constant 0.01 : f32[{2},{1}]\n  %move = mul %rate, %dw : f32[{2},{1}]\n"
                      "  %new = sub %w, %move : f32[{2},{1}]\n  return %new, %dx\n}}\n",
                      144, k, n),
          {0}, 2);
}

TEST(kept_packs, of_a_gradient_that_is_turned) {
  // dw^T comes out of the product: columns of it are rows of w.
  for (const auto& [k, n] : {std::pair(64, 96), std::pair(50, 70)})
    check(fmt::format("func @step(%w: f32[{1},{2}], %x: bf16[{0},{1}], %t: bf16[{0},{2}]) -> (f32[{1},{2}], bf16[{0},{1}]) {{\n"
                      "  %c = convert %w {{dtype = bf16}} : bf16[{1},{2}]\n"
                      "  %y = dot_general %x, %c {{lhs_contract = [1], rhs_contract = [0], dtype = bf16}} : bf16[{0},{2}]\n"
                      "  %dy = sub %y, %t : bf16[{0},{2}]\n"
                      "  %dt = dot_general %dy, %x {{lhs_contract = [0], rhs_contract = [0], dtype = f32}} : f32[{2},{1}]\n"
                      "  %dw = transpose %dt {{permutation = [1, 0]}} : f32[{1},{2}]\n"
                      "  %dx = dot_general %dy, %c {{lhs_contract = [1], rhs_contract = [1], dtype = bf16}} : bf16[{0},{1}]\n"
                      "  %rate = constant 0.01 : f32[{1},{2}]\n  %move = mul %rate, %dw : f32[{1},{2}]\n"
                      "  %new = sub %w, %move : f32[{1},{2}]\n  return %new, %dx\n}}\n",
                      144, k, n),
          {0}, 2);
}

TEST(kept_packs, of_weights_in_bf16) {
  for (const auto& [k, n] : {std::pair(64, 96), std::pair(33, 47)})
    check(fmt::format("func @step(%w: bf16[{1},{2}], %x: bf16[{0},{1}], %t: bf16[{0},{2}]) -> (bf16[{1},{2}], bf16[{0},{1}]) {{\n"
                      "  %y = dot_general %x, %w {{lhs_contract = [1], rhs_contract = [0], dtype = bf16}} : bf16[{0},{2}]\n"
                      "  %dy = sub %y, %t : bf16[{0},{2}]\n"
                      "  %dw = dot_general %x, %dy {{lhs_contract = [0], rhs_contract = [0], dtype = bf16}} : bf16[{1},{2}]\n"
                      "  %dx = dot_general %dy, %w {{lhs_contract = [1], rhs_contract = [1], dtype = bf16}} : bf16[{0},{1}]\n"
                      "  %rate = constant 0.01 : bf16[{1},{2}]\n  %move = mul %rate, %dw : bf16[{1},{2}]\n"
                      "  %new = sub %w, %move : bf16[{1},{2}]\n  return %new, %dx\n}}\n",
                      144, k, n),
          {0}, 2);
}

TEST(kept_packs, not_where_weights_are_not_donated) { check(step(144, 64, 96, descend), {}, 0); }

TEST(kept_packs, not_where_the_update_cannot_come_last) {
  // What is packed of the old weights is read after the new ones are: for the gradient of x at the new weights' norm.
  const std::string early =
      "  %rate = constant 0.01 : f32[{0},{1}]\n  %move = mul %rate, %dw : f32[{0},{1}]\n  %new = sub %w, %move : f32[{0},{1}]\n";
  check(fmt::format("func @step(%w: f32[64,96], %x: bf16[144,64], %t: bf16[144,96]) -> (f32[64,96], bf16[144,64]) {{\n"
                    "  %c = convert %w {{dtype = bf16}} : bf16[64,96]\n"
                    "  %y = dot_general %x, %c {{lhs_contract = [1], rhs_contract = [0], dtype = bf16}} : bf16[144,96]\n"
                    "  %dy = sub %y, %t : bf16[144,96]\n"
                    "  %dw = dot_general %x, %dy {{lhs_contract = [0], rhs_contract = [0], dtype = f32}} : f32[64,96]\n"
                    "{}"
                    "  %sum = reduce_sum %new {{axes = [0]}} : f32[96]\n  %half = convert %sum {{dtype = bf16}} : bf16[96]\n"
                    "  %rows = broadcast %half {{shape = [144, 96], dims = [1]}} : bf16[144,96]\n  %dz = mul %dy, %rows : bf16[144,96]\n"
                    "  %dx = dot_general %dz, %c {{lhs_contract = [1], rhs_contract = [1], dtype = bf16}} : bf16[144,64]\n"
                    "  return %new, %dx\n}}\n",
                    fmt::format(fmt::runtime(early), 64, 96)),
        {0}, 0);
}

TEST(kept_packs, not_where_the_weights_in_bf16_are_a_result) {
  std::string text = step(144, 64, 96, descend, ", %c", ", bf16[{0},{1}]");
  check(text, {0}, 0);
}

}  // namespace
}  // namespace burin::passes
