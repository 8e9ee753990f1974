// What batching makes of each op, apart from being right (which the op-case table shows): no loop, no second matmul, nothing
// repeated along the batch that does not have to be.
#include <gtest/gtest.h>

#include "ir/eval/eval.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/batching/batching.h"
#include "tests/support/literals.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using ir::Function;
using ir::Literal;
using ir::Op;
using test::error_of;
using test::spread;
using test::values;

/// The ops of the batched body, one line each, without the frame.
std::string batched(std::string_view program, const std::vector<bool>& flags, std::int64_t size = 7) {
  const std::string text = ir::print(batch(ir::parse(program), flags, size).function);
  const std::size_t from = text.find("{\n") + 2;
  return text.substr(from, text.find("  return") - from);
}

TEST(Batching, OneBatchedSideOfAMatmulIsMoreRows) {
  const char* program =
      "func @f(%x: f32[3,5], %w: f32[5,4]) { %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f32} "
      "return %y }";
  EXPECT_EQ(batched(program, {true, false}),
            "  %y = dot_general %x, %w {lhs_contract = [2], rhs_contract = [0], dtype = f32} : f32[7,3,4]\n");
  EXPECT_EQ(batched(program, {true, true}),
            "  %y = dot_general %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1], dtype = f32} : "
            "f32[7,3,4]\n");
  EXPECT_EQ(batched(program, {false, true}),
            "  %0 = dot_general %x, %w {lhs_contract = [1], rhs_contract = [1], dtype = f32} : f32[3,7,4]\n"
            "  %y = transpose %0 {permutation = [1, 0, 2]} : f32[7,3,4]\n");
}

TEST(Batching, ABatchedTableIsOneMoreAxisOfTheWindow) {
  const char* program =
      "func @f(%x: f32[9,5], %i: i32[4]) { %y = gather %x, %i {offset_dims = [1], collapsed_slice_dims = [0], "
      "start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 5]} return %y }";
  EXPECT_EQ(batched(program, {true, false}),
            "  %y = gather %x, %i {offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1, "
            "slice_sizes = [7, 1, 5]} : f32[7,4,5]\n");
  EXPECT_EQ(batched(program, {false, true}),
            "  %y = gather %x, %i {offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2, "
            "slice_sizes = [1, 5]} : f32[7,4,5]\n");
  EXPECT_EQ(batched(program, {true, true}),
            "  %y = gather %x, %i {offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2, slice_sizes = [1, 1, 5]} : f32[7,4,5]\n");
}

TEST(Batching, SlicesAtStartsOfTheirOwnAreOneGather) {
  const char* program =
      "func @f(%x: f32[3,5], %i: i32[], %j: i32[]) { %y = dynamic_slice %x, %i, %j {sizes = [2, 2]} return %y }";
  EXPECT_EQ(batched(program, {true, false, false}),
            "  %0 = constant 0 : i32[]\n"
            "  %y = dynamic_slice %x, %0, %i, %j {sizes = [7, 2, 2]} : f32[7,2,2]\n");
  const std::string gathered = batched(program, {true, true, true});
  EXPECT_NE(gathered.find("gather"), std::string::npos) << gathered;
  EXPECT_NE(gathered.find("mode = clip"), std::string::npos) << gathered;
  EXPECT_EQ(gathered.find("broadcast"), std::string::npos) << gathered;
}

TEST(Batching, WhatDependsOnNoBatchedArgStaysAsItIs) {
  const char* program = R"(func @f(%x: f32[3], %w: f32[3]) {
    %c = constant 2 : f32[3]
    %a = mul %w, %c
    %b = exp %a
    %y = add %x, %b
    return %y, %b
  })";
  const Batched done = batch(ir::parse(program), {true, false}, 7);
  EXPECT_EQ(done.result_batched, (std::vector<bool>{true, false}));
  EXPECT_EQ(batched(program, {true, false}),
            "  %c = constant 2 : f32[3]\n"
            "  %a = mul %w, %c : f32[3]\n"
            "  %b = exp %a : f32[3]\n"
            "  %0 = broadcast %b {shape = [7, 3], dims = [1]} : f32[7,3]\n"
            "  %y = add %x, %0 : f32[7,3]\n");
}

