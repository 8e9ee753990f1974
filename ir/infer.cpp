// The one entrance to the type rules: checks what all ops share, then goes to the op's rule in ir/shape/.
#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/builder.h"
#include "ir/shape/checks.h"

namespace burin::ir {
namespace {

template <Op op>
attrs_of<op> typed_attrs(std::span<const AttrValue> values) {
  attrs_of<op> result;
  [[maybe_unused]] std::size_t i = 0;
  visit_attrs(result, [&]<class T>(std::string_view attribute, T& field) {
    const T* value = std::get_if<T>(&values[i++]);
    BURIN_CHECK(value != nullptr,
                std::string(name(op)) + ": attribute " + std::string(attribute) + " has another kind");
    field = *value;
  });
  return result;
}

// The bytes of every value fit 63 bits, so that no later offset overflows.
void check_size(const shape::Operands& in, const Type& type) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type.dtype));
  bool overflow = false, empty = false;
  for (std::int64_t extent : type.shape) {
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
    empty |= extent == 0;
  }
  if (overflow && !empty) in.fail(Msg::result_too_large, name(in.op), to_string(type));
}

}  // namespace

std::vector<Type> infer_types(Op op, std::span<const Type> operands, std::span<const AttrValue> attributes,
                              const Location* where) {
  const OpInfo& row = info(op);
  const shape::Operands in{op, operands, where};
  BURIN_CHECK(attributes.size() == row.attributes.size(), std::string(row.name) + ": wrong number of attributes");
  if (row.arity >= 0 && operands.size() != static_cast<std::size_t>(row.arity))
    in.fail(Msg::operand_count, row.name, counted(static_cast<std::size_t>(row.arity), "operand", "operands"),
            operands.size());
  std::vector<Type> types =
      with_tag(op, [&]<Op o>(Tag<o> tag) { return shape::infer(tag, in, typed_attrs<o>(attributes)); });
  for (const Type& type : types) check_size(in, type);
  return types;
}

}  // namespace burin::ir
