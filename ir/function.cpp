#include "ir/function.h"

#include "base/check.h"

namespace burin::ir {

std::string to_string(const Location& location) {
  std::string text;
  if (!location.file.empty()) text = location.file + ":" + std::to_string(location.line);
  for (const std::string* part : {&location.function, &location.scope})
    if (!part->empty()) text += (text.empty() ? "in " : ", in ") + *part;
  return text;
}

std::string_view Function::value_name(ValueId value) const {
  const auto found = value_names_.find(value);
  return found == value_names_.end() ? std::string_view{} : std::string_view(found->second);
}

const Location& Function::location(OpId op) const { return locations_[ops_[op.index].location.index]; }

std::vector<Type> Function::arg_types() const {
  std::vector<Type> types;
  for (ValueId arg : args_) types.push_back(type(arg));
  return types;
}

std::vector<Type> Function::result_types() const {
  std::vector<Type> types;
  for (ValueId result : results_) types.push_back(type(result));
  return types;
}

namespace {

void hash_type(Hasher& hasher, const Type& type) {
  hasher.add(type.dtype);
  hasher.add(type.shape.rank());
  for (std::int64_t extent : type.shape) hasher.add(extent);
}

void hash_attr(Hasher& hasher, const AttrValue& value) {
  hasher.add(value.index());
  std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, Ints>) {
          hasher.add(v.size());
          for (std::int64_t i : v) hasher.add(i);
        } else if constexpr (std::is_same_v<T, Literal> || std::is_same_v<T, Body>) {
          if constexpr (std::is_same_v<T, Literal>)
            v.hash(hasher);
          else
            v->hash(hasher);
        } else {
          hasher.add(v);
        }
      },
      value);
}

bool same_attr(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const Body* body = std::get_if<Body>(&a)) {
    const Body& other = std::get<Body>(b);
    return *body == other || same_program(**body, *other);
  }
  return a == b;
}

}  // namespace

void Function::hash(Hasher& hasher) const {
  hasher.add(args_.size());
  for (ValueId arg : args_) hash_type(hasher, type(arg));
  hasher.add(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const OpId op{i};
    hasher.add(ops_[i].op);
    for (ValueId operand : operands(op)) hasher.add(operand.index);
    for (const AttrValue& value : attributes(op)) hash_attr(hasher, value);
    for (std::size_t r = 0; r < num_results(op); ++r) hash_type(hasher, type(result(op, r)));
  }
  hasher.add(results_.size());
  for (ValueId result : results_) hasher.add(result.index);
}

bool same_program(const Function& a, const Function& b) {
  if (a.num_ops() != b.num_ops() || a.num_values() != b.num_values() || a.args().size() != b.args().size()) return false;
  for (std::size_t i = 0; i < a.num_values(); ++i)
    if (a.type(ValueId{i}) != b.type(ValueId{i}) || a.def(ValueId{i}) != b.def(ValueId{i})) return false;
  for (std::size_t i = 0; i < a.num_ops(); ++i) {
    const OpId op{i};
    const auto x = a.operands(op), y = b.operands(op);
    if (a.kind(op) != b.kind(op) || !std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
    const auto p = a.attributes(op), q = b.attributes(op);
    for (std::size_t k = 0; k < p.size(); ++k)
      if (!same_attr(p[k], q[k])) return false;
  }
  return std::equal(a.args().begin(), a.args().end(), b.args().begin()) &&
         std::equal(a.results().begin(), a.results().end(), b.results().begin(), b.results().end());
}

std::vector<std::uint32_t> use_counts(const Function& f) {
  std::vector<std::uint32_t> counts(f.num_values(), 0);
  f.for_each_op([&](OpId op) {
    for (ValueId operand : f.operands(op)) ++counts[operand.index];
  });
  for (ValueId result : f.results()) ++counts[result.index];
  return counts;
}

}  // namespace burin::ir
