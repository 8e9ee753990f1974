// Programs as text, computed by the evaluator and by the kernels they are lowered to: fused and op by op, for both ISAs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/lower/program.h"
#include "passes/pipeline.h"
#include "tests/support/errors.h"
#include "tests/support/machine.h"

namespace burin::passes {
namespace {

using namespace ir;
using test::error_of;

Literal random_literal(const Type& type, std::mt19937& rng) {
  Literal value(type);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < type.size(); ++i) {
    if (is_float(type.dtype))
      value.set(i, normal(rng));
    else
      value.set_int(i, static_cast<std::int64_t>(rng() % 4));
  }
  return value;
}

void expect_close(const Literal& got, const Literal& want, const std::string& what) {
  ASSERT_EQ(to_string(got.type()), to_string(want.type()));
  const double unit = got.dtype() == DType::f64 ? 1e-12 : got.dtype() == DType::f32 ? 2e-6 : got.dtype() == DType::f16 ? 2e-3 : 2e-2;
  double scale = 1e-30;
  for (std::int64_t i = 0; i < want.type().size(); ++i)
    if (std::isfinite(want.at(i))) scale = std::max(scale, std::abs(want.at(i)));
  for (std::int64_t i = 0; i < want.type().size(); ++i) {
    const double a = got.at(i), b = want.at(i);
    if (std::isnan(b) ? std::isnan(a) : a == b) continue;
    ASSERT_LE(std::abs(a - b), unit * scale) << what << " element " << i << ": " << a << " instead of " << b;
  }
}

void check(std::string_view text, std::vector<bool> donated = {}, std::vector<std::int32_t> aliases = {},
           const Target& caches = {}) {
  const Function f = parse(text);
  std::mt19937 rng(7);
  std::vector<Literal> args;
  for (ValueId arg : f.args()) args.push_back(random_literal(f.type(arg), rng));
  const std::vector<Literal> want = evaluate(f, args);
  for (Isa isa : {Isa::amx, Isa::avx512_bf16, Isa::avx512, Isa::avx2})
    for (bool fused : {true, false}) {
      Target target = caches;
      target.isa = isa;
      Options options;
      options.verify = true;
      if (!fused) options.disabled = {"fuse"};
      options.donated = donated;
      const Program program = build_program(f, target, options);
      if (fused && !donated.empty()) {
        EXPECT_EQ(program.aliases, aliases);
      }
      std::string kernels;
      for (const Kernel& kernel : program.kernels) kernels += print(kernel);
      SCOPED_TRACE(kernels);
      const std::vector<Literal> got = interpret(program, args);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], "result " + std::to_string(i));
      for (const Target& runnable : test::runnable_targets()) {
        if (runnable.isa != isa) continue;
        const std::vector<Literal> machine = test::run_machine(program, args, target, 2);
        for (std::size_t i = 0; i < got.size(); ++i) expect_close(machine[i], want[i], "machine result " + std::to_string(i));
      }
    }
}

TEST(lowering, elementwise_of_odd_sizes) {
  check("func @main(%x: f32[3,5], %y: f32[5]) -> (f32[3,5]) {\n"
        "  %b = broadcast %y {shape = [3, 5], dims = [1]}\n"
        "  %s = add %x, %b\n"
        "  %t = tanh %s\n"
        "  return %t\n}\n");
  check("func @main(%x: f32[1]) -> (f32[1]) {\n  %s = mul %x, %x\n  return %s\n}\n");
  check("func @main(%x: f32[0,4]) -> (f32[0,4]) {\n  %s = mul %x, %x\n  return %s\n}\n");
  check("func @main(%x: f32[20011]) -> (f32[20011]) {\n  %s = mul %x, %x\n  return %s\n}\n");
}

