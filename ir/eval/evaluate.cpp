#include <new>
#include <stdexcept>

#include "base/check.h"
#include "base/message_ids.h"
#include "ir/eval/eval.h"
#include "ir/eval/rules.h"
#include "ir/eval/walk.h"

namespace burin::ir {

std::vector<Literal> evaluate_op(Op op, std::span<const Literal> operands, std::span<const AttrValue> attributes,
                                 std::span<const Type> result_types, std::string_view where) {
  const auto out_of_memory = [&] {  // for what a rule keeps besides its results
    std::int64_t bytes = 0;
    for (const Literal& operand : operands) bytes += operand.type().bytes();
    for (const Type& type : result_types) bytes += type.bytes();
    fail_at(where, Msg::memory_for, std::string(name(op)) + " with its operands and results", bytes,
            static_cast<double>(bytes) / 1048576.0);
  };
  try {
    return with_tag(op, [&]<Op o>(Tag<o> tag) {
      attrs_of<o> a;
      [[maybe_unused]] std::size_t next = 0;
      visit_attrs(a, [&]<class T>(std::string_view, T& field) { field = std::get<T>(attributes[next++]); });
      return eval::evaluate(tag, eval::Operands{op, operands, result_types, where}, a);
    });
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::length_error&) {
    out_of_memory();
  }
  return {};
}

std::vector<Literal> evaluate(const Function& f, std::span<const Literal> args) {
  BURIN_CHECK(args.size() == f.args().size());
  for (std::size_t i = 0; i < args.size(); ++i)
    BURIN_CHECK(args[i].type() == f.type(f.args()[i]), "argument " + std::to_string(i) + " of " + f.name() + " is " +
                                                           to_string(args[i].type()) + ", not " +
                                                           to_string(f.type(f.args()[i])));
  return walk(f, args, [&](OpId op, std::span<const Literal> operands, std::span<const Type> types) {
    std::vector<Literal> results =
        evaluate_op(f.kind(op), operands, f.attributes(op), types, to_string(f.location(op)));
    BURIN_CHECK(results.size() == types.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      BURIN_CHECK(results[i].type() == types[i], std::string(name(f.kind(op))));
    return results;
  });
}

}  // namespace burin::ir
