// Sums of many elements keep their digits: along each axis, over everything, as columns and as products. Equal elements are the
// worst case, since their roundings all go one way.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/support/machine.h"

namespace burin::passes {
namespace {

using namespace ir;

constexpr double f32_unit = 1.0 / (1 << 24);  // half a unit in the last place, as a share of the value
constexpr double bf16_unit = 1.0 / (1 << 8);

std::vector<Literal> filled(const Function& f, double value) {
  std::vector<Literal> args;
  for (ValueId arg : f.args())
    args.push_back(Literal::splat(f.type(arg).shape, Literal::scalar(f.type(arg).dtype, value)));
  for (Literal& arg : args) arg.expand();
  return args;
}

/// Every result's elements are within `tolerance` of `want`, as a share of it.
void expect_elements(const std::vector<Literal>& results, double want, double tolerance, const std::string& what) {
  for (const Literal& result : results)
    for (std::int64_t i = 0; i < result.type().size(); ++i)
      ASSERT_LE(std::abs(result.at(i) - want), tolerance * want) << what << ", element " << i << ": " << result.at(i);
}

/// `text` over arguments of nothing but `value` gives `want`, interpreted and as machine code, for both widths of vectors.
void check(const std::string& text, double value, double want, double tolerance) {
  SCOPED_TRACE(text);
  const Function f = parse(text);
  const std::vector<Literal> args = filled(f, value);
  for (Isa isa : {Isa::avx512_bf16, Isa::avx2}) {
    Target target;
    target.isa = isa;
    const Program program = build_program(f, target, {});
    expect_elements(interpret(program, args), want, tolerance, "interpreted");
    for (const Target& runnable : test::runnable_targets())
      if (runnable.isa == isa) expect_elements(test::run_machine(program, args, runnable), want, tolerance, "machine code");
  }
}

std::string sum_of(const std::string& type, const std::string& axes, const std::string& result) {
  return "func @main(%x: " + type + ") -> (" + result + ") {\n  %s = reduce_sum %x {axes = [" + axes + "]}\n  return %s\n}\n";
}

const double tenth = static_cast<double>(0.1f);

TEST(long_sums, over_everything) {
  check(sum_of("f32[1000000]", "0", "f32[]"), tenth, 1e6 * tenth, 1e-5);
  check(sum_of("f32[1003,997]", "0, 1", "f32[]"), tenth, 1003 * 997 * tenth, 1e-5);
}

TEST(long_sums, along_each_axis) {
  check(sum_of("f32[2,500003]", "1", "f32[2]"), tenth, 500003 * tenth, 1e-5);
  check(sum_of("f32[500003,2]", "0", "f32[2]"), tenth, 500003 * tenth, 1e-5);
  check(sum_of("f32[20011,65]", "0", "f32[65]"), tenth, 20011 * tenth, 1e-5);
  check(sum_of("f32[7001,3,70]", "0, 2", "f32[3]"), tenth, 7001 * 70 * tenth, 1e-5);
  check(sum_of("f32[3,100003,2]", "1", "f32[3,2]"), tenth, 100003 * tenth, 1e-5);
  check(sum_of("f32[3,70001,1]", "0, 1", "f32[1]"), tenth, 3 * 70001 * tenth, 1e-5);
}

// One pass gives both; columns are summed in tasks, and the tasks' sums behind them.
TEST(long_sums, rows_and_columns_at_once) {
  check("func @main(%x: f32[1100,1100]) -> (f32[1100], f32[1100]) {\n  %r = reduce_sum %x {axes = [1]}\n"
        "  %c = reduce_sum %x {axes = [0]}\n  return %r, %c\n}\n",
        tenth, 1100 * tenth, 150 * f32_unit);  // short enough for f32
  for (const int columns : {3, 24, 65}) {
    const std::string n = std::to_string(columns), m = "40000";
    check("func @main(%x: f32[" + m + "," + n + "]) -> (f32[" + n + "], f32[" + m + "]) {\n"
              "  %c = reduce_sum %x {axes = [0]}\n"
              "  %r = reduce_sum %x {axes = [1]}\n"
              "  %k = constant " + n + " : f32[" + n + "]\n  %q = constant " + m + " : f32[" + n + "]\n"
              "  %s = div %c, %q\n  %t = mul %s, %k\n"  // brings both to one value
              "  return %t, %r\n}\n",
          tenth, columns * tenth, 1e-5);
  }
}

// Dear values of the row's first pass are kept for the second, sums of the second are long, too; a maximum runs through the blocks.
TEST(long_sums, in_passes_over_a_row) {
  for (const char* type : {"f32[3,30001]", "f32[30001,3]"}) {
    const bool innermost = std::string(type) == "f32[3,30001]";
    const std::string along = innermost ? "1" : "0", kept = innermost ? "0" : "1", shape = innermost ? "[3, 30001]" : "[30001, 3]";
    check("func @main(%x: " + std::string(type) + ") -> (f32[3]) {\n"
              "  %m = reduce_max %x {axes = [" + along + "]}\n"
              "  %mb = broadcast %m {shape = " + shape + ", dims = [" + kept + "]}\n"
              "  %d = sub %x, %mb\n  %e = exp %d\n"
              "  %s = reduce_sum %e {axes = [" + along + "]}\n"
              "  %sb = broadcast %s {shape = " + shape + ", dims = [" + kept + "]}\n"
              "  %p = div %e, %sb\n"
              "  %t = reduce_sum %p {axes = [" + along + "]}\n"
              "  return %t\n}\n",
          tenth, 1, 1e-5);
  }
}

TEST(long_sums, half_types) {
  const double value = 0.10009765625;  // of bf16
  check(sum_of("bf16[300007]", "0", "bf16[]"), value, 300007 * value, bf16_unit);
  check(sum_of("bf16[100003,2]", "0", "bf16[2]"), value, 100003 * value, bf16_unit);
  check("func @main(%x: bf16[2,300007]) -> (f32[2]) {\n  %w = convert %x {dtype = f32}\n  %s = reduce_sum %w {axes = [1]}\n"
        "  return %s\n}\n",
        value, 300007 * value, 1e-5);
}

TEST(long_sums, mean_of_a_constant) {
  check("func @main() -> (f32[]) {\n  %x = constant 0.5 : f32[1024,5027]\n  %s = reduce_sum %x {axes = [0, 1]}\n"
        "  %n = constant 5147648 : f32[]\n  %m = div %s, %n\n  return %m\n}\n",
        0, 0.5, 1e-5);
}

std::string product(const std::string& lhs, const std::string& rhs, const std::string& result, const std::string& contract) {
  return "func @main(%x: " + lhs + ", %y: " + rhs + ") -> (" + result + ") {\n  %d = dot_general %x, %y {" + contract +
         ", dtype = f32}\n  return %d\n}\n";
}

// A panel of k runs in f32, at most 256 terms; panels are added up.
TEST(long_sums, products) {
  const double square = tenth * tenth;
  const std::string vectors = "lhs_contract = [0], rhs_contract = [0]", matrices = "lhs_contract = [1], rhs_contract = [0]";
  check(product("f32[1000003]", "f32[1000003]", "f32[]", vectors), tenth, 1000003 * square, 1e-5);
  check(product("f32[5000]", "f32[5000]", "f32[]", vectors), tenth, 5000 * square, 1e-5);
  check(product("f32[3,100003]", "f32[100003]", "f32[3]", matrices), tenth, 100003 * square, 1e-5);
  check(product("f32[17,20001]", "f32[20001,33]", "f32[17,33]", matrices), tenth, 20001 * square, 1e-5);
  check(product("f32[3,150001]", "f32[150001,5]", "f32[3,5]", matrices), tenth, 150001 * square, 1e-5);
  check(product("f32[2,3,3001]", "f32[3001,3,2]", "f32[2,2]", "lhs_contract = [1, 2], rhs_contract = [1, 0]"), tenth,
        9003 * square, 1e-5);
  const double value = 0.10009765625;
  check(product("bf16[200003]", "bf16[200003]", "f32[]", vectors), value, 200003 * value * value, 1e-5);
  check(product("bf16[17,20001]", "bf16[20001,33]", "f32[17,33]", matrices), value, 20001 * value * value, 1e-5);
}

TEST(long_sums, of_doubles_are_as_they_were) {
  check(sum_of("f64[1000003]", "0", "f64[]"), 0.1, 1000003 * 0.1, 1e-11);
}

// Short sums have one accumulator, extremes and products, too, whatever the length.
TEST(long_sums, only_long_chains_of_sums_are_split) {
  Target target;
  target.isa = Isa::avx512;
  const auto kernel_of = [&](const std::string& text) { return print(build_program(parse(text), target, {}).kernels[0]); };
  EXPECT_EQ(kernel_of(sum_of("f32[4,8192]", "1", "f32[4]")).find("f64"), std::string::npos);
  EXPECT_NE(kernel_of(sum_of("f32[4,8193]", "1", "f32[4]")).find("f64"), std::string::npos);
  EXPECT_EQ(kernel_of(sum_of("f32[512,4]", "0", "f32[4]")).find("f64"), std::string::npos);
  EXPECT_NE(kernel_of(sum_of("f32[513,4]", "0", "f32[4]")).find("f64"), std::string::npos);
  for (const char* op : {"reduce_max", "reduce_min", "reduce_prod"}) {
    std::string text = sum_of("f32[4,100000]", "1", "f32[4]");
    text.replace(text.find("reduce_sum"), 10, op);
    EXPECT_EQ(kernel_of(text).find("f64"), std::string::npos) << op;
  }
}

}  // namespace
}  // namespace burin::passes