TEST(lowering, moves) {
  check("func @main(%x: f32[3,5,7]) -> (f32[7,3,5], f32[15,7], f32[5,3], f32[3,9,7]) {\n"
        "  %t = transpose %x {permutation = [2, 0, 1]}\n"
        "  %r = reshape %x {shape = [15, 7]}\n"
        "  %s = slice %x {start = [0, 0, 1], limit = [3, 5, 2], stride = [1, 1, 1]}\n"
        "  %u = reshape %s {shape = [3, 5]}\n"
        "  %v = transpose %u {permutation = [1, 0]}\n"
        "  %z = constant 0.5 : f32[]\n"
        "  %p = pad %x, %z {low = [0, 1, 0], high = [0, 3, 0], interior = [0, 0, 0]}\n"
        "  return %t, %r, %v, %p\n}\n");
  check("func @main(%x: f32[4,6], %y: f32[4,3]) -> (f32[4,9], f32[4,6], f32[4,16], f32[24]) {\n"
        "  %c = concatenate %x, %y {axis = 1}\n"
        "  %r = reverse %x {axes = [0, 1]}\n"
        "  %z = constant 2 : f32[]\n"
        "  %p = pad %x, %z {low = [0, 1], high = [0, -1], interior = [0, 2]}\n"
        "  %t = transpose %x {permutation = [1, 0]}\n"
        "  %f = reshape %t {shape = [24]}\n"
        "  return %c, %r, %p, %f\n}\n");
}

TEST(lowering, softmax_of_a_masked_row) {
  check("func @main(%x: f32[3,7,7]) -> (f32[3,7,7]) {\n"
        "  %i = iota {dtype = i32, shape = [7, 7], axis = 0}\n"
        "  %j = iota {dtype = i32, shape = [7, 7], axis = 1}\n"
        "  %m = ge %i, %j\n"
        "  %mask = broadcast %m {shape = [3, 7, 7], dims = [1, 2]}\n"
        "  %inf = constant -inf : f32[3,7,7]\n"
        "  %s = select %mask, %x, %inf\n"
        "  %max = reduce_max %s {axes = [2]}\n"
        "  %mb = broadcast %max {shape = [3, 7, 7], dims = [0, 1]}\n"
        "  %d = sub %s, %mb\n"
        "  %e = exp %d\n"
        "  %sum = reduce_sum %e {axes = [2]}\n"
        "  %sb = broadcast %sum {shape = [3, 7, 7], dims = [0, 1]}\n"
        "  %r = div %e, %sb\n"
        "  return %r\n}\n");
}

TEST(lowering, norms_over_any_axis) {
  for (const char* axes : {"[2]", "[1]", "[0]", "[1, 2]", "[0, 1, 2]", "[0, 2]"}) {
    const std::string a = axes;
    const std::string kept = a == "[2]" ? "[0, 1]" : a == "[1]" ? "[0, 2]" : a == "[0]" ? "[1, 2]" : a == "[1, 2]" ? "[0]" : a == "[0, 2]" ? "[1]" : "[]";
    check("func @main(%x: f32[3,5,19]) -> (f32[3,5,19]) {\n"
          "  %q = mul %x, %x\n"
          "  %s = reduce_sum %q {axes = " + a + "}\n"
          "  %r = rsqrt %s\n"
          "  %b = broadcast %r {shape = [3, 5, 19], dims = " + kept + "}\n"
          "  %y = mul %x, %b\n"
          "  return %y\n}\n");
  }
}

TEST(lowering, reductions_of_every_kind) {
  check("func @main(%x: f32[6,33], %i: i32[6,33]) -> (f32[6], f32[33], f32[], i32[6], i32[33], i32[6], f32[6]) {\n"
        "  %a = reduce_sum %x {axes = [1]}\n"
        "  %b = reduce_max %x {axes = [0]}\n"
        "  %c = reduce_min %x {axes = [0, 1]}\n"
        "  %d = reduce_sum %i {axes = [1]}\n"
        "  %e = reduce_or %i {axes = [0]}\n"
        "  %f = argmax %x {axis = 1, dtype = i32}\n"
        "  %g = reduce_prod %x {axes = [1]}\n"
        "  return %a, %b, %c, %d, %e, %f, %g\n}\n");
}

// Sums over rows are finished from partial sums, one of each task, of which there may be any number.
TEST(lowering, row_and_column_reductions_together) {
  std::set<std::int64_t> tasks;
  for (int rows : {5, 205, 500, 700, 1020, 1300, 6600}) {
    const std::string r = std::to_string(rows);
    const std::string text = "func @main(%x: f32[" + r + ",40], %g: f32[" + r + ",40], %p: f32[40]) -> (f32[" + r + ",40], f32[40]) {\n"
          "  %q = mul %x, %x\n"
          "  %s = reduce_sum %q {axes = [1]}\n"
          "  %r = rsqrt %s\n"
          "  %b = broadcast %r {shape = [" + r + ", 40], dims = [0]}\n"
          "  %y = mul %x, %b\n"
          "  %dx = mul %g, %b\n"
          "  %t = mul %y, %g\n"
          "  %ds = reduce_sum %t {axes = [0]}\n"
          "  %lr = constant 0.1 : f32[40]\n"
          "  %u = mul %ds, %lr\n"
          "  %n = sub %p, %u\n"
          "  return %dx, %n\n}\n";
    check(text);
    tasks.insert(build_program(parse(text), Target{}, {}).steps[0].tasks);
  }
  EXPECT_EQ(tasks, (std::set<std::int64_t>{1, 2, 3, 4, 5, 7, 32}));
}

