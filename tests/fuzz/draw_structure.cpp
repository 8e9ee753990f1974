// Ops that hold functions: bodies are drawn like programs, custom rules are the derivatives of their bodies.
#include <algorithm>

#include "base/error.h"
#include "passes/autodiff/autodiff.h"
#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

// A function of some values like those of the pool.
Body draw_body(Generator& g, bool floats_only) {
  Recipe recipe = g.recipe;
  Generator inner(g.random, recipe, g.depth + 1);
  const std::int64_t num_args = g.random.between(1, 3);
  for (std::int64_t i = 0; i < num_args; ++i) {
    Type type = g.b.type(g.any());
    if (floats_only && !is_float(type.dtype)) type.dtype = f32;
    inner.add_arg(type);
  }
  static const std::vector<std::string> names = {"inner", "body", "f", "gelu", "softmax"};
  return std::make_shared<const Function>(
      with_arguments_first(inner.draw(static_cast<int>(g.random.between(1, 6)), g.random.pick(names))));
}

std::vector<ValueId> operands_of(Generator& g, const Function& body) {
  std::vector<ValueId> operands;
  for (ValueId arg : body.args()) operands.push_back(g.of_type(body.type(arg)));
  return operands;
}

std::vector<bool> float_args(const Function& f) {
  std::vector<bool> flags;
  for (ValueId arg : f.args()) flags.push_back(is_float(f.type(arg).dtype));
  return flags;
}

bool draw_custom(Generator& g, Op op) {
  const Body body = draw_body(g, true);
  const std::vector<bool> active = float_args(*body);
  try {
    if (op == Op::custom_jvp) {
      const auto rule = std::make_shared<const Function>(with_arguments_first(tangent_of(*body, active)));
      return g.append_as<Op::custom_jvp>(operands_of(g, *body), {.body = body, .jvp = rule});
    }
    passes::Vjp vjp = passes::vjp(*body, active);
    return g.append_as<Op::custom_vjp>(
        operands_of(g, *body), {.body = body,
                                .forward = std::make_shared<const Function>(with_arguments_first(vjp.forward)),
                                .backward = std::make_shared<const Function>(with_arguments_first(vjp.pullback))});
  } catch (const Error&) {
    return false;  // the body has no derivative
  }
}

}  // namespace

bool draw_structure(Generator& g, Op op, bool* known) {
  switch (op) {
    case Op::call:
    case Op::checkpoint: {
      const Body body = draw_body(g, false);
      return g.append(op, operands_of(g, *body), {body});
    }
    case Op::composite: {
      const Body body = draw_body(g, false);
      return g.append_as<Op::composite>(operands_of(g, *body), {.name = body->name(), .body = body});
    }
    case Op::custom_jvp:
    case Op::custom_vjp:
      return draw_custom(g, op);
    case Op::optimization_barrier: {
      std::vector<ValueId> operands;
      for (std::int64_t i = g.random.between(1, 3); i > 0; --i) operands.push_back(g.any());
      return g.append(op, operands, {});
    }
    default:
      *known = false;
      return false;
  }
}

}  // namespace burin::fuzz
