#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"
#include "tests/passes/autodiff/differentiate.h"
#include "tests/support/literals.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using ir::Function;
using ir::Literal;
using ir::Op;
using test::count_in_gradient;
using test::difference;
using test::error_of;
using test::gradients;
using test::values;

std::string layer(std::string_view op) {
  return "func @f(%x: f64[3,5], %w: f64[5,5]) { %a = " + std::string(op) + " %x, %w {body = @layer} %b = " + std::string(op) +
         R"( %a, %w {body = @layer}
    return %b
  }
  func @layer(%x: f64[3,5], %w: f64[5,5]) {
    %y = dot_general %x, %w {lhs_contract = [1], rhs_contract = [0], dtype = f64}
    %z = tanh %y
    %s = sin %z
    return %s
  })";
}

std::vector<Literal> layer_args() {
  return {test::spread({f64, {3, 5}}, -1, 1, 1), test::spread({f64, {5, 5}}, -1, 1, 2), test::spread({f64, {3, 5}}, -1, 1, 3)};
}

TEST(AutodiffStructure, CheckpointedGradientsAreTheSameBits) {
  EXPECT_EQ(gradients(layer("checkpoint"), layer_args()), gradients(layer("call"), layer_args()));
}

TEST(AutodiffStructure, CheckpointKeepsItsOperandsAloneAndStartsAgainBehindABarrier) {
  const Vjp kept = vjp(ir::parse(layer("call")), {true, true}), again = vjp(ir::parse(layer("checkpoint")), {true, true});
  // %x, %w and %a.
  EXPECT_EQ(again.num_residuals, 3u);
  EXPECT_GT(kept.num_residuals, 3u);
  int barriers = 0, tanhs = 0;
  again.pullback.for_each_op([&](ir::OpId op) {
    barriers += again.pullback.kind(op) == Op::optimization_barrier;
    tanhs += again.pullback.kind(op) == Op::tanh;
    if (again.pullback.kind(op) == Op::optimization_barrier) {  // two operands of the body and the cotangent
      EXPECT_EQ(again.pullback.operands(op).size(), 3u);
    }
  });
  EXPECT_EQ(barriers, 2);
  EXPECT_EQ(tanhs, 2);
  EXPECT_EQ(count_in_gradient(layer("call"), Op::optimization_barrier), 0);
}

TEST(AutodiffStructure, CheckpointInACheckpoint) {
  const Function f = ir::parse(R"(func @f(%x: f64[3]) { %y = checkpoint %x {body = @outer} return %y }
    func @outer(%x: f64[3]) { %a = sin %x %y = checkpoint %a {body = @inner} %z = mul %y, %a return %z }
    func @inner(%x: f64[3]) { %e = exp %x %y = mul %e, %x return %y })");
  const std::vector<Literal> args = {values(f64, "0.3 -0.7 1.1")};
  EXPECT_EQ(test::check_vjp(f, args, {true}), "");
  EXPECT_EQ(test::check_second_order(f, args, {true}), "");
}

TEST(AutodiffStructure, ACustomVjpInsideACheckpoint) {
  const Function f = ir::parse(R"(func @f(%x: f64[3]) { %y = checkpoint %x {body = @outer} return %y }
    func @outer(%x: f64[3]) {
      %a = custom_vjp %x {body = @square, forward = @forward, backward = @backward}
      %y = sin %a
      return %y
    }
    func @square(%x: f64[3]) { %y = mul %x, %x return %y }
    func @forward(%x: f64[3]) { %y = mul %x, %x return %y, %x }
    func @backward(%x: f64[3], %ct: f64[3]) { %a = mul %x, %ct %b = add %a, %a return %b })");
  const std::vector<Literal> args = {values(f64, "0.3 -0.7 1.1")};
  EXPECT_EQ(test::check_vjp_by_differences(f, args, {true}), "");
  EXPECT_EQ(test::check_second_order(f, args, {true}), "");
}

