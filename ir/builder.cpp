#include "ir/builder.h"

#include "base/check.h"

namespace burin::ir {
namespace {

Hash128 key_of(const Type& type) {
  Hasher hasher;
  hasher.add(type.dtype);
  for (std::int64_t extent : type.shape) hasher.add(extent);
  return hasher.finish();
}

Hash128 key_of(const Location& location) {
  Hasher hasher;
  hasher.add(location.line);
  for (const std::string* part : {&location.file, &location.function, &location.scope}) hasher.add(*part);
  return hasher.finish();
}

Ints to_ints(const Shape& shape) { return Ints(shape.begin(), shape.end()); }

}  // namespace

Builder::Builder(std::string name) {
  function_.name_ = std::move(name);
  function_.locations_.emplace_back();
  location_ids_.emplace(key_of(Location{}), location_);
}

TypeId Builder::intern(const Type& type) {
  const auto [found, added] = type_ids_.try_emplace(key_of(type), TypeId{function_.types_.size()});
  if (added) function_.types_.push_back(type);
  return found->second;
}

ValueId Builder::new_value(const Type& type, OpId def) {
  const ValueId value{function_.value_types_.size()};
  function_.value_types_.push_back(intern(type));
  function_.defs_.push_back(def);
  return value;
}

ValueId Builder::add_arg(const Type& type, std::string_view name) {
  const ValueId value = new_value(type, OpId{});
  function_.args_.push_back(value);
  if (!name.empty()) set_value_name(value, name);
  return value;
}

void Builder::set_location(const Location& location) {
  if (location == current_location()) return;
  const auto [found, added] = location_ids_.try_emplace(key_of(location), LocationId{function_.locations_.size()});
  if (added) function_.locations_.push_back(location);
  location_ = found->second;
}

void Builder::set_value_name(ValueId value, std::string_view name) {
  if (value.index >= function_.value_names_.size()) function_.value_names_.resize(std::size_t{value.index} + 1);
  const std::size_t first = function_.name_text_.size();
  function_.name_text_ += name;
  function_.value_names_[value.index] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(name.size())};
}

ValueId Builder::append(Op op, std::span<const ValueId> operands, std::vector<AttrValue> attributes) {
  std::vector<Type> operand_types;
  operand_types.reserve(operands.size());
  for (ValueId operand : operands) {
    BURIN_CHECK(operand.index < function_.num_values(), "operand of another function");
    operand_types.push_back(function_.type(operand));
  }
  const std::vector<Type> types = infer_types(op, operand_types, attributes, &current_location());
  OpRecord record{};
  record.op = op;
  record.first_operand = static_cast<std::uint32_t>(function_.operands_.size());
  record.num_operands = static_cast<std::uint32_t>(operands.size());
  record.first_attr = static_cast<std::uint32_t>(function_.attrs_.size());
  record.location = location_;
  record.num_results = static_cast<std::uint32_t>(types.size());
  record.first_result = ValueId{function_.num_values()};
  function_.operands_.insert(function_.operands_.end(), operands.begin(), operands.end());
  for (AttrValue& value : attributes) function_.attrs_.push_back(std::move(value));
  const OpId id{function_.ops_.size()};
  function_.ops_.push_back(record);
  for (const Type& type : types) new_value(type, id);
  return record.first_result;
}

ValueId Builder::append_copy(const Function& source, OpId op, std::span<const ValueId> operands) {
  const auto attributes = source.attributes(op);
  set_location(source.location(op));
  const ValueId first =
      append(source.kind(op), operands, std::vector<AttrValue>(attributes.begin(), attributes.end()));
  for (std::size_t i = 0; i < source.num_results(op); ++i)
    if (const auto name = source.value_name(source.result(op, i)); !name.empty())
      set_value_name(ValueId{first.index + i}, name);
  return first;
}

ValueId Builder::convert(ValueId x, DType dtype) {
  return type(x).dtype == dtype ? x : emit<Op::convert>({x}, {.dtype = dtype});
}

ValueId Builder::constant(const Literal& value) { return emit<Op::constant>({}, {.value = value}); }

ValueId Builder::full(const Type& type, double value) {
  return constant(Literal::splat(type.shape, Literal::scalar(type.dtype, value)));
}

ValueId Builder::reshape(ValueId x, const Shape& shape) {
  return type(x).shape == shape ? x : emit<Op::reshape>({x}, {.shape = to_ints(shape)});
}

ValueId Builder::transpose(ValueId x, const Ints& permutation) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i) identity &= permutation[i] == static_cast<std::int64_t>(i);
  return identity ? x : emit<Op::transpose>({x}, {.permutation = permutation});
}

ValueId Builder::broadcast(ValueId x, const Shape& shape, const Ints& dims) {
  return type(x).shape == shape ? x : emit<Op::broadcast>({x}, {.shape = to_ints(shape), .dims = dims});
}

ValueId Builder::reduce(Op op, ValueId x, const Ints& axes) { return append(op, std::span(&x, 1), {axes}); }

ValueId Builder::iota(DType dtype, const Shape& shape, std::int64_t axis) {
  return emit<Op::iota>({}, {.dtype = dtype, .shape = to_ints(shape), .axis = axis});
}

std::vector<ValueId> Builder::call(Op op, std::span<const ValueId> operands, std::vector<AttrValue> attributes) {
  const ValueId first = append(op, operands, std::move(attributes));
  std::vector<ValueId> results;
  for (std::uint32_t i = 0; i < function_.ops_.back().num_results; ++i) results.push_back(ValueId{first.index + i});
  return results;
}

std::vector<ValueId> Builder::inline_body(const Function& body, std::span<const ValueId> operands) {
  BURIN_CHECK(operands.size() == body.args().size());
  std::vector<ValueId> map(body.num_values());
  for (std::size_t i = 0; i < operands.size(); ++i) map[body.args()[i].index] = operands[i];
  const Location outer = current_location();
  std::vector<ValueId> mapped;
  body.for_each_op([&](OpId op) {
    mapped.clear();
    for (ValueId operand : body.operands(op)) mapped.push_back(map[operand.index]);
    const ValueId first = append_copy(body, op, mapped);
    for (std::size_t i = 0; i < body.num_results(op); ++i) map[body.result(op, i).index] = ValueId{first.index + i};
  });
  set_location(outer);
  std::vector<ValueId> results;
  for (ValueId result : body.results()) results.push_back(map[result.index]);
  return results;
}

Function Builder::finish(std::vector<ValueId> results) {
  function_.results_ = std::move(results);
  Function done = std::move(function_);
  *this = Builder{};
  return done;
}

}  // namespace burin::ir
