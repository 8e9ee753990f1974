#include "ir/builder.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

const Body* body_of(const Function& f, OpId op) {
  switch (f.kind(op)) {
    case Op::call:
    case Op::composite:
    case Op::custom_jvp:
    case Op::custom_vjp:
    case Op::checkpoint:
    case Op::fusion:
      for (const AttrValue& value : f.attributes(op))
        if (const Body* body = std::get_if<Body>(&value)) return body;
      return nullptr;
    default: return nullptr;
  }
}

// Bodies nest as deeply as the user's calls do, not as deeply as chains of ops.
std::vector<ValueId> append_all(Builder& b, const Function& f, const std::vector<ValueId>& args) {
  std::vector<ValueId> map(f.num_values()), operands;
  for (std::size_t i = 0; i < args.size(); ++i) map[f.args()[i].index] = args[i];
  f.for_each_op([&](OpId op) {
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    if (const Body* body = body_of(f, op)) {
      const std::vector<ValueId> results = append_all(b, **body, std::vector<ValueId>(operands));
      for (std::size_t r = 0; r < results.size(); ++r) map[f.result(op, r).index] = results[r];
      return;
    }
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return results;
}

}  // namespace

Function inline_calls(const Function& f) {
  Builder b(f.name());
  std::vector<ValueId> args;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  return b.finish(append_all(b, f, args));
}

}  // namespace burin::passes