TEST(Batching, NothingBatchedIsTheFunctionItself) {
  const Function f = ir::parse("func @f(%x: f32[3]) { %y = exp %x return %y }");
  const Batched done = batch(f, {false}, 7);
  EXPECT_TRUE(same_program(done.function, f));
  EXPECT_EQ(done.result_batched, std::vector<bool>{false});
}

TEST(Batching, LocationsAndNamesStay) {
  const Function f = ir::parse("func @f(%x: f32[3]) {\n  %loud = exp %x\n  return %loud\n}", "model.ir");
  const Batched done = batch(f, {true}, 7);
  EXPECT_EQ(to_string(done.function.location(ir::OpId{std::size_t{0}})), "model.ir:2");
  EXPECT_EQ(done.function.value_name(done.function.results()[0]), "loud");
}

TEST(Batching, AnAxisTooManyIsTheUsersError) {
  EXPECT_EQ(error_of([] {
              batch(ir::parse("func @f(%x: f32[1,1,1,1,1,1,1,1]) { %y = exp %x return %y }"), {true}, 2);
            }),
            "vmap: the result has 9 axes, at most 8 are possible");
}

// Each example's rule sees its own cotangent; the shared operand gets the sum. The rule gives ten times the truth, so that it
// is clear who was asked.
constexpr std::string_view custom = R"(func @f(%x: f64[2], %w: f64[2], %n: i32[2]) {
    %z, %m = custom_vjp %x, %w, %n {body = @body, forward = @forward, backward = @backward}
    return %z, %m
  }
  func @body(%x: f64[2], %w: f64[2], %n: i32[2]) { %z = mul %x, %w %m = add %n, %n return %z, %m }
  func @forward(%x: f64[2], %w: f64[2], %n: i32[2]) { %z = mul %x, %w %m = add %n, %n return %z, %m, %x, %w }
  func @backward(%x: f64[2], %w: f64[2], %ct: f64[2]) {
    %ten = constant 10 : f64[2]
    %c = mul %ct, %ten
    %a = mul %c, %w
    %b = mul %c, %x
    return %a, %b
  })";

TEST(Batching, CustomVjpSumsTheCotangentsOfWhatIsShared) {
  const Function f = ir::parse(custom), both = batch(f, {true, false, false}, 3).function;
  const Function g = test::gradient(both, {true, true, false});
  const std::vector<Literal> found = ir::evaluate(
      g, std::vector<Literal>{values(f64, {3, 2}, "1 2 3 4 5 6"), values(f64, "10 100"), values(i32, "1 2"),
                              values(f64, {3, 2}, "1 1 1 1 2 0")});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(test::text(found[2]), "100 1000 100 1000 200 0");
  EXPECT_EQ(test::text(found[3]), "140 60");
}

TEST(Batching, CustomVjpUnderEveryChoiceOfBatchedArgs) {
  const Function f = ir::parse(custom);
  std::vector<std::vector<Literal>> examples;
  for (std::uint64_t e = 0; e < 3; ++e)
    examples.push_back({spread({f64, {2}}, -2, 2, 3 * e), spread({f64, {2}}, -2, 2, 3 * e + 1), spread({i32, {2}}, -9, 9, e)});
  for (int bits = 1; bits < 8; ++bits) {
    const std::vector<bool> flags = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    EXPECT_EQ(test::check_batch(f, examples, flags), "") << bits;
    EXPECT_EQ(test::check_batched_gradient(f, examples, flags, {true, true, false}), "") << bits;
    EXPECT_EQ(test::check_batch_twice(f, examples, flags), "") << bits;
  }
}

