#include <gtest/gtest.h>

#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"

namespace burin::passes {
namespace {

using ir::Op;

int count(const ir::Function& f, Op kind) {
  int found = 0;
  f.for_each_op([&](ir::OpId op) { found += f.kind(op) == kind; });
  return found;
}

Vjp vjp_of(const std::string& body, const std::string& args = "%x: f64[3,5]") {
  const ir::Function f = ir::parse("func @f(" + args + ") { " + body + " return %y }");
  return vjp(f, std::vector<bool>(f.args().size(), true));
}

TEST(AutodiffFactors, WaysThatMeetAreOneProductWithOneResidual) {
  for (const char* body : {"%s = logistic %x %y = mul %x, %s",                                          // silu
                           "%s = mul %x, %x %c = mul %s, %x %t = tanh %c %y = mul %t, %x",               // a chain of meetings
                           "%a = sin %x %b = cos %x %n = neg %b %y = sub %a, %n",                       // sub and neg
                           "%a = sin %x %b = exp %x %p = gt %a, %b %y = select %p, %a, %b",             // select of two tangents
                           "%q = sin %x %h = mul %q, %q %z = constant 2 : f64[3,5] %r = div %h, %z %y = mul %r, %x"}) {  // div
    const Vjp done = vjp_of(body);
    EXPECT_EQ(done.num_residuals, 1u) << body;
    EXPECT_EQ(done.pullback.num_ops(), 1u) << body;
    EXPECT_EQ(count(done.pullback, Op::mul), 1) << body;
  }
}

TEST(AutodiffFactors, ASelectWithZeroKeepsTheWay) {
  const Vjp done = vjp_of("%l = constant -1 : f64[3,5] %h = constant 1 : f64[3,5] %c = clamp %l, %x, %h %y = mul %c, %c");
  EXPECT_EQ(done.num_residuals, 1u);
  EXPECT_EQ(count(done.pullback, Op::select), 0);
}

TEST(AutodiffFactors, WaysFromDifferentTangentsStayApart) {
  const Vjp done = vjp_of("%s = sin %x %t = sin %v %y = mul %s, %t", "%x: f64[3,5], %v: f64[3,5]");
  EXPECT_EQ(count(done.pullback, Op::mul), 4);
  EXPECT_EQ(done.num_residuals, 4u);
}

TEST(AutodiffFactors, AChainThatNeverMeetsStaysAChain) {
  const Vjp done = vjp_of("%s = sin %x %t = exp %s %y = tanh %t");
  EXPECT_EQ(count(done.pullback, Op::mul), 3);
  EXPECT_EQ(done.num_residuals, 3u);
}

TEST(AutodiffFactors, ReductionsAndMovementsAreNotCrossed) {
  const Vjp done = vjp_of("%s = reduce_sum %x {axes = [1]} %b = broadcast %s {shape = [3, 5], dims = [0]} %y = mul %b, %x");
  EXPECT_EQ(count(done.pullback, Op::mul), 2);
}

}  // namespace
}  // namespace burin::passes
