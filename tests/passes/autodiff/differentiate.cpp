#include "tests/passes/autodiff/differentiate.h"

#include "ir/eval/eval.h"
#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::test {
namespace {

std::string lines(const std::vector<ir::Literal>& results, std::size_t from) {
  std::string all;
  for (std::size_t i = from; i < results.size(); ++i) all += (i > from ? "\n" : "") + text(results[i]);
  return all;
}

}  // namespace

std::string gradients(std::string_view program, const std::vector<ir::Literal>& operands) {
  const ir::Function f = ir::parse(program);
  return lines(ir::evaluate(gradient(f, float_args(f)), operands), f.results().size());
}

std::string tangents(std::string_view program, const std::vector<ir::Literal>& operands) {
  const ir::Function f = ir::parse(program);
  return lines(ir::evaluate(passes::jvp(f, float_args(f)).function, operands), f.results().size());
}

int count_in_gradient(std::string_view program, ir::Op op) {
  const ir::Function f = ir::parse(program), g = gradient(f, float_args(f));
  int n = 0;
  g.for_each_op([&](ir::OpId id) { n += g.kind(id) == op; });
  return n;
}

}  // namespace burin::test