// The rule is what counts: this one gives ten times the truth, and the body's derivative is not looked at.
constexpr std::string_view tenfold = R"(func @f(%x: f64[2], %n: i32[2], %y: f64[2]) {
    %z, %m = custom_vjp %x, %n, %y {body = @body, forward = @forward, backward = @backward}
    return %z, %m
  }
  func @body(%x: f64[2], %n: i32[2], %y: f64[2]) { %z = floor %x %m = add %n, %n return %z, %m }
  func @forward(%x: f64[2], %n: i32[2], %y: f64[2]) { %z = floor %x %m = add %n, %n return %z, %m, %n }
  func @backward(%n: i32[2], %ct: f64[2]) {
    %k = convert %n {dtype = f64}
    %a = mul %ct, %k
    return %a, %ct
  })";

TEST(AutodiffStructure, CustomVjpWithIntegerOperandsAndResults) {
  EXPECT_EQ(gradients(tenfold, {values(f64, "1.5 2"), values(i32, "10 -3"), values(f64, "0 0"), values(f64, "1 2")}),
            "10 -6\n1 2");
}

TEST(AutodiffStructure, CustomVjpInSomeOperandsOnly) {
  const Function f = ir::parse(tenfold), g = test::gradient(f, {false, false, true});
  const std::vector<Literal> found = ir::evaluate(
      g, std::vector<Literal>{values(f64, "1.5 2"), values(i32, "10 -3"), values(f64, "0 0"), values(f64, "1 2")});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(test::text(found[2]), "1 2");
}

TEST(AutodiffStructure, CustomVjpHasNoForwardMode) {
  EXPECT_EQ(error_of([] { jvp(ir::parse(tenfold), {true, false, true}); }),
            "jvp: `body` has a custom_vjp rule, which forward mode cannot use; give it a custom_jvp rule or use grad (<text>:2)");
  EXPECT_NO_THROW(jvp(ir::parse(tenfold), {false, false, false}));
}

std::string with_rule(std::string_view rule) {
  return "func @f(%x: f64[2]) { %y = custom_jvp %x {body = @body, jvp = @rule} return %y } "
         "func @body(%x: f64[2]) { %y = floor %x return %y } func @rule(%x: f64[2], %t: f64[2]) { %y = floor %x " +
         std::string(rule) + " return %y, %d } func @half(%a: f64[2], %t: f64[2]) { %h = constant 0.5 : f64[2] "
         "%d = mul %t, %h %s = sin %a return %s, %d }";
}

TEST(AutodiffStructure, CustomJvpServesBothModes) {
  const std::string program = with_rule("%d = mul %t, %x");
  const std::vector<Literal> operands = {values(f64, "1.5 2"), values(f64, "1 10")};
  EXPECT_EQ(test::tangents(program, operands), "1.5 20");
  EXPECT_EQ(gradients(program, operands), "1.5 20");
}

TEST(AutodiffStructure, ACustomJvpRuleMayCallFunctions) {
  const std::string program = with_rule("%s, %d = call %x, %t {body = @half}");
  EXPECT_EQ(gradients(program, {values(f64, "1.5 2"), values(f64, "1 10")}), "0.5 5");
  const std::string nested = with_rule("%s, %d = checkpoint %x, %t {body = @half}");
  EXPECT_EQ(gradients(nested, {values(f64, "1.5 2"), values(f64, "1 10")}), "0.5 5");
}

// As batching makes of an update of a slice: the last write to an element wins, what is dropped has no part.
TEST(AutodiffStructure, ACustomJvpRuleMayWriteTangents) {
  const auto rule = [](std::string_view indices, std::string_view updates) {
    return with_rule("%i = constant " + std::string(indices) + " %s = " + std::string(updates) +
                     " %d = scatter %t, %i, %s {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, "
                     "combine = set, mode = clip}");
  };
  const std::vector<Literal> operands = {values(f64, "1.5 2"), values(f64, "1 10")};
  const std::string first = "slice %t {start = [0], limit = [1], stride = [1]}", turned = "reverse %t {axes = [0]}";
  EXPECT_EQ(test::tangents(rule("[1] : i32[1]", first), operands), "1 1");
  EXPECT_EQ(gradients(rule("[1] : i32[1]", first), operands), "11 0");
  EXPECT_EQ(test::tangents(rule("[1, 1] : i32[2]", turned), operands), "1 1");
  EXPECT_EQ(gradients(rule("[1, 1] : i32[2]", turned), operands), "11 0") << "two writes to one element";
  EXPECT_EQ(test::tangents(rule("[7, 0] : i32[2]", turned), operands), "1 10");
  EXPECT_EQ(gradients(rule("[7, 0] : i32[2]", turned), operands), "1 10") << "one write dropped";
}

