#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "ir/builder.h"
#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"

namespace burin::passes {

using namespace ir;

Function read_function(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, path);
}

Function training_step(const Function& loss) {
  std::vector<bool> active;
  for (ValueId arg : loss.args()) active.push_back(is_float(loss.type(arg).dtype));
  const Vjp reverse = vjp(loss, active);
  Builder b("step");
  std::vector<ValueId> args;
  for (ValueId arg : loss.args()) args.push_back(b.add_arg(loss.type(arg), loss.value_name(arg)));
  const std::vector<ValueId> forward = b.inline_body(reverse.forward, args);
  std::vector<ValueId> residuals(forward.begin() + 1, forward.end());
  residuals.push_back(b.constant(Literal::scalar(f32, 1)));
  const std::vector<ValueId> gradients = b.inline_body(reverse.pullback, residuals);
  std::vector<ValueId> results = {forward[0]};
  std::size_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!active[i]) continue;
    const ValueId gradient = gradients[next++];
    results.push_back(b.sub(args[i], b.mul(gradient, b.full_like(gradient, 0.1))));
  }
  return b.finish(results);
}

std::vector<Literal> step_inputs(const Function& step, std::int64_t vocabulary) {
  std::mt19937 generator(1);
  std::normal_distribution<double> normal(0, 0.2);
  std::vector<Literal> inputs;
  for (ValueId arg : step.args()) {
    Literal value(step.type(arg));
    for (std::int64_t i = 0; i < value.type().size(); ++i) {
      if (is_float(value.dtype()))
        value.set(i, normal(generator));
      else
        value.set_int(i, static_cast<std::int64_t>(generator()) % vocabulary);
    }
    inputs.push_back(value);
  }
  return inputs;
}

}  // namespace burin::passes
