#include <gtest/gtest.h>

#include "ir/parser.h"
#include "passes/passes.h"
#include "tests/conformance/cases.h"
#include "tests/support/values.h"

namespace burin::conformance {
namespace {

using namespace ir;

class Evaluator : public testing::TestWithParam<Case> {};

void check(const Case& c, const Function& f) {
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Type& type = f.type(f.args()[i]);
    inputs.push_back(test::values(type.dtype, type.shape, c.inputs[i]));
  }
  if (!c.error.empty()) {
    EXPECT_EQ(test::error_of([&] { evaluate(f, inputs); }), c.error);
    return;
  }
  const std::vector<Literal> results = evaluate(f, inputs);
  ASSERT_EQ(results.size(), c.expected.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(test::text(results[i]), test::text(test::values(results[i].dtype(), results[i].shape(), c.expected[i])));
}

TEST_P(Evaluator, GivesTheRightValue) { check(GetParam(), parse(GetParam().program)); }

TEST_P(Evaluator, GivesItAfterFoldingConstants) {
  check(GetParam(), passes::fold_constants(parse(GetParam().program)));
}

INSTANTIATE_TEST_SUITE_P(Cases, Evaluator, testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace burin::conformance