struct MatmulShape {
  int m, n, k;
};

// In all four layouts.
void check_matmul(const std::string& dtype, const MatmulShape& c) {
  const auto type = [&](int rows, int columns) { return dtype + "[" + std::to_string(rows) + "," + std::to_string(columns) + "]"; };
  for (const bool lhs_turned : {false, true})
    for (const bool rhs_turned : {false, true})
      check("func @main(%x: " + (lhs_turned ? type(c.k, c.m) : type(c.m, c.k)) +
            ", %w: " + (rhs_turned ? type(c.n, c.k) : type(c.k, c.n)) + ") -> (" + type(c.m, c.n) + ") {\n" +
            "  %y = dot_general %x, %w {lhs_contract = [" + (lhs_turned ? "0" : "1") + "], rhs_contract = [" +
            (rhs_turned ? "1" : "0") + "], dtype = " + dtype + "}\n  return %y\n}\n");
}

class MatmulShapes : public testing::TestWithParam<std::string> {};

TEST_P(MatmulShapes, InAllLayouts) {
  for (const MatmulShape& c : {MatmulShape{1, 1, 1}, {3, 5, 7}, {16, 32, 8}, {33, 47, 65}, {29, 64, 700}, {1, 100, 30}, {100, 1, 30}, {5, 6, 0}, {0, 4, 3}})
    check_matmul(GetParam(), c);
}

INSTANTIATE_TEST_SUITE_P(lowering, MatmulShapes, testing::Values("f64", "f32", "bf16", "f16"),
                         [](const auto& info) { return info.param; });

// Both sides packed as pairs of bf16 where there is an instruction for them: odd and single k, tails of every tile, all
// layouts.
TEST(lowering, matmul_of_bf16) {
  for (const MatmulShape& c : {MatmulShape{8, 8, 1}, {9, 17, 2}, {16, 32, 33}, {29, 64, 1901}, {8, 100, 0}})
    check_matmul("bf16", c);
  check(
      "func @main(%x: bf16[2,10,3,7], %w: bf16[2,3,7,12]) -> (f32[2,10,12]) {\n"  // two contracting axes, a batch axis
      "  %y = dot_general %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2, 3], rhs_contract = [1, 2], "
      "dtype = f32}\n"
      "  return %y\n}\n");
  check(
      "func @main(%x: f32[20,24], %w: bf16[24,24]) -> (bf16[20,24]) {\n"  // a prologue that rounds, an epilogue of
                                                                          // several ops
      "  %h = convert %x {dtype = bf16}\n"
      "  %y = dot_general %h, %w {lhs_contract = [1], rhs_contract = [0], dtype = bf16}\n"
      "  %t = tanh %y\n  %u = add %t, %y\n  %z = mul %u, %t\n  return %z\n}\n");
}

Target with_small_caches() {
  Target target{.isa = Isa::avx512_bf16};
  target.l1_bytes = 2 << 10;
  target.l2_bytes = 8 << 10;
  return target;
}

std::string kernel_names(std::string_view text, const Target& target) {
  const Program program = build_program(parse(text), target, {});
  std::string names;
  for (const Step& step : program.steps) names += (names.empty() ? "" : " ") + program.kernels[step.kernel].name;
  return names;
}

