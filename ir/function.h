// Function: a straight-line list of ops in single-assignment form. Records are flat; operands, types, attributes and
// locations stand in side tables. Immutable once built: passes build a new one.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/ids.h"
#include "ir/op.h"

namespace burin::ir {

using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using TypeId = Id<struct TypeTag>;
using LocationId = Id<struct LocationTag>;

/// Where an op comes from. `file` is "" when unknown.
struct Location {
  std::string file;      // as the compiler spelled it, without directories
  std::uint32_t line = 0;
  std::string function;  // the library function the user called, "rms_norm", or ""
  std::string scope;     // named scopes around it, "block0/attn", or ""
  friend bool operator==(const Location&, const Location&) = default;
};
/// "model.cpp:42, in rms_norm, in block0/attn"; "" for an unknown location.
std::string to_string(const Location& location);

struct OpRecord {
  Op op = Op::add;
  std::uint32_t first_operand = 0, num_operands = 0;
  std::uint32_t first_attr = 0;
  ValueId first_result;
  std::uint32_t num_results = 0;
  LocationId location;
};
static_assert(sizeof(OpRecord) <= 32);

/// Which op of which function a loop stands at; named when a check fails.
struct OpVisit {
  const Function* function;
  OpId op;
};
/// "at op 3 of @main: dot_general (model.cpp:42)"; takes an OpVisit.
std::string describe_visit(const void* visit);

class Function {
 public:
  const std::string& name() const { return name_; }
  std::size_t num_ops() const { return ops_.size(); }
  std::size_t num_values() const { return value_types_.size(); }
  std::span<const ValueId> args() const { return args_; }
  std::span<const ValueId> results() const { return results_; }

  const OpRecord& record(OpId op) const { return ops_[op.index]; }
  Op kind(OpId op) const { return ops_[op.index].op; }
  std::span<const ValueId> operands(OpId op) const {
    return {operands_.data() + ops_[op.index].first_operand, ops_[op.index].num_operands};
  }
  ValueId operand(OpId op, std::size_t i) const { return operands(op)[i]; }
  /// Results of an op are consecutive values.
  ValueId result(OpId op, std::size_t i = 0) const { return ValueId{ops_[op.index].first_result.index + i}; }
  std::size_t num_results(OpId op) const { return ops_[op.index].num_results; }

  const Type& type(ValueId value) const { return types_[value_types_[value.index].index]; }
  /// The op that defines a value; invalid for an argument.
  OpId def(ValueId value) const { return defs_[value.index]; }
  bool is_arg(ValueId value) const { return !defs_[value.index].valid(); }
  /// A name from the source ("params.blocks.0.w1"), or "".
  std::string_view value_name(ValueId value) const;

  std::span<const AttrValue> attributes(OpId op) const {
    return {attrs_.data() + ops_[op.index].first_attr, info(ops_[op.index].op).attributes.size()};
  }
  /// The attributes as the op's struct: `f.attrs<Op::slice>(id).start`.
  template <Op op>
  attrs_of<op> attrs(OpId id) const {
    attrs_of<op> result;
    [[maybe_unused]] std::size_t i = ops_[id.index].first_attr;
    visit_attrs(result, [&]<class T>(std::string_view, T& field) { field = std::get<T>(attrs_[i++]); });
    return result;
  }
  const Location& location(OpId op) const;

  /// Visits ids in program order.
  template <class F>
  void for_each_op(F&& f) const {
    OpVisit visit{this, OpId{}};
    const CrashContext context(&describe_visit, &visit);
    for (std::size_t i = 0; i < ops_.size(); ++i) f(visit.op = OpId{i});
  }

  /// Identity of the program: ops, types, attributes, structure; not names, not locations.
  void hash(Hasher& hasher) const;

  std::vector<Type> arg_types() const;
  std::vector<Type> result_types() const;

 private:
  friend class Builder;
  friend class Verifier;        // trusts no table
  friend struct FunctionForge;  // of the tests: makes functions that the verifier must refuse
  std::string name_ = "main";
  std::vector<OpRecord> ops_;
  std::vector<ValueId> operands_;
  std::vector<AttrValue> attrs_;
  std::deque<Type> types_;           // distinct types; one that was asked for stays where it is while others come
  std::vector<TypeId> value_types_;  // by value
  std::vector<OpId> defs_;           // by value
  std::vector<ValueId> args_, results_;
  std::vector<Location> locations_;  // [0] is unknown
  struct Name {
    std::uint32_t first = 0, size = 0;  // in name_text_
  };
  std::vector<Name> value_names_;  // by value; those behind its end have none
  std::string name_text_;
};

/// The same program: equal ops, types, attributes and structure (bodies compared deeply), names and
/// locations aside.
bool same_program(const Function& a, const Function& b);

/// Adds one attribute to a hash; bodies by their structure.
void hash_attribute(Hasher& hasher, const AttrValue& value);

/// How often each value is used, results of the function included.
std::vector<std::uint32_t> use_counts(const Function& f);

}  // namespace burin::ir
