// Functions that call the next one twice: n of them come to 2^n ops. What opens bodies says so at once, what does not visits
// each body once.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "tests/support/values.h"

namespace burin::passes {
namespace {

using namespace ir;

/// A function `levels` calls deep whose bodies each call the next twice; the last one is a sine.
Function nest(int levels, Op op = Op::call) {
  Builder last("f0");
  const ValueId y = last.add_arg({f32, {3}});
  Body body = std::make_shared<const Function>(last.finish({last.sin(y)}));
  for (int i = 1; i < levels; ++i) {
    Builder b("f" + std::to_string(i));
    ValueId x = b.add_arg({f32, {3}});
    for (int twice = 0; twice < 2; ++twice)
      x = b.call(op, std::span(&x, 1), op == Op::composite ? std::vector<AttrValue>{Str("twice"), body} : std::vector<AttrValue>{body})[0];
    body = std::make_shared<const Function>(b.finish({x}));
  }
  return *body;
}

TEST(CallNests, ThoseThatComeToTooManyOpsAreRefused) {
  const std::string message = "@f21: with the bodies of its calls opened it comes to more than 1048576 ops";
  for (const Op op : {Op::call, Op::composite, Op::checkpoint}) {
    const Function f = nest(198, op);
    EXPECT_EQ(test::error_of([&] { inline_calls(f); }), message);
    EXPECT_EQ(test::error_of([&] { build_program(f, Target{}, {}); }), message);
    EXPECT_EQ(test::error_of([&] { jvp(f, {true}); }), message);
    EXPECT_EQ(test::error_of([&] { vjp(f, {true}); }), message);
    EXPECT_EQ(test::error_of([&] { batch(f, {true}, 5); }), message);
  }
  EXPECT_EQ(inline_calls(nest(11)).num_ops(), 1024u);
}

TEST(CallNests, WhatOpensNoBodyVisitsEachOnce) {
  const Function f = nest(198);
  EXPECT_EQ(verify(f), "");
  const Function again = parse(print(f));
  EXPECT_TRUE(same_program(f, again));
  Hasher one, other;
  f.hash(one);
  again.hash(other);
  EXPECT_EQ(one.finish(), other.finish());
  EXPECT_EQ(remove_dead(simplify(eliminate_common(fold_constants(f)))).num_ops(), 2u);
}

// A function of many ops is no nest: only opened bodies count.
TEST(CallNests, ALongFunctionIsNone) {
  Builder b("main");
  ValueId x = b.add_arg({f32, {}});
  for (int i = 0; i < (1 << 20) + 1; ++i) x = b.neg(x);
  check_opened_size(b.finish({x}));
}

}  // namespace
}  // namespace burin::passes
