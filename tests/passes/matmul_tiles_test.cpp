// Products of bf16 on tile registers: evaluator, interpreter and machine code (by emulation where the processor has no tiles). What is
// summed in which order is the same for the last two, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/machine.h"

namespace burin::passes {
namespace {

using namespace ir;

struct Caches {
  std::int64_t l1, l2;
};
constexpr Caches usual = {48 << 10, 2 << 20}, small = {2 << 10, 8 << 10};

Target with(const Caches& caches) {
  Target target{.isa = Isa::amx};
  target.l1_bytes = caches.l1;
  target.l2_bytes = caches.l2;
  return target;
}

Literal random_literal(const Type& type, std::mt19937& rng) {
  Literal value(type);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < type.size(); ++i) value.set(i, normal(rng));
  return value;
}

/// The same with each element's size, and so for products the sums of their terms' sizes.
Literal sizes(const Literal& x) {
  Literal result(x.type());
  for (std::int64_t i = 0; i < x.type().size(); ++i) result.set(i, std::abs(x.at(i)));
  return result;
}

std::string kernel_text(const Program& program) {
  std::string text;
  for (const Kernel& kernel : program.kernels) text += print(kernel);
  return text;
}

/// `k` terms to a sum. Where the results are sums themselves (`plain`), they are off by at most k u S, as docs/numerics.md says.
void check(const std::string& text, std::int64_t k, bool plain = true, const Caches& caches = usual, bool on_tiles = true) {
  SCOPED_TRACE(text);
  const Function f = parse(text);
  std::mt19937 rng(11);
  std::vector<Literal> args, absolute;
  for (ValueId arg : f.args()) absolute.push_back(sizes(args.emplace_back(random_literal(f.type(arg), rng))));
  Options options;
  options.verify = true;
  const Target target = with(caches);
  const Program program = build_program(f, target, options);
  EXPECT_EQ(kernel_text(program).find(" blocks ") != std::string::npos, on_tiles) << kernel_text(program);
  const std::vector<Literal> want = evaluate(f, args), reach = evaluate(f, absolute), got = interpret(program, args);
  for (std::size_t i = 0; i < want.size(); ++i)
    for (std::int64_t j = 0; j < want[i].type().size(); ++j) {
      const double unit = want[i].dtype() == DType::f32 ? 0x1p-24 * static_cast<double>(std::max<std::int64_t>(k, 1)) : 0x1p-7;
      ASSERT_LE(std::abs(got[i].at(j) - want[i].at(j)), unit * reach[i].at(j) * (plain ? 1 : 4) + 1e-36) << i << ", " << j;
    }
  if (!test::has_machine || !test::tiles_missing().empty()) return;
  for (int threads : {1, 2}) {
    const std::vector<Literal> machine = test::run_machine(program, args, target, threads);
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(machine[i].raw(), got[i].raw())) << "result " << i << " with " << threads << " threads";
  }
}

std::string product(int m, int n, int k, bool lhs_turned, bool rhs_turned, const char* dtype = "f32") {
  const auto type = [](int rows, int columns) { return fmt::format("bf16[{},{}]", rows, columns); };
  return fmt::format(
      "func @main(%x: {}, %w: {}) -> ({}[{},{}]) {{\n"
      "  %y = dot_general %x, %w {{lhs_contract = [{}], rhs_contract = [{}], dtype = {}}}\n  return %y\n}}\n",
      lhs_turned ? type(k, m) : type(m, k), rhs_turned ? type(n, k) : type(k, n), dtype, m, n, lhs_turned ? 0 : 1, rhs_turned ? 1 : 0, dtype);
}

// Rows and columns around those of a register and of a tile, each side as it lies and turned.
TEST(MatmulTiles, shapes_and_layouts) {
  for (const auto& [m, n, k] : {std::array{16, 16, 32}, {32, 32, 64}, {31, 33, 16}, {33, 31, 17}, {17, 16, 1}, {9, 47, 2}, {49, 8, 33}, {65, 100, 31}})
    for (const bool lhs_turned : {false, true})
      for (const bool rhs_turned : {false, true}) check(product(m, n, k, lhs_turned, rhs_turned), k);
  check(product(33, 40, 65, true, false, "bf16"), 65);
}

TEST(MatmulTiles, few_rows_and_nothing_at_all) {
  check(product(1, 40, 64, false, false), 64, true, usual, false);
  check(product(3, 5, 7, false, false), 7, true, usual, false);
  check(product(7, 64, 64, false, false), 64, true, usual, false);
  check(product(8, 8, 3, false, false), 3);
  check(product(16, 16, 0, false, false), 0, true, usual, false);
  check(product(0, 16, 16, false, false), 16, true, usual, false);
  check(product(16, 0, 16, true, true), 16, true, usual, false);
}