// A side that many tasks read is packed once, by a kernel of its own; the rest of k, of rows and of columns, several
// contracting axes and batches are not special.
TEST(lowering, matmul_of_sides_packed_for_all_tasks) {
  const Target small = with_small_caches();
  const std::string plain =
      "func @main(%x: f32[15,1300], %w: f32[99,150]) -> (f32[130,99]) {\n"
      "  %r = reverse %x {axes = [1]}\n  %s = reshape %r {shape = [130, 150]}\n"
      "  %y = dot_general %s, %w {lhs_contract = [1], rhs_contract = [1], dtype = f32}\n  return %y\n}\n";
  EXPECT_EQ(kernel_names(plain, small), "matmul_0_pack_lhs matmul_0_pack_rhs matmul_0");
  EXPECT_EQ(kernel_names(plain, Target{}), "matmul_0");
  check(plain, {}, {}, small);
  for (const char* dtype : {"f64", "bf16", "f16"}) {
    std::string other = plain;
    for (std::size_t at; (at = other.find("f32")) != std::string::npos;) other.replace(at, 3, dtype);
    EXPECT_EQ(kernel_names(other, small), "matmul_0_pack_lhs matmul_0_pack_rhs matmul_0") << dtype;
    check(other, {}, {}, small);
  }
  const std::string turned =
      "func @main(%x: bf16[151,2,65], %w: bf16[2,151,130]) -> (bf16[65,130], bf16[65,130]) {\n"
      "  %y = dot_general %x, %w {lhs_contract = [0, 1], rhs_contract = [1, 0], dtype = bf16}\n"
      "  %t1 = tanh %y\n  %t2 = add %t1, %y\n  %z = mul %t2, %t1\n  return %y, %z\n}\n";
  EXPECT_EQ(kernel_names(turned, small), "matmul_0_pack_lhs matmul_0_pack_rhs matmul_0");
  check(turned, {}, {}, small);
  // A packing kernel takes what it packs, and nothing that only the epilogue or the other side reads.
  const std::string biased =
      "func @main(%x: f32[15,1300], %w: f32[99,150], %b: f32[99], %r: f32[130,99]) -> (f32[130,99]) {\n"
      "  %u = reverse %x {axes = [1]}\n  %v = reshape %u {shape = [130, 150]}\n"
      "  %y = dot_general %v, %w {lhs_contract = [1], rhs_contract = [1], dtype = f32}\n"
      "  %c = broadcast %b {shape = [130, 99], dims = [1]}\n  %z = add %y, %c\n  %s = add %z, %r\n  return %s\n}\n";
  const Program program = build_program(parse(biased), small, {});
  ASSERT_EQ(kernel_names(biased, small), "matmul_0_pack_lhs matmul_0_pack_rhs matmul_0");
  EXPECT_EQ(program.kernels[0].num_params(), 2u);
  EXPECT_EQ(program.kernels[1].num_params(), 2u);
  check(biased, {}, {}, small);
  const std::string batched =
      "func @main(%x: f32[2,50,3,41], %w: f32[2,3,41,70]) -> (f32[3,2,50,70]) {\n"
      "  %y = dot_general %x, %w {lhs_batch = [2, 0], rhs_batch = [1, 0], lhs_contract = [3], rhs_contract = [2], dtype = f32}\n"
      "  return %y\n}\n";
  EXPECT_NE(kernel_names(batched, small).find("matmul_0_pack_rhs"), std::string::npos);
  check(batched, {}, {}, small);
  // No more than the last cache holds.
  Target smallest = small;
  smallest.l3_bytes = 80 << 10;
  EXPECT_EQ(kernel_names(plain, smallest), "matmul_0_pack_rhs matmul_0");
  check(plain, {}, {}, smallest);
}

// Packing pays when what is packed is read often: few rows read a contiguous side where it lies.
TEST(lowering, matmul_packs_what_many_rows_read) {
  const Target target{.isa = Isa::avx512};
  const auto packs = [&](int rows, int depth, int columns) {
    const std::string text = fmt::format(
        "func @main(%x: f32[{0},{1}], %w: f32[{1},{2}]) -> (f32[{0},{2}]) {{\n"
        "  %y = dot_general %x, %w {{lhs_contract = [1], rhs_contract = [0], dtype = f32}}\n  return %y\n}}\n", rows, depth, columns);
    return print(build_program(parse(text), target, {})).find("packed_b") != std::string::npos;
  };
  EXPECT_TRUE(packs(600, 300, 1024));
  EXPECT_FALSE(packs(30, 300, 1024));
  EXPECT_FALSE(packs(600, 60, 1008));
  // Steps of k a power of two apart share the sets of a cache.
  EXPECT_TRUE(packs(600, 60, 1024));
}

