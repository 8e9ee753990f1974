#include "ir/builder.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace burin::ir {
namespace {

TEST(Builder, ShorthandsLeaveOutWhatDoesNothing) {
  Builder b;
  const ValueId x = b.add_arg(Type{f32, {3, 5}}, "x");
  EXPECT_EQ(b.convert(x, f32), x);
  EXPECT_EQ(b.reshape(x, {3, 5}), x);
  EXPECT_EQ(b.transpose(x, {0, 1}), x);
  EXPECT_EQ(b.broadcast(x, {3, 5}, {0, 1}), x);
  EXPECT_EQ(b.function().num_ops(), 0u);
  EXPECT_EQ(to_string(b.type(b.convert(x, bf16))), "bf16[3,5]");
  EXPECT_EQ(to_string(b.type(b.reshape(x, {15}))), "f32[15]");
  EXPECT_EQ(to_string(b.type(b.transpose(x, {1, 0}))), "f32[5,3]");
  EXPECT_EQ(to_string(b.type(b.reduce(Op::reduce_max, x, {1}))), "f32[3]");
  EXPECT_EQ(to_string(b.type(b.iota(i64, {3, 5}, 1))), "i64[3,5]");
  EXPECT_EQ(to_string(b.type(b.full_like(x, 1))), "f32[3,5]");
  EXPECT_EQ(verify(b.finish({x})), "");
}

TEST(Builder, TablesOfTheFunction) {
  Builder b("f");
  const ValueId x = b.add_arg(Type{f32, {2}}, "x");
  b.set_location({"a.cpp", 7, "gelu", ""});
  const std::vector<ValueId> both = b.call(Op::optimization_barrier, std::vector{x, x}, {});
  ASSERT_EQ(both.size(), 2u);
  const ValueId sum = b.add(both[0], both[1]);
  b.set_value_name(sum, "sum");
  b.neg(sum);
  const Function f = b.finish({sum, x});
  EXPECT_EQ(f.name(), "f");
  EXPECT_EQ(f.num_ops(), 3u);
  EXPECT_EQ(f.num_values(), 5u);
  EXPECT_TRUE(f.is_arg(x));
  EXPECT_EQ(f.def(both[1]), OpId{std::size_t{0}});
  EXPECT_EQ(f.value_name(sum), "sum");
  EXPECT_EQ(f.value_name(both[0]), "");
  EXPECT_EQ(to_string(f.location(OpId{std::size_t{1}})), "a.cpp:7, in gelu");
  EXPECT_EQ(use_counts(f), (std::vector<std::uint32_t>{3, 1, 1, 2, 0}));
  EXPECT_EQ(f.arg_types(), std::vector{(Type{f32, {2}})});
  EXPECT_EQ(f.result_types().size(), 2u);
}

TEST(Builder, IsEmptyAfterFinish) {
  Builder b;
  b.finish({b.neg(b.add_arg(Type{f32, {2}}))});
  EXPECT_EQ(b.function().num_ops(), 0u);
  EXPECT_EQ(b.function().num_values(), 0u);
  const ValueId x = b.add_arg(Type{f32, {3}});
  EXPECT_EQ(print(b.finish({b.exp(x)})),
            "func @main(%0: f32[3]) -> (f32[3]) {\n  %1 = exp %0 : f32[3]\n  return %1\n}\n");
}

TEST(Builder, InliningKeepsAttributesNamesAndLocations) {
  const Function body = parse(
      "func @body(%x: f32[3,5]) {\n  %rows = reduce_sum %x {axes = [1]}\n"
      "  %a, %b = optimization_barrier %rows, %x\n  return %b, %a, %x\n}",
      "b.ir");
  Builder b;
  b.set_location({"user.cpp", 1, "", ""});
  const ValueId y = b.add_arg(Type{f32, {3, 5}}, "y");
  const std::vector<ValueId> results = b.inline_body(body, std::vector{b.exp(y)});
  b.neg(y);
  const Function f = b.finish(results);
  EXPECT_EQ(print(f, {.locations = true}),
            "func @main(%y: f32[3,5]) -> (f32[3,5], f32[3], f32[3,5]) {\n"
            "  %0 = exp %y : f32[3,5]  // user.cpp:1\n"
            "  %rows = reduce_sum %0 {axes = [1]} : f32[3]  // b.ir:2\n"
            "  %a, %b = optimization_barrier %rows, %0 : f32[3], f32[3,5]  // b.ir:3\n"
            "  %1 = neg %y : f32[3,5]  // user.cpp:1\n"
            "  return %b, %a, %0\n"
            "}\n");
}

TEST(Builder, AppendCopyMayChangeShapes) {
  const Function f = parse("func @main(%x: f32[2,3]) { %0 = reduce_sum %x {axes = [1]} return %0 }");
  Builder b;
  const ValueId x = b.add_arg(Type{f64, {7, 1}});
  const ValueId y = b.append_copy(f, OpId{std::size_t{0}}, std::vector{x});
  EXPECT_EQ(to_string(b.type(y)), "f64[7]");
}

TEST(Op, EveryNameFindsItsOp) {
  for (int i = 0; i < num_ops; ++i) {
    Op op;
    ASSERT_TRUE(op_from_name(name(static_cast<Op>(i)), &op));
    EXPECT_EQ(op, static_cast<Op>(i));
  }
  Op op;
  EXPECT_FALSE(op_from_name("Add", &op));
  EXPECT_FALSE(op_from_name("", &op));
}

TEST(Op, DefaultsAreWhatTheTextLeavesOut) {
  EXPECT_TRUE(is_default(Int{0}));
  EXPECT_TRUE(is_default(Ints{}));
  EXPECT_TRUE(is_default(Str{}));
  EXPECT_TRUE(is_default(IndexMode::error));
  EXPECT_TRUE(is_default(Combine::add));
  EXPECT_FALSE(is_default(Int{1}));
  EXPECT_FALSE(is_default(Ints{0}));
  EXPECT_FALSE(is_default(DType::f64));
  EXPECT_FALSE(is_default(Literal{}));
  EXPECT_FALSE(is_default(Body{}));
}

}  // namespace
}  // namespace burin::ir
