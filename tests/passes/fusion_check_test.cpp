// Fused text that no lowering can take, and word for word what is said about it.
#include "passes/lower/fusion_check.h"

#include <gtest/gtest.h>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/support/errors.h"

namespace burin::passes {
namespace {

using namespace ir;

std::string error_of(const std::string& text) {
  return test::error_of([&] { run_lowering(parse(text, "x.ir"), Target{}, {}); });
}

// A fusion of %x: f32[3,4] and %w: f32[4,4] in line 2 over a body whose ops begin in line 6.
std::string fusion(const std::string& kind, const std::string& body, const std::string& results = "%r") {
  return "func @main(%x: f32[3,4], %w: f32[4,4], %i: i32[1]) {\n  " + results + " = fusion %x, %w, %i {kind = \"" + kind +
         "\", body = @b}\n  return " + results + "\n}\nfunc @b(%x: f32[3,4], %w: f32[4,4], %i: i32[1]) {\n" + body +
         "}\nfunc @c(%x: f32[3,4]) {\n  return %x\n}\n";
}

constexpr const char* dot = "  %d = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n";

struct Case {
  std::string kind, body, error;
};

TEST(FusionCheck, SaysWhereAndWhyABodyFitsNoLowering) {
  const std::string scatter =
      "  %s = scatter %w, %i, %x {update_window_dims = [0,1], scatter_dims_to_operand_dims = [0], combine = add, mode = clip}\n";
  const Case cases[] = {
      {"banana", "  return %x\n", "fusion: unknown kind `banana`, expected loop, rows, matmul, attention or scatter (x.ir:2)"},
      {"loop", "  %0 = optimization_barrier %x\n  return %0\n",
       "fusion: @b is no body of kind loop: it holds optimization_barrier (x.ir:6)"},
      {"loop", "  %0 = fusion %x {kind = \"loop\", body = @c}\n  return %0\n",
       "fusion: @b is no body of kind loop: it holds fusion (x.ir:6)"},
      {"loop", "  %0 = call %x {body = @c}\n  return %0\n", "fusion: @b is no body of kind loop: it holds call (x.ir:6)"},
      {"loop", "  %0 = argmax %x {axis = 1, dtype = i32}\n  return %0\n",
       "fusion: @b is no body of kind loop: it holds argmax (x.ir:6)"},
      {"loop", scatter + "  return %s\n", "fusion: @b is no body of kind loop: it holds scatter (x.ir:6)"},
      {"loop", "  %0 = constant [[1,2],[3,4]] : f32[2,2]\n  return %0\n",
       "fusion: @b is no body of kind loop: it holds a constant f32[2,2], which must be an operand (x.ir:6)"},
      {"rows", "  %0 = tanh %x\n  return %0\n",
       "fusion: @b is no body of kind rows: it has no reductions that run along the rows of one domain (x.ir:2)"},
      {"rows", "  %0 = reduce_sum %x {axes = [1]}\n  %1 = reverse %0 {axes = [0]}\n  return %1\n",
       "fusion: @b is no body of kind rows: it has no reductions that run along the rows of one domain (x.ir:2)"},
      {"rows", "  %0 = argmin %x {axis = 1, dtype = i32}\n  return %0\n",
       "fusion: @b is no body of kind rows: it holds argmin (x.ir:6)"},
      {"matmul", "  %0 = tanh %x\n  return %0\n", "fusion: @b is no body of kind matmul: it holds no dot_general (x.ir:2)"},
      {"matmul", std::string(dot) + "  %e = dot_general %d, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n  return %e\n",
       "fusion: @b is no body of kind matmul: it holds more than one dot_general (x.ir:7)"},
      {"matmul", "  %y = convert %x {dtype = i32}\n  %v = convert %w {dtype = i32}\n"
                 "  %d = dot_general %y, %v {lhs_contract = [1], rhs_contract = [0], dtype = i32}\n  return %d\n",
       "fusion: @b is no body of kind matmul: its dot_general gives i32[3,4], not floats (x.ir:8)"},
      {"matmul", std::string(dot) + "  return %x\n",
       "fusion: @b is no body of kind matmul: its results do not follow the dot_general element by element (x.ir:2)"},
      {"matmul", std::string(dot) + "  %0 = slice %d {start = [0,0], limit = [1,1], stride = [1,1]}\n  return %0\n",
       "fusion: @b is no body of kind matmul: its results do not follow the dot_general element by element (x.ir:2)"},
      {"matmul", "  %d = dot_general %w, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n"
                 "  %t = transpose %d {permutation = [1,0]}\n  %0 = add %d, %t\n  return %0\n",
       "fusion: @b is no body of kind matmul: its results do not follow the dot_general element by element (x.ir:2)"},
      {"attention", "  %0 = tanh %x\n  return %0\n",
       "fusion: @b is no body of kind attention: it holds no product of two operands (x.ir:2)"},
      {"attention", std::string(dot) + "  return %d\n",
       "fusion: @b is no body of kind attention: nothing sums over its scores (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = slice %d {start = [0,0], limit = [1,1], stride = [1,1]}\n  return %0\n",
       "fusion: @b is no body of kind attention: slice (x.ir:7) is neither arithmetic on scores nor a move that keeps all of them (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = reduce_sum %d {axes = [0, 1]}\n  return %0\n",
       "fusion: @b is no body of kind attention: reduce_sum (x.ir:7) does not sum over one whole axis of the scores (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = reduce_sum %d {axes = [0]}\n  %1 = reduce_sum %d {axes = [1]}\n  return %1\n",
       "fusion: @b is no body of kind attention: reduce_sum (x.ir:8) sums over another axis than what stands before it (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = reduce_sum %d {axes = [1]}\n  %1 = broadcast %0 {shape = [3, 4], dims = [0]}\n"
                    "  %2 = mul %1, %d\n  %3 = reduce_sum %2 {axes = [1]}\n  return %3\n",
       "fusion: @b is no body of kind attention: reduce_sum (x.ir:10) needs another sum to be complete (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = reduce_max %d {axes = [1]}\n  %1 = broadcast %0 {shape = [3, 4], dims = [0]}\n"
                    "  %2 = mul %1, %d\n  %3 = reduce_sum %2 {axes = [1]}\n  return %3\n",
       "fusion: @b is no body of kind attention: reduce_sum (x.ir:10) sums something else than exponentials below the maximum (x.ir:2)"},
      {"attention", std::string(dot) + "  %0 = reduce_sum %d {axes = [1]}\n  return %d\n",
       "fusion: @b is no body of kind attention: a result is not summed over the scores (x.ir:2)"},
      {"scatter", "  %0 = tanh %x\n  return %0\n", "fusion: @b is no body of kind scatter: it holds no scatter (x.ir:2)"},
      {"scatter", dot + scatter + "  return %s\n", "fusion: @b is no body of kind scatter: it holds dot_general (x.ir:6)"},
      {"scatter", scatter + "  %t = transpose %s {permutation = [1,0]}\n  return %t\n",
       "fusion: @b is no body of kind scatter: its results do not follow the scatter element by element (x.ir:2)"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(fusion(c.kind, c.body)), c.error) << c.body;
}

TEST(FusionCheck, ResultsOfALoopHaveEquallyManyElements) {
  EXPECT_EQ(error_of(fusion("loop", "  %0 = slice %x {start = [0,0], limit = [1,1], stride = [1,1]}\n  return %x, %0\n", "%r, %q")),
            "fusion: @b is no body of kind loop: its results have different numbers of elements: f32[3,4] and f32[1,1] (x.ir:2)");
}

TEST(FusionCheck, WhatIsNotFusedIsNotLowered) {
  EXPECT_EQ(error_of("func @main(%x: f32[2]) {\n  %0 = tanh %x\n  return %0\n}\n"),
            "lower: expected fusions, constants and barriers, found tanh: run fuse before it (x.ir:2)");
}

TEST(FusionCheck, AScatterMayReturnItsSumsTwice) {
  const Function f = parse(
      "func @main(%x: f32[2], %i: i32[1,1], %u: f32[1]) {\n  %0, %1 = fusion %x, %i, %u {kind = \"scatter\", body = @b}\n"
      "  return %0, %1\n}\nfunc @b(%x: f32[2], %i: i32[1,1], %u: f32[1]) {\n  %s = scatter %x, %i, %u {inserted_window_dims = [0], "
      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combine = add, mode = clip}\n  return %s, %s\n}\n");
  const auto literal = [](Type type, std::vector<double> values) {
    Literal l(type);
    for (std::size_t i = 0; i < values.size(); ++i) l.set(static_cast<std::int64_t>(i), values[i]);
    return l;
  };
  const std::vector<Literal> inputs = {literal({DType::f32, {2}}, {1, 2}), literal({DType::i32, {1, 1}}, {1}),
                                       literal({DType::f32, {1}}, {5})};
  EXPECT_EQ(interpret(run_lowering(f, Target{}, {}), inputs), evaluate(f, inputs));
}

}  // namespace
}  // namespace burin::passes