// The left side is packed too where its steps of k are far apart, or share sets, and many columns read it.
TEST(lowering, matmul_packs_distant_steps_of_the_left_side) {
  const Target target{.isa = Isa::avx512};
  const auto packs = [&](int rows, int depth, int columns) {
    const std::string text = fmt::format(
        "func @main(%x: f32[{1},{0}], %w: f32[{1},{2}]) -> (f32[{0},{2}]) {{\n"
        "  %y = dot_general %x, %w {{lhs_contract = [0], rhs_contract = [0], dtype = f32}}\n  return %y\n}}\n", rows, depth, columns);
    check(text, {}, {}, target);
    return print(build_program(parse(text), target, {})).find("packed_a") != std::string::npos;
  };
  EXPECT_TRUE(packs(600, 130, 200));   // 2400 bytes
  EXPECT_FALSE(packs(300, 130, 200));  // 1200 bytes
  EXPECT_TRUE(packs(256, 130, 200));   // 1024 bytes: four sets
  EXPECT_FALSE(packs(600, 130, 32));   // one tile of columns
}

// The blocks that tasks take of a vectorised axis are whole vectors.
TEST(lowering, tasks_of_an_elementwise_loop_share_whole_vectors) {
  for (const int n : {100'003, 65'537, 8'191 * 3}) {
    const std::string text = "func @main(%x: f32[" + std::to_string(n) + "]) -> (f32[" + std::to_string(n) + "]) {\n  %y = neg %x\n  return %y\n}\n";
    check(text);
    const Kernel kernel = build_program(parse(text), Target{}, {}).kernels.at(0);
    ASSERT_EQ(kernel.tasks.size(), 1u) << n;
    const std::int64_t tasks = kernel.tasks[0].second;
    EXPECT_GT(tasks, 1) << n;
    const Stmt& loop = kernel.body.at(0);
    ASSERT_EQ(loop.kind, StmtKind::loop);
    ASSERT_EQ(loop.loop_kind, LoopKind::vector);
    const std::int64_t block = loop.hi.at(0).constant;
    EXPECT_EQ(block % loop.width, 0) << n << ": " << print(kernel);
    EXPECT_GE(tasks * block, n);
    EXPECT_LT((tasks - 1) * block, n);
  }
}

// A sum over more k than one running sum may take, of which no axis is that long: panels are no longer than the innermost one.
TEST(lowering, matmul_sums_panels_of_short_axes) {
  const std::string text =
      "func @main(%x: f32[3,5,1500], %w: f32[1500,3,7]) -> (f32[5,7]) {\n"
      "  %y = dot_general %x, %w {lhs_contract = [2, 0], rhs_contract = [0, 1], dtype = f32}\n  return %y\n}\n";
  check(text);
  const Kernel kernel = build_program(parse(text), Target{}, {}).kernels.at(0);
  EXPECT_LE(kernel.scratch_bytes(), 512) << print(kernel);
  // Tiles are as deep as the axis: 8 pairs, not 16 of which half are zeros.
  const std::string pairs =
      "func @main(%x: bf16[16,35,300], %w: bf16[300,16,37]) -> (f32[35,37]) {\n"
      "  %y = dot_general %x, %w {lhs_contract = [2, 0], rhs_contract = [0, 1], dtype = f32}\n  return %y\n}\n";
  check(pairs);
  const std::string tiles = print(build_program(parse(pairs), Target{.isa = Isa::amx}, {}).kernels.at(0));
  EXPECT_NE(tiles.find(" blocks 8\n"), std::string::npos) << tiles;
  EXPECT_EQ(tiles.find(" blocks 16\n"), std::string::npos) << tiles;
}

bool sums_rows(const std::string& text) {
  const Program program = build_program(parse(text), Target{}, {});
  return print(program.kernels.at(0)).find("accumulate") != std::string::npos;
}

// A matrix that lies row by row along k meets a vector by sums along memory, whichever side it is and with batches, heads and
// an epilogue; one that lies the other way keeps vectors of its columns.
TEST(lowering, matmul_of_a_matrix_and_a_vector) {
  for (const char* dtype : {"f64", "f32", "bf16", "f16"}) {
    const auto of_dtype = [&](std::string text) {
      for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += 3) text.replace(at, 3, dtype);
      return text;
    };
    const std::string left = of_dtype(
        "func @main(%w: f32[37,131], %x: f32[131], %b: f32[37]) -> (f32[37]) {\n"
        "  %y = dot_general %w, %x {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
        "  %z = add %y, %b\n  %t = neg %z\n  return %t\n}\n");
    const std::string right = of_dtype(
        "func @main(%x: f32[1,131], %w: f32[37,131]) -> (f32[1,37]) {\n"
        "  %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [1], dtype = f32}\n  return %y\n}\n");
    const std::string dots = of_dtype(
        "func @main(%x: f32[5,3,70], %y: f32[3,70,5]) -> (f32[3,5]) {\n"
        "  %z = dot_general %x, %y {lhs_batch = [1, 0], rhs_batch = [0, 2], lhs_contract = [2], rhs_contract = [1], dtype = f32}\n"
        "  return %z\n}\n");
    const std::string heads = of_dtype(
        "func @main(%q: f32[2,3,1,40], %k: f32[2,9,3,40]) -> (f32[2,3,9]) {\n"  // one query, keys as [B,T,H,D]
        "  %t = transpose %k {permutation = [0, 2, 1, 3]}\n"
        "  %s = dot_general %q, %t {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3], dtype = f32}\n"
        "  %r = reshape %s {shape = [2, 3, 9]}\n  return %r\n}\n");
    std::string turned = heads;  // rows are not stored across one another
    turned.replace(turned.find("[2,3,9]"), 7, "[2,9,3]").replace(turned.find("return %r"), 9, "%u = transpose %r {permutation = [0, 2, 1]}\n  return %u");
    const std::string two_axes = of_dtype(
        "func @main(%x: f32[6,40], %w: f32[11,40,6]) -> (f32[11]) {\n"
        "  %y = dot_general %x, %w {lhs_contract = [0, 1], rhs_contract = [2, 1], dtype = f32}\n  return %y\n}\n");
    for (const std::string& text : {left, right, heads}) {
      EXPECT_TRUE(sums_rows(text)) << text;
      check(text);
    }
    const std::string columns = of_dtype(
        "func @main(%x: f32[131], %w: f32[131,37]) -> (f32[37]) {\n"
        "  %y = dot_general %x, %w {lhs_contract = [0], rhs_contract = [0], dtype = f32}\n  return %y\n}\n");
    for (const std::string& text : {columns, dots, turned, two_axes}) {
      EXPECT_FALSE(sums_rows(text)) << text;
      check(text);
    }
  }
}

