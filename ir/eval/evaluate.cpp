#include "base/check.h"
#include "ir/eval/eval.h"
#include "ir/eval/rules.h"

namespace burin::ir {

std::vector<Literal> evaluate_op(Op op, std::span<const Literal> operands, std::span<const AttrValue> attributes,
                                 std::span<const Type> result_types, std::string_view where) {
  return with_tag(op, [&]<Op o>(Tag<o> tag) {
    attrs_of<o> a;
    [[maybe_unused]] std::size_t next = 0;
    visit_attrs(a, [&]<class T>(std::string_view, T& field) { field = std::get<T>(attributes[next++]); });
    return eval::evaluate(tag, eval::Operands{op, operands, result_types, where}, a);
  });
}

std::vector<Literal> evaluate(const Function& f, std::span<const Literal> args) {
  BURIN_CHECK(args.size() == f.args().size());
  std::vector<Literal> values(f.num_values());
  for (std::size_t i = 0; i < args.size(); ++i) {
    BURIN_CHECK(args[i].type() == f.type(f.args()[i]), "argument " + std::to_string(i) + " of " + f.name() + " is " +
                                                           to_string(args[i].type()) + ", not " +
                                                           to_string(f.type(f.args()[i])));
    values[f.args()[i].index] = args[i];
  }

  // A value is forgotten with its last use.
  std::vector<std::uint32_t> uses = use_counts(f);
  std::vector<Literal> operands;
  std::vector<Type> types;
  f.for_each_op([&](OpId op) {
    operands.clear();
    types.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(values[operand.index]);
    for (std::size_t i = 0; i < f.num_results(op); ++i) types.push_back(f.type(f.result(op, i)));
    std::vector<Literal> results =
        evaluate_op(f.kind(op), operands, f.attributes(op), types, to_string(f.location(op)));
    BURIN_CHECK(results.size() == types.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      BURIN_CHECK(results[i].type() == types[i], std::string(name(f.kind(op))));
      const ValueId result = f.result(op, i);
      if (uses[result.index] > 0) values[result.index] = std::move(results[i]);
    }
    for (ValueId operand : f.operands(op))
      if (--uses[operand.index] == 0) values[operand.index] = Literal{};
  });

  std::vector<Literal> results;
  for (ValueId result : f.results()) results.push_back(values[result.index]);
  return results;
}

}  // namespace burin::ir
