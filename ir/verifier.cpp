#include "ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/counted.h"
#include "base/error.h"
#include "ir/builder.h"

namespace burin::ir {

/// Checks one function; docs/ir.md lists the invariants in the same order and words.
class Verifier {
 public:
  explicit Verifier(const Function& f) : f_(f) {}

  std::string first_broken() {
    if (std::string broken = check_tables(); !broken.empty()) return broken;
    std::uint32_t next_value = 0;
    for (std::size_t i = 0; i < f_.ops_.size(); ++i)
      if (std::string broken = check_op(OpId{i}, next_value); !broken.empty())
        return fmt::format("{} (@{}, op {}, {})", broken, f_.name_, i, describe(f_.ops_[i].op));
    return check_results();
  }

  /// Bodies of its ops; only for a function without a broken invariant.
  void append_bodies(std::vector<const Function*>& bodies) const {
    for (const AttrValue& value : f_.attrs_)
      if (const Body* body = std::get_if<Body>(&value)) bodies.push_back(body->get());
  }

 private:
  static std::string describe(Op op) {
    return static_cast<int>(op) < num_ops ? std::string(name(op)) : fmt::format("kind {}", static_cast<int>(op));
  }

  bool exists(ValueId value) const { return value.index < f_.value_types_.size(); }
  static bool in_table(std::size_t first, std::size_t n, std::size_t size) {
    return first <= size && n <= size - first;
  }

  // V1 and the tables of V2.
  std::string check_tables() const {
    const std::size_t n = f_.value_types_.size();
    if (f_.defs_.size() != n)
      return fmt::format("V1: @{} has {} and {}", f_.name_, counted(n, "value"), counted(f_.defs_.size(), "definition"));
    for (std::size_t i = 0; i < n; ++i)
      if (f_.value_types_[i].index >= f_.types_.size())
        return fmt::format("V1: @{}: value {} has no type", f_.name_, i);
    for (ValueId arg : f_.args_)
      if (!exists(arg)) return fmt::format("V1: @{}: argument {} does not exist", f_.name_, arg.index);
    for (const Function::Name& name : f_.value_names_)
      if (!in_table(name.first, name.size, f_.name_text_.size()))
        return fmt::format("V1: @{}: the name of value {} lies outside of its table", f_.name_, &name - f_.value_names_.data());
    if (f_.value_names_.size() > n)
      return fmt::format("V1: @{}: the name `{}` belongs to no value", f_.name_, f_.value_name(ValueId{f_.value_names_.size() - 1}));
    std::vector<bool> defined(n, false);
    for (ValueId arg : f_.args_) {
      if (f_.defs_[arg.index].valid() || defined[arg.index])
        return fmt::format("V2: @{}: argument {} is defined twice", f_.name_, arg.index);
      defined[arg.index] = true;
    }
    for (std::size_t i = 0; i < n; ++i)
      if (!f_.defs_[i].valid() && !defined[i])
        return fmt::format("V2: @{}: value {} is neither an argument nor a result of an op", f_.name_, i);
    return "";
  }

  std::string check_op(OpId id, std::uint32_t& next_value) const {
    const OpRecord& record = f_.ops_[id.index];
    if (static_cast<int>(record.op) >= num_ops) return "V1: the op does not exist";
    const OpInfo& row = info(record.op);
    if (!in_table(record.first_operand, record.num_operands, f_.operands_.size()) ||
        !in_table(record.first_attr, row.attributes.size(), f_.attrs_.size()) ||
        !in_table(record.first_result.index, record.num_results, f_.value_types_.size()) ||
        record.location.index >= f_.locations_.size())
      return "V1: operands, attributes, results or location lie outside of their tables";
    for (std::uint32_t i = 0; i < record.num_results; ++i) {
      const std::uint32_t value = record.first_result.index + i;
      if (f_.defs_[value] != id || value < next_value)
        return fmt::format("V2: result {}, value {}, is not defined by this op alone", i, value);
    }
    next_value = std::max(next_value, record.first_result.index + record.num_results);
    const auto operands = f_.operands(id);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!exists(operands[i])) return fmt::format("V1: operand {}, value {}, does not exist", i, operands[i].index);
      if (const OpId def = f_.defs_[operands[i].index]; def.valid() && def.index >= id.index)
        return fmt::format("V3: operand {}, value {}, is not defined before its use", i, operands[i].index);
    }
    if (row.arity >= 0 && operands.size() != static_cast<std::size_t>(row.arity))
      return fmt::format("V4: expected {}, found {}", counted(row.arity, "operand"), operands.size());
    const auto attributes = f_.attributes(id);
    for (std::size_t i = 0; i < attributes.size(); ++i)
      if (!has_value(attributes[i], row.attributes[i].kind))
        return fmt::format("V5: the attribute `{}` has another kind or no value", row.attributes[i].name);
    return check_types(id);
  }

  // Of that kind, and an enumerator, a literal with all its bytes or a body that exists.
  static bool has_value(const AttrValue& value, AttrKind kind) {
    if (value.index() != static_cast<std::size_t>(kind)) return false;
    switch (kind) {
      case AttrKind::DType: return static_cast<int>(std::get<DType>(value)) < num_dtypes;
      case AttrKind::Body: return std::get<Body>(value) != nullptr;
      case AttrKind::IndexMode: return std::get<IndexMode>(value) <= IndexMode::clip;
      case AttrKind::Combine: return std::get<Combine>(value) <= Combine::set;
      case AttrKind::Literal: {
        const Literal& literal = std::get<Literal>(value);
        if (!literal.valid()) return false;
        const std::size_t bytes =
            literal.is_splat() ? size_of(literal.dtype()) : static_cast<std::size_t>(literal.type().bytes());
        return literal.raw().size() == bytes;
      }
      default: return true;
    }
  }

  std::string check_types(OpId id) const {
    std::vector<Type> operand_types, types;
    for (ValueId operand : f_.operands(id)) operand_types.push_back(f_.type(operand));
    try {
      types = infer_types(f_.kind(id), operand_types, f_.attributes(id));
    } catch (const Error& error) {
      return fmt::format("V6: {}", error.what());
    }
    if (types.size() != f_.num_results(id))
      return fmt::format("V6: expected {}, found {}", counted(types.size(), "result"), f_.num_results(id));
    for (std::size_t i = 0; i < types.size(); ++i)
      if (f_.type(f_.result(id, i)) != types[i])
        return fmt::format("V6: result {} is {}, expected {}", i, to_string(f_.type(f_.result(id, i))),
                           to_string(types[i]));
    return "";
  }

  std::string check_results() const {
    for (ValueId result : f_.results_)
      if (!exists(result)) return fmt::format("V7: @{}: result {} does not exist", f_.name_, result.index);
    return "";
  }

  const Function& f_;
};

std::string verify(const Function& f) {
  // Each body once, however many ops share it, and without recursion.
  std::vector<const Function*> pending{&f};
  std::unordered_set<const Function*> seen;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (!seen.insert(pending[i]).second) continue;
    Verifier verifier(*pending[i]);
    if (std::string broken = verifier.first_broken(); !broken.empty())
      return i == 0 ? broken : "V8: a body is broken: " + broken;
    verifier.append_bodies(pending);
  }
  return "";
}

void check_valid(const Function& f, const char* after) {
  const std::string broken = verify(f);
  BURIN_CHECK(broken.empty(), fmt::format("after {}: {}", after, broken));
}

}  // namespace burin::ir