TEST(lowering, matmul_with_epilogue_heads_and_dtypes) {
  check("func @main(%x: f32[2,6,24], %w: f32[24,24], %v: f32[24,24], %r: f32[2,6,24]) -> (f32[2,4,6,6], f32[2,6,24]) {\n"
        "  %q = dot_general %x, %w {lhs_contract = [2], rhs_contract = [0], dtype = f32}\n"
        "  %k = dot_general %x, %v {lhs_contract = [2], rhs_contract = [0], dtype = f32}\n"
        "  %q1 = reshape %q {shape = [2, 6, 4, 6]}\n"
        "  %q2 = transpose %q1 {permutation = [0, 2, 1, 3]}\n"
        "  %k1 = reshape %k {shape = [2, 6, 4, 6]}\n"
        "  %k2 = transpose %k1 {permutation = [0, 2, 3, 1]}\n"
        "  %s = dot_general %q2, %k2 {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2], dtype = f32}\n"
        "  %c = dot_general %s, %q2 {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [2], dtype = f32}\n"
        "  %c1 = transpose %c {permutation = [0, 2, 1, 3]}\n"
        "  %c2 = reshape %c1 {shape = [2, 6, 24]}\n"
        "  %o = dot_general %c2, %w {lhs_contract = [2], rhs_contract = [0], dtype = f32}\n"
        "  %z = add %r, %o\n"
        "  return %s, %z\n}\n");
  for (const char* dtype : {"f64", "bf16", "f16", "i32"}) {
    const std::string d = dtype;
    check("func @main(%x: " + d + "[7,9], %w: " + d + "[9,11]) -> (" + d + "[7,11]) {\n"
          "  %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = " + d + "}\n  return %y\n}\n");
  }
}

