#include "ir/function.h"

#include <algorithm>
#include <set>

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
  if (value.index >= value_names_.size()) return {};
  const Name& name = value_names_[value.index];
  return {name_text_.data() + name.first, name.size};
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

// Bodies may share bodies, so that a walk over all paths would be exponential in depth: each is visited once.
class ProgramHasher {
 public:
  void add(Hasher& hasher, const Function& f) {
    hasher.add(f.args().size());
    for (ValueId arg : f.args()) hash_type(hasher, f.type(arg));
    hasher.add(f.num_ops());
    f.for_each_op([&](OpId op) {
      hasher.add(f.kind(op));
      hasher.add(f.operands(op).size());
      for (ValueId operand : f.operands(op)) hasher.add(operand.index);
      for (const AttrValue& value : f.attributes(op)) add(hasher, value);
      for (std::size_t r = 0; r < f.num_results(op); ++r) hash_type(hasher, f.type(f.result(op, r)));
    });
    hasher.add(f.results().size());
    for (ValueId result : f.results()) hasher.add(result.index);
  }

  void add(Hasher& hasher, const AttrValue& value) {
    hasher.add(value.index());
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, Ints>) {
            hasher.add(v.size());
            for (std::int64_t i : v) hasher.add(i);
          } else if constexpr (std::is_same_v<T, Literal>) {
            v.hash(hasher);
          } else if constexpr (std::is_same_v<T, Body>) {
            add_body(hasher, *v);
          } else {
            hasher.add(v);
          }
        },
        value);
  }

 private:
  void add_body(Hasher& hasher, const Function& body) {
    auto found = known_.find(&body);
    if (found == known_.end()) {
      Hasher inner;
      add(inner, body);
      found = known_.emplace(&body, inner.finish()).first;
    }
    hasher.add(found->second.low);
    hasher.add(found->second.high);
  }

  std::unordered_map<const Function*, Hash128> known_;
};

class Comparison {
 public:
  bool same(const Function& a, const Function& b) {
    if (&a == &b || known_.contains({&a, &b})) return true;
    if (a.num_ops() != b.num_ops() || a.num_values() != b.num_values() || !equal(a.args(), b.args()) ||
        !equal(a.results(), b.results()))
      return false;
    for (std::size_t i = 0; i < a.num_values(); ++i)
      if (a.type(ValueId{i}) != b.type(ValueId{i}) || a.def(ValueId{i}) != b.def(ValueId{i})) return false;
    for (std::size_t i = 0; i < a.num_ops(); ++i)
      if (!same(a, b, OpId{i})) return false;
    known_.emplace(&a, &b);
    return true;
  }

 private:
  static bool equal(std::span<const ValueId> x, std::span<const ValueId> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  bool same(const Function& a, const Function& b, OpId op) {
    if (a.kind(op) != b.kind(op) || !equal(a.operands(op), b.operands(op))) return false;
    const auto x = a.attributes(op), y = b.attributes(op);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const Body *p = std::get_if<Body>(&x[k]), *q = std::get_if<Body>(&y[k]);
      if (p != nullptr && q != nullptr ? !same(**p, **q) : x[k] != y[k]) return false;
    }
    return true;
  }

  std::set<std::pair<const Function*, const Function*>> known_;  // found to be the same
};

}  // namespace

void Function::hash(Hasher& hasher) const { ProgramHasher().add(hasher, *this); }

void hash_attribute(Hasher& hasher, const AttrValue& value) { ProgramHasher().add(hasher, value); }

bool same_program(const Function& a, const Function& b) { return Comparison().same(a, b); }

std::string describe_visit(const void* visit) {
  const auto& [function, op] = *static_cast<const OpVisit*>(visit);
  if (!op.valid()) return "  before the first op of @" + function->name();
  const std::string where = to_string(function->location(op));
  return "  at op " + std::to_string(op.index) + " of @" + function->name() + ": " + std::string(name(function->kind(op))) +
         (where.empty() ? "" : " (" + where + ")");
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
