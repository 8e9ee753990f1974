// Whole functions: structure ops, long chains, splats, multiple uses.
#include <gtest/gtest.h>

#include "ir/eval/eval.h"
#include "tests/support/values.h"

namespace burin::ir {
namespace {

using test::error_of;
using test::text;
using test::values;

Body square_and_sum() {
  Builder b("body");
  const ValueId x = b.add_arg({f32, {3}});
  return std::make_shared<Function>(b.finish({b.mul(x, x), b.reduce(Op::reduce_sum, x, {0})}));
}

TEST(EvaluateFunction, AnOpWithABodyMeansItsBody) {
  const Literal x = values(f32, "1 2 3");
  const Body body = square_and_sum();
  const std::vector<std::pair<Op, std::vector<AttrValue>>> ops = {
      {Op::call, {body}},
      {Op::composite, {Str("squares"), body}},
      {Op::checkpoint, {body}},
      {Op::fusion, {Str("loop"), body}},
  };
  for (const auto& [op, attributes] : ops) {
    Builder b;
    const ValueId argument = b.add_arg(x.type());
    const std::vector<ValueId> results = b.call(op, std::span(&argument, 1), attributes);
    const std::vector<Literal> found = evaluate(b.finish(results), std::vector{x});
    ASSERT_EQ(found.size(), 2u) << name(op);
    EXPECT_EQ(text(found[0]), "1 4 9") << name(op);
    EXPECT_EQ(text(found[1]), "6") << name(op);
  }
}

TEST(EvaluateFunction, CustomRulesMeanTheirBody) {
  const auto unary = [](auto&& f) {
    Builder b("f");
    const ValueId x = b.add_arg({f32, {}});
    return std::make_shared<Function>(b.finish(f(b, x)));
  };
  const Body body = unary([](Builder& b, ValueId x) { return std::vector{b.mul(x, x)}; });
  const Body forward = unary([](Builder& b, ValueId x) { return std::vector{b.mul(x, x), x}; });
  Builder jvp("jvp"), backward("backward");
  const ValueId x = jvp.add_arg({f32, {}}), dx = jvp.add_arg({f32, {}});
  const Body jvp_body = std::make_shared<Function>(jvp.finish({jvp.mul(x, x), jvp.mul(x, dx)}));
  const ValueId residual = backward.add_arg({f32, {}}), cotangent = backward.add_arg({f32, {}});
  const Body backward_body = std::make_shared<Function>(backward.finish({backward.mul(residual, cotangent)}));

  Builder b;
  const ValueId argument = b.add_arg({f32, {}});
  const ValueId first = b.append(Op::custom_jvp, std::vector{argument}, {body, jvp_body});
  const ValueId second = b.append(Op::custom_vjp, std::vector{first}, {body, forward, backward_body});
  EXPECT_EQ(text(evaluate(b.finish({second}), std::vector{Literal::scalar(f32, 3)})[0]), "81");
}

TEST(EvaluateFunction, BarrierAndStopGradientAreIdentities) {
  Builder b;
  const ValueId x = b.add_arg({f32, {2}}), y = b.add_arg({i32, {}});
  const std::vector<ValueId> through = b.call(Op::optimization_barrier, std::vector{x, y}, {});
  const std::vector<Literal> results = evaluate(b.finish({b.stop_gradient(through[0]), through[1]}),
                                                std::vector{values(f32, "1 2"), Literal::scalar(i32, 7)});
  EXPECT_EQ(text(results[0]), "1 2");
  EXPECT_EQ(text(results[1]), "7");
}

// A splat is one element, what is computed from it is not.
TEST(EvaluateFunction, SaysWhatDoesNotFitIntoMemory) {
  Builder b;
  const ValueId x = b.full({f32, {std::int64_t{1} << 47}}, 1);
  const Function f = b.finish({b.reduce(Op::reduce_sum, x, {})});
  EXPECT_EQ(error_of([&] { evaluate(f, {}); }),
            "out of memory: f32[140737488355328] takes 562949953421312 bytes (536870912.0 MiB)");
}

TEST(EvaluateFunction, AChainOf100000Ops) {
  Builder b;
  const ValueId x = b.add_arg({f32, {3}});
  ValueId y = x;
  for (int i = 0; i < 100000; ++i) y = b.neg(y);
  EXPECT_EQ(text(evaluate(b.finish({y}), std::vector{values(f32, "1 -2 0")})[0]), "1 -2 0");
}

TEST(EvaluateFunction, ArgumentsMayBeResultsRepeatedOrUnused) {
  Builder b;
  const ValueId x = b.add_arg({f32, {2}});
  b.add_arg({f32, {0}});
  const ValueId unused = b.neg(x), twice = b.add(x, x);
  (void)unused;
  const std::vector<Literal> results =
      evaluate(b.finish({x, twice, x, twice}), std::vector{values(f32, "1 2"), Literal(Type{f32, {0}})});
  EXPECT_EQ(text(results[0]) + " " + text(results[1]) + " " + text(results[2]) + " " + text(results[3]),
            "1 2 2 4 1 2 2 4");
}

TEST(EvaluateFunction, ErrorsNameThePlace) {
  Builder b;
  const ValueId x = b.add_arg({f32, {3}}), ids = b.add_arg({i32, {1}});
  b.set_location({.file = "model.cpp", .line = 42, .function = "take", .scope = "block0"});
  const ValueId y = b.emit<Op::gather>(
      {x, ids}, {.collapsed_slice_dims = {0}, .start_index_map = {0}, .index_vector_dim = 1, .slice_sizes = {1}});
  const Function f = b.finish({y});
  EXPECT_EQ(error_of([&] {
              evaluate(f, std::vector{values(f32, "1 2 3"), values(i32, "4")});
            }),
            "gather: index 4 is out of range for axis 0 of f32[3]: expected 0 to 2 (model.cpp:42, in take, in block0)");
}

}  // namespace
}  // namespace burin::ir