TEST(lowering, donated_arguments_are_overwritten) {
  check("func @main(%p: f32[20,24], %x: f32[9,20], %g: f32[9,24]) -> (f32[20,24]) {\n"
        "  %d = dot_general %x, %g {lhs_contract = [0], rhs_contract = [0], dtype = f32}\n"
        "  %r = constant 0.1 : f32[20,24]\n"
        "  %s = mul %r, %d\n"
        "  %n = sub %p, %s\n"
        "  return %n\n}\n", {true, false, false}, {0});
  // Read by another kernel first, then overwritten; an argument that is also a result stays.
  check("func @main(%p: f32[6,40], %q: f32[6,40]) -> (f32[6,40], f32[6], f32[6,40]) {\n"
        "  %s = reduce_sum %p {axes = [1]}\n"
        "  %b = broadcast %s {shape = [6, 40], dims = [0]}\n"
        "  %m = mul %q, %b\n"
        "  %n = add %m, %p\n"
        "  %o = mul %n, %n\n"
        "  return %o, %s, %q\n}\n", {true, true}, {-1, -1, -1});
  // A transposed read keeps its argument.
  check("func @main(%p: f32[5,5]) -> (f32[5,5]) {\n"
        "  %t = transpose %p {permutation = [1, 0]}\n"
        "  %n = add %t, %p\n"
        "  return %n\n}\n", {true}, {-1});
  // So does one that reads elements which lie elsewhere: shifted by a window, padded, backwards.
  for (const char* moved : {"  %s = slice %p {start = [0], limit = [300], stride = [1]}\n  %n = dynamic_update_slice %p, %s, %i\n",
                            "  %z = constant 0 : f32[]\n  %s = pad %p, %z {low = [3], high = [-3], interior = [0]}\n  %n = add %p, %s\n",
                            "  %s = reverse %p {axes = [0]}\n  %n = add %p, %s\n",
                            "  %s = dynamic_slice %p, %i {sizes = [300]}\n  %k = constant 1 : i32[]\n  %n = dynamic_update_slice %p, %s, %k\n"})
    check("func @main(%p: f32[400], %i: i32[]) -> (f32[400]) {\n" + std::string(moved) + "  return %n\n}\n", {true, false}, {-1});
  // The first result does not read %v, so it must not take its memory: the second result is still to read it.
  check("func @main(%v: f32[50], %m: f32[50], %g: f32[50]) -> (f32[50], f32[50]) {\n"
        "  %a = add %m, %g\n"
        "  %h = mul %g, %a\n"
        "  %b = add %v, %h\n"
        "  return %a, %b\n}\n", {true, true, false}, {1, 0});
  // Read once more behind a barrier, the argument must last until then.
  check("func @main(%p: f32[6,40], %g: f32[6,40]) -> (f32[6,40], f32[6]) {\n"
        "  %q = optimization_barrier %p\n"
        "  %n = add %p, %g\n"
        "  %t = mul %q, %n\n"
        "  %s = reduce_sum %t {axes = [1]}\n"
        "  return %n, %s\n}\n", {true, false}, {-1, -1});
  // Two results of one loop, each over its own argument.
  check("func @main(%m: f32[50], %v: f32[50], %g: f32[50]) -> (f32[50], f32[50]) {\n"
        "  %a = add %m, %g\n"
        "  %h = mul %g, %m\n"
        "  %b = add %v, %h\n"
        "  return %a, %b\n}\n", {true, true, false}, {0, 1});
}

TEST(pipeline, names_of_passes_are_checked) {
  const Function f = parse("func @main(%x: f32[2]) -> (f32[2]) {\n  return %x\n}\n");
  const std::string unknown = "passes: unknown pass `smplify`; known: inline_calls, simplify, ";
  const auto with = [&](const std::string& disabled, const std::string& stop_after) {
    Options options;
    if (!disabled.empty()) options.disabled = {disabled};
    options.stop_after = stop_after;
    return error_of([&] { build_program(f, Target{}, options); });
  };
  EXPECT_TRUE(error_of([&] { run_pass("smplify", f, {}); }).starts_with(unknown));
  EXPECT_TRUE(with("smplify", "").starts_with(unknown));
  EXPECT_TRUE(with("", "smplify").starts_with(unknown));
  EXPECT_EQ(with("lower", ""), "passes: nothing runs without `lower`; these can be left out: simplify, widen_half, fold_constants, "
                               "eliminate_common, remove_dead, split_reductions, fuse, drop_repeated_checks, schedule");
  EXPECT_EQ(with("", "fuse"), "passes: nothing is lowered when `fuse` is the last pass");
}

