// What Compiled::explain_fusion says: the text of the pass's explain_fusion, which burin-opt --explain-fusion prints too.
#include <regex>

#include "tests/frontend/expect.h"

namespace burin::test {
namespace {

std::string without_places(const std::string& text) {
  return std::regex_replace(text, std::regex(R"( \([^()]*\.cpp:\d+\))"), "");
}

TEST(ExplainFusion, NamesTheKernelAndWhyAnOpIsAlone) {
  auto f = jit([](Tensor a, Tensor b) { return exp(matmul(a, b)) * 2; });
  EXPECT_EQ(without_places(f.lower(ones({3, 5}), ones({5, 1})).compile().explain_fusion()),
            "matmul_0: 4 ops, reads 2, writes 1\n"
            "  dot_general : f32[3,1]\n"
            "  exp : f32[3,1]\n"
            "  constant : f32[3,1]\n"
            "  mul : f32[3,1]\n");
  auto alone = jit([](Tensor a) { return tanh(a); });
  EXPECT_EQ(without_places(alone.lower(ones({3, 5})).compile().explain_fusion()),
            "loop_0: 1 op, reads 1, writes 1\n"
            "  tanh : f32[3,5]: alone, it is all there is between arguments and a result\n");
}

}  // namespace
}  // namespace burin::test
