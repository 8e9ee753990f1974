// What the compiler works out itself has the bits that the evaluator gives: every case with constants for arguments, whole and
// element by element.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "passes/pipeline.h"
#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

Function of_constants(const Function& f, const std::vector<Literal>& args) {
  Builder b("folded");
  std::vector<ValueId> constants;
  for (const Literal& arg : args) constants.push_back(b.constant(arg));
  return b.finish(b.inline_body(f, constants));
}

std::vector<Literal> folded(Function f) {
  for (const char* pass : {"inline_calls", "simplify", "fold_constants", "eliminate_common", "remove_dead"})
    f = passes::run_pass(pass, f, {});
  return ir::evaluate(f, {});
}

/// Element i everywhere in an array of that shape, stored once.
Literal splat_of(Literal value, std::int64_t i) {
  value.expand();
  const std::size_t size = size_of(value.dtype());
  const ir::Type type{value.dtype(), {}};
  return Literal::splat(value.shape(), Literal(type, value.raw().subspan(static_cast<std::size_t>(i) * size, size)));
}

class Folded : public testing::TestWithParam<Op> {};

TEST_P(Folded, WholeArrays) {
  for (const OpCase& c : entry(GetParam()).cases) {
    const std::vector<Literal> args = c.args(0), expected = ir::evaluate(c.function, args), found = folded(of_constants(c.function, args));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k)
      ASSERT_EQ(test::difference(found[k], expected[k]), "") << c.name << ": result " << k;
  }
}

// One stored element for a whole array takes another way through the passes.
class FoldedElement : public testing::TestWithParam<Op> {};

TEST_P(FoldedElement, ByItself) {
  int elements = 0;
  for (const OpCase& c : entry(GetParam()).cases) {
    if (c.name.find("extremes") == std::string::npos) continue;
    const std::vector<Literal> args = c.args(0), expected = ir::evaluate(c.function, args);
    for (std::int64_t i = 0; i < args[0].shape().size(); ++i, ++elements) {
      std::vector<Literal> splats;
      for (const Literal& arg : args) splats.push_back(splat_of(arg, i));
      const std::vector<Literal> found = folded(of_constants(c.function, splats));
      for (std::size_t k = 0; k < found.size(); ++k)
        ASSERT_EQ(test::difference(found[k], splat_of(expected[k], i)), "") << c.name << ": result " << k << " of element " << i;
    }
  }
  EXPECT_GT(elements, 0);
}

std::string op_name(const testing::TestParamInfo<Op>& op) { return std::string(ir::name(op.param)); }

std::vector<Op> elementwise_ops() {
  std::vector<Op> ops = all_ops();
  std::erase_if(ops, [](Op op) { return ir::family_of(op) != Family::elementwise && ir::family_of(op) != Family::compare; });
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Op, Folded, testing::ValuesIn(all_ops()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, FoldedElement, testing::ValuesIn(elementwise_ops()), op_name);

}  // namespace
}  // namespace burin::op_cases