TEST(pipeline, stops_after_a_pass_and_leaves_passes_out) {
  const Function f = parse("func @main(%x: f32[2,3]) -> (f32[2,3]) {\n  %a = neg %x\n  %b = neg %a\n  %d = exp %b\n  %c = exp %b\n"
                           "  %s = add %c, %d\n  return %s\n}\n");
  const auto ran = [&](Options options) {
    std::string passes;
    options.observer = [&](const Options::Event& event) { passes += std::string(event.pass) + " "; };
    const Function fused = run_function_passes(f, options);
    if (options.stop_after.empty() || options.stop_after == "schedule") run_lowering(fused, Target{}, options);
    return passes;
  };
  Options options;
  options.disabled = {"simplify", "drop_repeated_checks"};
  options.stop_after = "eliminate_common";
  EXPECT_EQ(ran(options), "inline_calls widen_half fold_constants eliminate_common ");
  EXPECT_EQ(run_function_passes(f, options).num_ops(), 4u);  // the negations are still there, exp once
  options.stop_after = "schedule";
  EXPECT_EQ(ran(options), "inline_calls widen_half fold_constants eliminate_common decompose remove_dead split_reductions fuse lower schedule ");
  options.stop_after = "";
  options.disabled = {"schedule"};
  EXPECT_EQ(ran(options), "inline_calls simplify widen_half fold_constants eliminate_common decompose remove_dead split_reductions fuse drop_repeated_checks "
                          "lower plan_memory ");
}

TEST(lowering, values_that_no_index_can_count_are_refused) {
  const auto compile = [](const std::string& type) {
    return error_of([&] {
      build_program(parse("func @main(%x: " + type + ") -> (" + type + ") {\n  %y = exp %x\n  return %y\n}\n"), Target{}, {});
    });
  };
  EXPECT_EQ(compile("f64[281474976710656]"), "no error");
  EXPECT_EQ(compile("f64[281474976710657]"), "f64[281474976710657] has more than 2^48 elements, the most that a kernel can work on");
  // In the middle of a fusion too.
  EXPECT_EQ(error_of([] {
              build_program(parse("func @main(%x: f32[3]) -> (f32[3]) {\n"
                                  "  %y = broadcast %x {shape = [3, 281474976710656], dims = [0]}\n"
                                  "  %z = reduce_max %y {axes = [1]}\n"
                                  "  return %z\n}\n"),
                            Target{}, {});
            }),
            "f32[3,281474976710656] has more than 2^48 elements, the most that a kernel can work on");
}

TEST(pipeline, every_pass_says_why_it_stands_where_it_stands) {
  for (const PassInfo& pass : pass_table()) EXPECT_FALSE(pass.why.empty()) << pass.name;
}

TEST(lowering, gathers_and_scatters) {
  check("func @main(%t: f32[4,33], %i: i32[2,5], %g: f32[2,5,33]) -> (f32[2,5,33], f32[4,33]) {\n"
        "  %y = gather %t, %i {offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2, slice_sizes = [1, 33]}\n"
        "  %z = constant 0 : f32[4,33]\n"
        "  %s = scatter %z, %i, %g {update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2}\n"
        "  %l = constant 0.5 : f32[4,33]\n"
        "  %m = mul %l, %s\n"
        "  %n = sub %t, %m\n"
        "  return %y, %n\n}\n");
  check("func @main(%x: f32[6,9], %i: i32[6]) -> (f32[6], f32[6,9]) {\n"
        "  %i1 = reshape %i {shape = [6, 1, 1]}\n"
        "  %y = gather %x, %i1 {collapsed_slice_dims = [1], operand_batching_dims = [0], indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2, slice_sizes = [1, 1]}\n"
        "  %y1 = reshape %y {shape = [6]}\n"
        "  %z = constant 0 : f32[6,9]\n"
        "  %s = scatter %z, %i1, %y {inserted_window_dims = [1], operand_batching_dims = [0], indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2}\n"
        "  return %y1, %s\n}\n");
  check("func @main(%x: f32[6,9], %u: f32[2,3], %i: i32[], %j: i32[]) -> (f32[2,3], f32[6,9]) {\n"
        "  %y = dynamic_slice %x, %i, %j {sizes = [2, 3]}\n"
        "  %z = dynamic_update_slice %x, %u, %i, %j\n"
        "  return %y, %z\n}\n");
}

}  // namespace
}  // namespace burin::passes
