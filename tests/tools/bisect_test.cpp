// burin-opt --bisect on pipelines that have a wrong pass among the right ones.
#include "tools/opt/bisect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "ir/parser.h"
#include "ir/rewriter.h"
#include "passes/pipeline.h"
#include "tests/support/values.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;

const char* const program =
    "func @main(%x: f32[3,5], %y: f32[3,5]) -> (f32[3,5], f32[3]) {\n"
    "  %one = constant 1 : f32[3,5]\n"
    "  %a = mul %x, %one\n"
    "  %b = sub %a, %y\n"
    "  %c = reshape %b {shape = [15]}\n"
    "  %d = reshape %c {shape = [3, 5]}\n"
    "  %e = reduce_max %d {axes = [1]}\n"
    "  return %d, %e\n}\n";

std::vector<Literal> inputs() {
  return {test::values(f32, {3, 5}, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"), test::values(f32, {3, 5}, "2*15")};
}

/// The pipeline with `wrong` in the place of, or behind, the pass of that name.
Pipeline with(const std::string& name, const Step& wrong, bool instead) {
  Pipeline all = pipeline(false);
  std::vector<Step>& steps = all.steps;
  const auto at = std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.name == name; });
  if (instead)
    *at = wrong;
  else
    steps.insert(at + 1, wrong);
  return all;
}

/// Every `sub` gets its operands the wrong way round.
Function swap_operands(const Function& f) {
  Rewriter rewriter(f);
  f.for_each_op([&](OpId op) {
    std::vector<ValueId> operands = rewriter.operands(op);
    if (f.kind(op) == Op::sub) std::swap(operands[0], operands[1]);
    rewriter.replace_results(op, rewriter.b.append_copy(f, op, operands));
  });
  return rewriter.finish();
}

TEST(bisect, finds_nothing_in_the_pipeline_as_it_is) {
  EXPECT_FALSE(bisect(parse(program), inputs(), Target{}, pipeline(true)).has_value());
}

TEST(bisect, names_the_pass_whose_result_is_wrong) {
  const Step wrong{"swap_operands", [](const Function& f, const auto&) { return swap_operands(f); }};
  const auto culprit = bisect(parse(program), inputs(), Target{}, with("fold_constants", wrong, false));
  ASSERT_TRUE(culprit.has_value());
  EXPECT_EQ(to_string(*culprit), "wrong after swap_operands: result 0[0,0]: 1 instead of -1");
}

TEST(bisect, names_the_rewrite_after_which_it_is_wrong) {
  // simplify, whose rewrites of the second reshape swap operands elsewhere.
  const Step wrong{"simplify", [](const Function& f, const passes::MayRewrite& may) {
                     bool spoilt = false;
                     const Function done = passes::simplify(f, [&](std::string_view what) {
                       const bool allowed = !may || may(what);
                       spoilt = spoilt || (allowed && what.find("reshape") != std::string_view::npos);
                       return allowed;
                     });
                     return spoilt ? swap_operands(done) : done;
                   }};
  const auto culprit = bisect(parse(program), inputs(), Target{}, with("simplify", wrong, true));
  ASSERT_TRUE(culprit.has_value());
  EXPECT_EQ(
      to_string(*culprit),
      "wrong after simplify, rewrite 2, movement: reshape (<text>:6) becomes sub: result 0[0,0]: 1 instead of -1");
}

TEST(bisect, names_what_the_verifier_finds) {
  // A pass that loses the last result.
  const Step wrong{"lose_a_result", [](const Function& f, const auto&) {
                     Rewriter rewriter(f);
                     f.for_each_op([&](OpId op) { rewriter.copy(op); });
                     return rewriter.b.finish({rewriter[f.results()[0]], ValueId{std::size_t{99}}});
                   }};
  const auto culprit = bisect(parse(program), inputs(), Target{}, with("remove_dead", wrong, false));
  ASSERT_TRUE(culprit.has_value());
  EXPECT_EQ(to_string(*culprit), "wrong after lose_a_result: V7: @main: result 99 does not exist");
}

TEST(bisect, names_the_pass_that_throws) {
  const Step wrong{"simplify", [](const Function& f, const passes::MayRewrite& may) {
                     std::size_t rewrites = 0;
                     return passes::simplify(f, [&](std::string_view what) {
                       if (may(what) && ++rewrites == 2) throw std::out_of_range("planted");
                       return rewrites <= 1;
                     });
                   }};
  const auto culprit = bisect(parse(program), inputs(), Target{}, with("simplify", wrong, true));
  ASSERT_TRUE(culprit.has_value());
  EXPECT_EQ(to_string(*culprit),
            "wrong after simplify, rewrite 2, movement: reshape (<text>:6) becomes sub: it throws: planted");
}

TEST(bisect_death, a_failed_check_names_rewrite_and_pass_and_how_to_repeat_it) {
  const Step wrong{"simplify", [](const Function& f, const passes::MayRewrite& may) {
                     std::size_t rewrites = 0;
                     return passes::simplify(f, [&](std::string_view what) {
                       BURIN_CHECK(may(what) && ++rewrites < 2, "planted");
                       return true;
                     });
                   }};
  EXPECT_DEATH(bisect(parse(program), inputs(), Target{}, with("simplify", wrong, true)),
               "planted\n(  at op [0-9]+ of @main: .*\n)?  in pass `simplify` on @main\n  whose input is in .*burin-crash-[0-9]+.ir; "
               "repeat with: burin-opt .*burin-crash-[0-9]+.ir --passes=simplify\n  behind rewrite 2, movement: reshape");
}

TEST(bisect, refuses_inputs_on_which_the_function_fails) {
  const Function f = parse(
      "func @main(%x: f32[2], %i: i32[1,1]) -> (f32[1]) {\n"
      "  %y = gather %x, %i {collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = "
      "[1]}\n"
      "  return %y\n}\n");
  const std::vector<Literal> out_of_range = {test::values(f32, "1 2"), test::values(i32, {1, 1}, "7")};
  EXPECT_EQ(test::error_of([&] { bisect(f, out_of_range, Target{}, pipeline(true)); }),
            "gather: index 7 is out of range for axis 0 of f32[2]: expected 0 to 1 (<text>:2)");
}

}  // namespace
}  // namespace opt
