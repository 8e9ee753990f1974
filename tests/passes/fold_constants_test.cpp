#include <gtest/gtest.h>

#include <algorithm>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/passes.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using namespace ir;

// The ops that remain behind the constants that the program started with, one a line; also checks that the program
// still verifies and means the same.
std::string fold(const std::string& ops, const std::string& results, const std::string& arguments = "") {
  const Function f = parse("func @main(" + arguments + ") {\n" + ops + "\n  return " + results + "\n}\n");
  const Function folded = fold_constants(f);
  EXPECT_EQ(verify(folded), "");
  EXPECT_EQ(f.result_types(), folded.result_types());
  std::vector<Literal> inputs;
  for (const Type& type : f.arg_types()) {
    Literal input(type);
    for (std::int64_t i = 0; i < type.size(); ++i) input.set(i, static_cast<double>(i + 1));
    inputs.push_back(input);
  }
  EXPECT_EQ(evaluate(f, inputs), evaluate(folded, inputs));
  EXPECT_TRUE(same_program(folded, fold_constants(folded)));

  std::string text = print(folded);
  std::string rest;
  for (std::size_t start = text.find('\n') + 1, end; (end = text.find('\n', start)) != std::string::npos;
       start = end + 1) {
    const std::string line = text.substr(start, end - start);
    const bool old = ops.find(line) != std::string::npos && line.find(" constant ") != std::string::npos;
    if (line.starts_with("  ") && !line.starts_with("    ") && !old) rest += line.substr(2) + "\n";
  }
  return rest;
}

constexpr const char* two = "  %a = constant [1, 2, 3] : f32[3]\n  %b = constant [0.5, 4, -0] : f32[3]\n";

TEST(FoldConstants, Arithmetic) {
  EXPECT_EQ(fold(std::string(two) + "  %c = add %a, %b\n  %d = mul %c, %b", "%d"),
            "%d = constant [0.75, 24, -0] : f32[3]\nreturn %d\n");
  EXPECT_EQ(fold(std::string(two) + "  %c = div %a, %b\n", "%c"), "%c = constant [2, 0.5, -inf] : f32[3]\nreturn %c\n");
  EXPECT_EQ(fold("  %a = constant [7, -7, -128] : i8[3]\n  %b = constant [0, 2, -1] : i8[3]\n  %c = div %a, %b", "%c"),
            "%c = constant [-1, -3, -128] : i8[3]\nreturn %c\n");
  EXPECT_EQ(fold("  %a = constant [256, 1] : bf16[2]\n  %b = constant [1, 1] : bf16[2]\n  %c = add %a, %b", "%c"),
            "%c = constant [256, 2] : bf16[2]\nreturn %c\n");
}

TEST(FoldConstants, CompareSelectConvertAndMovement) {
  EXPECT_EQ(
      fold(std::string(two) + "  %p = lt %a, %b\n  %c = select %p, %a, %b\n  %d = convert %c {dtype = i32}", "%d"),
      "%d = constant [0, 2, 0] : i32[3]\nreturn %d\n");
  EXPECT_EQ(fold(std::string(two) + "  %c = concatenate %a, %b {axis = 0}\n  %d = reverse %c {axes = [0]}\n"
                                    "  %e = reshape %d {shape = [2, 3]}\n  %f = transpose %e {permutation = [1, 0]}\n"
                                    "  %g = slice %f {start = [0, 0], limit = [2, 2], stride = [1, 1]}",
                 "%g"),
            "%g = constant [[-0, 3], [4, 2]] : f32[2,2]\nreturn %g\n");
  EXPECT_EQ(fold("  %a = constant [3, 5] : i32[2]\n  %b = reduce_sum %a {axes = [0]}\n", "%b"),
            "%b = constant 8 : i32[]\nreturn %b\n");
}

TEST(FoldConstants, EmptyAndSingleElements) {
  EXPECT_EQ(fold("  %a = constant [] : f32[0,3]\n  %b = neg %a", "%b"), "%b = constant [] : f32[0,3]\nreturn %b\n");
  EXPECT_EQ(fold("  %a = constant 2 : f32[]\n  %b = neg %a", "%b"), "%b = constant -2 : f32[]\nreturn %b\n");
}