// k in panels: around the depth of one and of several, tails of a pair and of a block; beyond 4096 panels are summed apart.
TEST(MatmulTiles, depths) {
  for (int k : {512, 513, 767, 769, 1100}) check(product(33, 40, k, (k & 1) != 0, (k & 2) != 0), k);
  for (int k : {255, 449, 500, 1100}) check(product(20, 35, k, true, true), k, true, small);
  check(product(17, 16, 4099, false, false), 256 + 17);
}

// Where blocks begin is up to k alone, so results do not depend on the machine's caches.
TEST(MatmulTiles, results_do_not_depend_on_the_caches) {
  for (int k : {33, 129, 200, 449, 1100, 4099}) {
    const Function f = parse(product(9, 17, k, false, true));
    std::mt19937 rng(5);
    std::vector<Literal> args;
    for (ValueId arg : f.args()) args.push_back(random_literal(f.type(arg), rng));
    const std::vector<Literal> one = interpret(build_program(f, with(usual), {}), args), other = interpret(build_program(f, with(small), {}), args);
    EXPECT_TRUE(std::ranges::equal(one[0].raw(), other[0].raw())) << k;
  }
}

// Sides that many tasks read are packed by kernels of their own.
TEST(MatmulTiles, sides_packed_for_all_tasks) {
  for (const bool turned : {false, true}) {
    const std::string text = product(130, 99, 151, turned, !turned);
    const Program program = build_program(parse(text), with(small), {});
    EXPECT_EQ(program.kernels.size(), 3u);
    check(text, 151, true, small);
  }
}

TEST(MatmulTiles, batches_several_axes_and_other_dtypes) {
  check("func @main(%x: bf16[3,10,3,7], %w: bf16[3,3,7,12]) -> (f32[3,10,12]) {\n"
        "  %y = dot_general %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2, 3], rhs_contract = [1, 2], dtype = f32}\n"
        "  return %y\n}\n", 21);
  check("func @main(%x: bf16[37,2,65], %w: bf16[2,37,50]) -> (f32[65,50]) {\n"
        "  %y = dot_general %x, %w {lhs_contract = [0, 1], rhs_contract = [1, 0], dtype = f32}\n  return %y\n}\n", 74, true, small);
  check("func @main(%x: f32[20,24], %w: f32[24,40]) -> (f32[20,40]) {\n"
        "  %a = convert %x {dtype = bf16}\n  %b = convert %w {dtype = bf16}\n"
        "  %y = dot_general %a, %b {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n  return %y\n}\n", 24);
}

TEST(MatmulTiles, what_goes_before_and_follows) {
  for (const Caches& caches : {usual, small})
    check("func @main(%x: bf16[40,24], %s: bf16[40], %w: bf16[24,50], %b: bf16[50], %r: f32[40,50]) -> (f32[40,50], f32[50,40]) {\n"
          "  %t = broadcast %s {shape = [40, 24], dims = [0]}\n  %u = mul %x, %t\n"
          "  %y = dot_general %u, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
          "  %c = convert %b {dtype = f32}\n  %d = broadcast %c {shape = [40, 50], dims = [1]}\n"
          "  %e = add %y, %d\n  %g = mul %e, %r\n  %h = add %g, %e\n  %i = transpose %h {permutation = [1, 0]}\n"
          "  return %h, %i\n}\n", 1 << 17, false, caches);  // %u is rounded to bf16
}

// A factor that no number is, subnormals that count as zero, and the zeros of the padding, which meet no infinity.
TEST(MatmulTiles, special_values) {
  const Function f = parse(product(17, 18, 19, false, false));
  Literal x(f.type(f.args()[0])), w(f.type(f.args()[1]));
  for (std::int64_t i = 0; i < x.type().size(); ++i) x.set(i, i % 5 == 0 ? INFINITY : i % 7 == 0 ? 1e-39 : 1);
  for (std::int64_t i = 0; i < w.type().size(); ++i) w.set(i, i % 11 == 0 ? NAN : i % 13 == 0 ? -1e-39 : 2);
  const std::vector<Literal> args = {x, w};
  const Program program = build_program(f, with(usual), {});
  const std::vector<Literal> want = evaluate(f, args), got = interpret(program, args);
  for (std::int64_t j = 0; j < want[0].type().size(); ++j)
    EXPECT_TRUE(std::isnan(want[0].at(j)) ? std::isnan(got[0].at(j)) : want[0].at(j) == got[0].at(j)) << j;
  if (!test::has_machine || !test::tiles_missing().empty()) GTEST_SKIP() << test::tiles_missing();
  const std::vector<Literal> machine = test::run_machine(program, args, with(usual));
  for (std::int64_t j = 0; j < want[0].type().size(); ++j)
    EXPECT_TRUE(std::isnan(got[0].at(j)) ? std::isnan(machine[0].at(j)) : machine[0].at(j) == got[0].at(j)) << j;
}

}  // namespace
}  // namespace burin::passes
