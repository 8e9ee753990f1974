// The table through every pass, and its programs as machine code for each instruction set of this machine.
#include "tests/support/machine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/parser.h"
#include "passes/pipeline.h"
#include "tests/conformance/cases.h"
#include "tests/support/literals.h"
#include "tests/support/values.h"

namespace burin::conformance {
namespace {

using namespace ir;

class Machine : public testing::TestWithParam<Case> {};

TEST_P(Machine, GivesTheRightValue) {
  const Case& c = GetParam();
  const Function f = parse(c.program);
  std::vector<Literal> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Type& type = f.type(f.args()[i]);
    inputs.push_back(test::values(type.dtype, type.shape, c.inputs[i]));
  }
  for (const Target& target : test::runnable_targets()) {
    SCOPED_TRACE(to_string(target));
    const Program program = passes::build_program(f, target, {});
    if (!c.error.empty()) {
      EXPECT_EQ(test::error_of([&] { test::run_machine(program, inputs, target); }), c.error);
      continue;
    }
    const std::vector<Literal> results = test::run_machine(program, inputs, target);
    ASSERT_EQ(results.size(), c.expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Literal expected = test::values(results[i].dtype(), results[i].shape(), c.expected[i]);
      if (c.ulps == 0) {
        EXPECT_EQ(test::text(results[i]), test::text(expected));
        continue;
      }
      ASSERT_EQ(results[i].dtype(), f32);  // the table has no other case of an approximation
      const std::vector<double> found = test::to_doubles(results[i]), right = test::to_doubles(expected);
      for (std::size_t j = 0; j < right.size(); ++j)
        EXPECT_NEAR(found[j], right[j], c.ulps * std::ldexp(1.0, std::ilogb(right[j]) - 23)) << "element " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Machine, testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace burin::conformance