TEST(FoldConstants, SplatsOfAnySizeStaySplats) {
  EXPECT_EQ(fold("  %a = constant 2 : f32[]\n  %b = broadcast %a {shape = [100000, 3]}\n  %c = add %b, %b", "%c"),
            "%c = constant 4 : f32[100000,3]\nreturn %c\n");
  EXPECT_EQ(fold("  %a = constant 2 : f32[512,512]\n  %b = transpose %a {permutation = [1, 0]}", "%b"),
            "%b = constant 2 : f32[512,512]\nreturn %b\n");
}

TEST(FoldConstants, WhatDependsOnAnArgumentStays) {
  EXPECT_EQ(fold(std::string(two) + "  %c = sub %a, %b\n  %d = mul %x, %c\n  %e = neg %d", "%e", "%x: f32[3]"),
            "%c = constant [0.5, -2, 3] : f32[3]\n%d = mul %x, %c : f32[3]\n%e = neg %d : f32[3]\nreturn %e\n");
}

TEST(FoldConstants, FunctionsDotsAndFloatSumsStay) {
  EXPECT_EQ(fold(std::string(two) + "  %c = exp %a\n  %d = log %c", "%d"),
            "%c = exp %a : f32[3]\n%d = log %c : f32[3]\nreturn %d\n");
  EXPECT_EQ(fold(std::string(two) + "  %c = reduce_sum %a {axes = [0]}", "%c"),
            "%c = reduce_sum %a {axes = [0]} : f32[]\nreturn %c\n");
  EXPECT_EQ(fold(std::string(two) + "  %c = pow %a, %b", "%c"), "%c = pow %a, %b : f32[3]\nreturn %c\n");
  EXPECT_EQ(
      fold(std::string(two) + "  %c = dot_general %a, %b {lhs_contract = [0], rhs_contract = [0], dtype = f32}", "%c"),
      "%c = dot_general %a, %b {lhs_contract = [0], rhs_contract = [0], dtype = f32} : f32[]\nreturn %c\n");
  EXPECT_EQ(fold("  %i = iota {dtype = i32, shape = [3], axis = 0}\n  %j = neg %i", "%j"),
            "%i = iota {dtype = i32, shape = [3]} : i32[3]\n%j = neg %i : i32[3]\nreturn %j\n");
}

TEST(FoldConstants, LargeResultsAndRepeatedElementsStay) {
  EXPECT_EQ(fold(std::string(two) + "  %c = broadcast %a {shape = [5, 3], dims = [1]}", "%c"),
            "%c = broadcast %a {shape = [5, 3], dims = [1]} : f32[5,3]\nreturn %c\n");
  EXPECT_EQ(fold("  %a = constant 1 : f32[]\n  %z = constant 0 : f32[]\n  %s = broadcast %a {shape = [3]}\n"
                 "  %c = pad %s, %z {low = [0], high = [20000], interior = [0]}",
                 "%c"),
            "%s = constant 1 : f32[3]\n"
            "%c = pad %s, %z {low = [0], high = [20000], interior = [0]} : f32[20003]\nreturn %c\n");
}

TEST(FoldConstants, AnIndexErrorWaitsForTheRun) {
  const std::string gather =
      "{collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]";
  const std::string program = std::string(two) + "  %i = constant [7] : i32[1]\n  %c = gather %a, %i " + gather;
  const Function f = parse("func @main() {\n" + program + "}\n  return %c\n}\n");
  EXPECT_TRUE(same_program(fold_constants(f), f));
  EXPECT_EQ(fold(program + ", mode = clip}", "%c"), "%c = constant [3] : f32[1]\nreturn %c\n");
}

TEST(FoldConstants, KeepsNamesAndLocations) {
  Builder b;
  const ValueId x = b.add_arg({f32, {}}, "x");
  const ValueId two = b.constant(Literal::scalar(f32, 2));
  b.set_location({.file = "model.cpp", .line = 42, .function = "", .scope = ""});
  const ValueId four = b.mul(two, two);
  b.set_value_name(four, "four");
  b.set_location({.file = "model.cpp", .line = 43, .function = "", .scope = ""});
  const Function f = fold_constants(b.finish({b.mul(x, four)}));
  ASSERT_EQ(f.num_ops(), 3u);
  EXPECT_EQ(to_string(f.location(OpId{std::size_t{1}})), "model.cpp:42");
  EXPECT_EQ(f.value_name(f.result(OpId{std::size_t{1}})), "four");
  EXPECT_EQ(to_string(f.location(OpId{std::size_t{2}})), "model.cpp:43");
}

}  // namespace
}  // namespace burin::passes