TEST(AutodiffStructure, ACustomJvpRuleThatIsNotLinearIsRefusedInReverse) {
  const std::pair<std::string_view, std::string_view> rules[] = {
      {"%d = mul %t, %t", "mul"},
      {"%d = div %x, %t", "div"},
      {"%d = exp %t", "exp"},
      {"%d = max %t, %x", "max"},
      {"%p = gt %t, %x %d = select %p, %x, %t", "select"},
      {"%i = convert %t {dtype = i32} %d = convert %i {dtype = f64}", "convert"},
      {"%i = convert %t {dtype = i32} %c = clamp %i, %i, %i %e = reshape %c {shape = [2, 1]} "
       "%d = gather %x, %e {collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]}",
       "gather"},
      {"%i = convert %t {dtype = i32} %s = slice %i {start = [0], limit = [1], stride = [1]} %e = reshape %s "
       "%d0 = dynamic_slice %x, %e {sizes = [2]} %d = neg %d0",
       "dynamic_slice"},
      {"%g = dot_general %t, %t {lhs_batch = [0], rhs_batch = [0], dtype = f64} %d = neg %g", "dot_general"}};
  for (const auto& [rule, op] : rules) {
    const std::string program = with_rule(rule);
    EXPECT_EQ(error_of([&] { vjp(ir::parse(program), {true}); }),
              "custom_jvp: the rule applies " + std::string(op) +
                  " to a tangent in a way that is not linear in it, so reverse mode cannot transpose it (<text>:1)");
    EXPECT_NO_THROW(jvp(ir::parse(program), {true})) << op;
  }
}

TEST(AutodiffStructure, MessagesNameThePlace) {
  ir::Builder b("f");
  const ir::ValueId x = b.add_arg({f32, {3}});
  b.set_location({.file = "model.cpp", .line = 42, .function = "rms_norm", .scope = "block0/attn"});
  const ir::ValueId bits = b.emit<Op::bitcast>({x}, {.dtype = i32});
  const Function f = b.finish({bits});
  EXPECT_EQ(error_of([&] { vjp(f, {true}); }),
            "bitcast: not differentiable: it reads the bits of a float (model.cpp:42, in rms_norm, in block0/attn)");
}

TEST(AutodiffStructure, WhereNothingFlowsTheCotangentIsZero) {
  EXPECT_EQ(gradients("func @f(%x: f64[2], %y: f64[3]) { %z = sin %x return %z }",
                      {values(f64, "0 0"), values(f64, "1 2 3"), values(f64, "4 5")}),
            "4 5\n0 0 0");
  EXPECT_EQ(gradients("func @f(%x: f64[2]) { %z = constant 2 : f64[2] return %z, %x, %x }",
                      {values(f64, "0 0"), values(f64, "7 7"), values(f64, "1 2"), values(f64, "10 20")}),
            "11 22");
}

TEST(AutodiffStructure, ConstantsAreNotKept) {
  const Vjp kept = vjp(ir::parse("func @f(%x: f64[2]) { %c = constant 3 : f64[2] %y = mul %x, %c return %y }"), {true});
  EXPECT_EQ(kept.num_residuals, 0u);
}

TEST(AutodiffStructure, ALongChainNeitherRecursesNorSlowsDown) {
  ir::Builder b("chain");
  ir::ValueId x = b.add_arg({f64, {}});
  for (int i = 0; i < 100000; ++i) x = b.sin(x);
  const Function f = b.finish({x});
  const Function g = test::gradient(f, {true});
  EXPECT_EQ(g.num_ops(), 300000u);  // sin, cos, mul
}

}  // namespace
}  // namespace burin::passes