// backward gives %w's cotangent from its residuals alone: a batch of three is three times that.
TEST(Batching, ACotangentThatIsTheSameForAllExamplesIsCountedForEach) {
  const Function f = ir::parse(R"(func @f(%x: f64[], %w: f64[]) {
    %z = custom_vjp %x, %w {body = @body, forward = @forward, backward = @backward}
    return %z
  }
  func @body(%x: f64[], %w: f64[]) { %z = add %x, %w return %z }
  func @forward(%x: f64[], %w: f64[]) { %z = add %x, %w return %z, %w }
  func @backward(%w: f64[], %ct: f64[]) { return %ct, %w })");
  const Function g = test::gradient(batch(f, {true, false}, 3).function, {true, true});
  const std::vector<Literal> found = ir::evaluate(
      g, std::vector<Literal>{values(f64, "1 2 3"), values(f64, {}, "5"), values(f64, "1 1 1")});
  EXPECT_EQ(test::text(found[2]), "15");
}

TEST(Batching, ARuleMayMakeAResultBatchedThatTheBodyDoesNot) {
  // The body ignores %x; its rule does not.
  const Function f = ir::parse(R"(func @f(%x: f64[], %w: f64[]) {
    %z = custom_jvp %x, %w {body = @body, jvp = @rule}
    return %z
  }
  func @body(%x: f64[], %w: f64[]) { %z = sin %w return %z }
  func @rule(%x: f64[], %w: f64[], %dx: f64[], %dw: f64[]) { %z = sin %w %d = mul %dx, %w return %z, %d })");
  const Batched done = batch(f, {true, false}, 3);
  EXPECT_EQ(done.result_batched, std::vector<bool>{true});
  const Function g = test::gradient(done.function, {true, true});
  const std::vector<Literal> found = ir::evaluate(
      g, std::vector<Literal>{values(f64, "1 2 3"), values(f64, {}, "5"), values(f64, "1 10 100")});
  EXPECT_EQ(test::text(found[1]), "5 50 500");
  EXPECT_EQ(test::text(found[2]), "0");
}

// A whole small network: vmap over examples of the gradient in the parameters is the per-example gradient.
TEST(Batching, PerExampleGradientsOfANetwork) {
  const Function f = ir::parse(R"(func @loss(%x: f64[5], %w1: f64[5,4], %w2: f64[4,3], %t: i32[]) {
    %h0 = dot_general %x, %w1 {lhs_contract = [0], rhs_contract = [0], dtype = f64}
    %h = tanh %h0
    %logits = checkpoint %h, %w2 {body = @head}
    %top = reduce_max %logits {axes = [0]}
    %tops = broadcast %top {shape = [3], dims = []}
    %shifted = sub %logits, %tops
    %e = exp %shifted
    %s = reduce_sum %e {axes = [0]}
    %l = log %s
    %picked = dynamic_slice %shifted, %t {sizes = [1]}
    %p = reshape %picked {shape = []}
    %loss = sub %l, %p
    return %loss
  }
  func @head(%h: f64[4], %w: f64[4,3]) {
    %y = dot_general %h, %w {lhs_contract = [0], rhs_contract = [0], dtype = f64}
    return %y
  })");
  std::vector<std::vector<Literal>> examples;
  for (std::uint64_t e = 0; e < 3; ++e)
    examples.push_back({spread({f64, {5}}, -1, 1, 5 * e), spread({f64, {5, 4}}, -1, 1, 5 * e + 1),
                        spread({f64, {4, 3}}, -1, 1, 5 * e + 2), spread({i32, {}}, 0, 2, e)});
  const std::vector<bool> active = {true, true, true, false};
  EXPECT_EQ(test::check_vjp(f, examples[0], active), "");
  EXPECT_EQ(test::check_second_order(f, examples[0], active), "");
  EXPECT_EQ(test::check_batch(f, examples, {true, false, false, true}), "");
  EXPECT_EQ(test::check_batched_gradient(f, examples, {true, false, false, true}, active), "");
  EXPECT_EQ(test::check_batched_gradient(f, examples, {true, true, true, true}, active), "");
  EXPECT_EQ(test::check_batch_twice(f, examples, {true, false, true, true}), "");
}

}  // namespace
}  // namespace burin::passes
