// The programs of tests/ir/fuse, differentiated: forward and backward together are at most two kernels and the
// combination of what tasks summed by column (a matmul has two more), whatever the spelling, and compute what the evaluator
// says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/eval/eval.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"
#include "tests/support/machine.h"
#include "tests/support/transforms.h"
#include "tests/support/literals.h"

namespace burin::passes {
namespace {

using namespace ir;

Function read_function(const std::string& path) {
  std::ifstream file(path);
  return parse(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

std::vector<std::string> spellings() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/ir/fuse")) {
    const std::string name = entry.path().stem().string();
    for (const char* family : {"rms_norm_", "softmax_", "log_softmax_", "gelu_", "two_norm_", "squared_relu_"})
      if (name.starts_with(family)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class FusedGradient : public testing::TestWithParam<std::string> {};

TEST_P(FusedGradient, IsFewKernels) {
  const Function forward = read_function(GetParam());
  const Function both = test::gradient(forward, test::float_args(forward));
  const Target target = host_target("avx2");
  Options options;
  options.verify = true;
  const Function fused = run_function_passes(both, options);
  std::size_t kernels = 0;
  fused.for_each_op([&](OpId op) { kernels += fused.kind(op) == Op::fusion; });
  const bool matmul = GetParam().find("_after_matmul") != std::string::npos;  // which has two in its gradient
  EXPECT_LE(kernels, matmul ? 4u : 2u) << explain_fusion(fused);
  const Program program = run_lowering(fused, target, options);
  EXPECT_LE(program.steps.size(), kernels + 1) << explain_fusion(fused);

  std::vector<Literal> args;
  for (std::size_t i = 0; i < both.args().size(); ++i) {
    const Type& type = both.type(both.args()[i]);
    args.push_back(is_float(type.dtype) ? test::spread(type, -2, 2, i) : test::spread(type, 0, 3, i));
  }
  const std::vector<Literal> expected = evaluate(both, args), found = test::run_machine(program, args, target);
  ASSERT_EQ(found.size(), expected.size());
  const bool half = std::any_of(args.begin(), args.end(), [](const Literal& arg) { return is_half(arg.dtype()); });
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(test::difference(found[i], expected[i], half ? 0x1p-6 : 1e-5), "") << "result " << i;
}

INSTANTIATE_TEST_SUITE_P(Spellings, FusedGradient, testing::ValuesIn(spellings()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

}  // namespace
}  // namespace burin::passes
