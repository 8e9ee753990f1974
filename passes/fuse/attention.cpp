#include "passes/fuse/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "ir/builder.h"
#include "passes/fuse/attention_delta.h"
#include "passes/fuse/attention_groups.h"

namespace burin::passes::fusion {
namespace {

// Values of scores and what is made of them, over the whole function. Each product of two other values founds a family;
// elementwise ops unite those that they mix.
class Families {
 public:
  explicit Families(const Function& f) : f_(f), role_(f.num_values(), Role::none), family_(f.num_values(), 0) {
    f.for_each_op([&](OpId op) { classify(op); });
    for (ValueId result : f.results())
      if (role_[result.index] == Role::domain) escape(result, "its scores are a result of the function");
  }

  std::vector<ScoreFamily> with_a_maximum() {
    std::map<std::size_t, ScoreFamily> found;
    f_.for_each_op([&](OpId op) {
      if (!is_target_.contains(op)) return;
      const std::size_t root = root_of(family_of_target_.at(op));
      ScoreFamily& family = found[root];
      family.targets.push_back(op);
      if (f_.kind(op) == Op::reduce_max) family.maxima.push_back(op);
    });
    std::vector<ScoreFamily> result;
    for (auto& [root, family] : found) {
      if (family.maxima.empty()) continue;
      for (const auto& [id, why] : escapes_)
        if (root_of(id) == root && family.why_not.empty()) family.why_not = why;
      result.push_back(std::move(family));
    }
    for (std::size_t v = 0; v < f_.num_values(); ++v) {
      if (role_[v] == Role::none) continue;
      for (ScoreFamily& family : result)
        if (root_of(family_[v]) == root_of(family_of_target_.at(family.targets[0])))
          (role_[v] == Role::domain ? family.domain : family.rows).insert(ValueId{v});
    }
    return result;
  }

 private:
  enum class Role : std::uint8_t { none, domain, row };

  std::size_t root_of(std::size_t id) const {
    while (parent_[id] != id) id = parent_[id];
    return id;
  }
  void escape(ValueId v, const std::string& why) { escapes_.emplace_back(family_[v.index], why); }
  void escape(ValueId v, OpId op) {
    const std::string where = to_string(f_.location(op));
    escape(v, fmt::format("{}{} reads its scores", name(f_.kind(op)), where.empty() ? "" : " (" + where + ")"));
  }

  void classify(OpId op) {
    if (f_.num_results(op) != 1) {
      for (ValueId operand : f_.operands(op))
        if (role_[operand.index] == Role::domain) escape(operand, op);
      return;
    }
    const Op kind = f_.kind(op);
    const ValueId v = f_.result(op);
    std::vector<ValueId> domain, rows;
    for (ValueId operand : f_.operands(op)) {
      if (role_[operand.index] == Role::domain) domain.push_back(operand);
      if (role_[operand.index] == Role::row) rows.push_back(operand);
    }
    const auto join = [&](Role role) {
      std::size_t root = parent_.size();
      for (const auto* list : {&domain, &rows})
        for (ValueId x : *list) {
          const std::size_t other = root_of(family_[x.index]);
          if (root == parent_.size()) root = other;
          const bool has_maximum = has_maximum_[root] || has_maximum_[other];
          parent_[std::max(root, other)] = std::min(root, other);
          root = std::min(root, other);
          has_maximum_[root] = has_maximum;
        }
      role_[v.index] = role;
      family_[v.index] = root;
      size_[root] = std::max(size_[root], f_.type(domain.empty() ? rows[0] : domain[0]).size());
    };
    const auto target = [&] {
      is_target_.insert(op);
      family_of_target_[op] = family_[domain[0].index];
    };
    if (kind == Op::dot_general) {
      // Before its maximum is known a product is none by weights: what it multiplies are wide rows, a projection's for
      // example.
      std::vector<ValueId> weights = domain;
      std::erase_if(weights, [&](ValueId x) { return !has_maximum_[root_of(family_[x.index])]; });
      if (weights.size() < domain.size() && (!weights.empty() || founds(op))) {
        for (ValueId x : domain)
          if (std::find(weights.begin(), weights.end(), x) == weights.end()) escape(x, op);
        domain = weights;
      }
      if (domain.size() == 2) return escape(domain[0], op);
      if (domain.size() == 1) return target();
      if (!founds(op)) return;
      role_[v.index] = Role::domain;
      family_[v.index] = parent_.size();
      parent_.push_back(parent_.size());
      size_.push_back(f_.type(v).size());
      has_maximum_.push_back(false);
      return;
    }
    const Family family = family_of(kind);
    const bool keeps =
        family == Family::elementwise || family == Family::compare || kind == Op::transpose || kind == Op::reshape;
    if (!domain.empty()) {
      if (keeps) return join(Role::domain);
      if (kind == Op::reduce_sum || kind == Op::reduce_max) {
        join(Role::row);
        if (kind == Op::reduce_max) has_maximum_[root_of(family_[v.index])] = true;
        return target();
      }
      return escape(domain[0], op);
    }
    if (rows.empty()) return;
    if (keeps) return join(Role::row);
    if (kind == Op::broadcast && f_.type(v).size() == size_[root_of(family_[rows[0].index])]) return join(Role::domain);
  }

  // A product of long rows of both sides over a short axis: more scores than elements to make them of.
  bool founds(OpId op) const {
    const auto a = f_.attrs<Op::dot_general>(op);
    const Type& type = f_.type(f_.result(op));
    return a.lhs_contract.size() == 1 && type.dtype == DType::f32 && type.size() > f_.type(f_.operand(op, 0)).size() &&
           type.size() > f_.type(f_.operand(op, 1)).size();
  }

  const Function& f_;
  std::vector<Role> role_;
  std::vector<std::size_t> family_;  // by value with a role
  std::vector<std::size_t> parent_;  // by family: itself, or one that it was united with
  std::vector<std::int64_t> size_;   // by root: scores
  std::vector<bool> has_maximum_;    // by root: one has been met
  std::set<OpId> is_target_;
  std::map<OpId, std::size_t> family_of_target_;
  std::vector<std::pair<std::size_t, std::string>> escapes_;
};

// The function with each group's values computed by one fusion.
class Rebuilder {
 public:
  Rebuilder(const Function& f, std::vector<AttentionGroup> groups)
      : f_(f), groups_(std::move(groups)), b_(f.name()), map_(f.num_values()) {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (ValueId v : groups_[g].results) group_of_[v.index] = g;
  }

  // False when groups wait for one another.
  bool run(Function* result) {
    for (ValueId arg : f_.args()) map_[arg.index] = b_.add_arg(f_.type(arg), f_.value_name(arg));
    find_needed();
    done_.assign(groups_.size(), false);
    open_.assign(groups_.size(), false);
    for (std::size_t i = 0; i < f_.num_ops(); ++i)
      if (needed_[i] && !ensure(OpId{i})) return false;
    std::vector<ValueId> results;
    for (ValueId v : f_.results()) results.push_back(map_[v.index]);
    *result = b_.finish(std::move(results));
    return true;
  }

 private:
  std::optional<std::size_t> group_of(ValueId v) const {
    const auto found = group_of_.find(v.index);
    return found == group_of_.end() ? std::nullopt : std::optional(found->second);
  }

  // By op: wanted by the results, groups taken as ops of their own.
  void find_needed() {
    needed_.assign(f_.num_ops(), false);
    std::vector<bool> seen(groups_.size(), false);
    std::vector<ValueId> stack(f_.results().begin(), f_.results().end());
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (f_.is_arg(v)) continue;
      if (const auto g = group_of(v)) {
        needed_[f_.def(v).index] = true;
        if (seen[*g]) continue;
        seen[*g] = true;
        stack.insert(stack.end(), groups_[*g].args.begin(), groups_[*g].args.end());
        continue;
      }
      if (needed_[f_.def(v).index]) continue;
      needed_[f_.def(v).index] = true;
      for (ValueId operand : f_.operands(f_.def(v))) stack.push_back(operand);
    }
  }

  // Emits the op, or its group, and before it whatever it still waits for.
  bool ensure(OpId first) {
    std::vector<OpId> stack = {first};
    while (!stack.empty()) {
      const OpId op = stack.back();
      const auto g = group_of(f_.result(op));
      if (g ? done_[*g] : f_.num_results(op) > 0 && map_[f_.result(op).index].valid()) {
        stack.pop_back();
        continue;
      }
      const std::span<const ValueId> waits_for = g ? std::span<const ValueId>(groups_[*g].args) : f_.operands(op);
      bool ready = true;
      for (ValueId v : waits_for)
        if (!map_[v.index].valid()) {
          const auto other = group_of(v);
          if (other && open_[*other]) return false;
          stack.push_back(f_.def(v));
          ready = false;
        }
      if (g) open_[*g] = true;
      if (!ready) continue;
      stack.pop_back();
      emit(op, g);
    }
    return true;
  }

  void emit(OpId op, std::optional<std::size_t> g) {
    std::vector<ValueId> operands;
    b_.set_location(f_.location(op));
    if (!g) {
      for (ValueId operand : f_.operands(op)) operands.push_back(map_[operand.index]);
      const ValueId out = b_.append_copy(f_, op, operands);
      for (std::size_t r = 0; r < f_.num_results(op); ++r) map_[f_.result(op, r).index] = ValueId{out.index + r};
      return;
    }
    AttentionGroup& group = groups_[*g];
    for (ValueId arg : group.args) operands.push_back(map_[arg.index]);
    Function body = group.body("attention_" + std::to_string(count_++), f_);
    const std::vector<ValueId> outs =
        b_.call(Op::fusion, operands, {Str("attention"), std::make_shared<const Function>(std::move(body))});
    for (std::size_t i = 0; i < outs.size(); ++i) map_[group.results[i].index] = outs[i];
    done_[*g] = true;
  }

  const Function& f_;
  std::vector<AttentionGroup> groups_;
  Builder b_;
  std::vector<ValueId> map_;
  std::unordered_map<std::uint32_t, std::size_t> group_of_;
  std::vector<bool> needed_, done_, open_;
  std::size_t count_ = 0;
};

void find_groups(const Function& f, const AttentionLimits& limits, std::vector<AttentionNote>* notes,
                 std::vector<AttentionGroup>* groups, std::vector<RowProduct>* products) {
  std::optional<Uses> uses;
  for (ScoreFamily& family : Families(f).with_a_maximum()) {
    if (!uses) uses.emplace(f);
    AttentionNote note{f.location(family.maxima[0]), family.why_not};
    if (note.why_not.empty()) {
      std::vector<AttentionGroup> mine;
      std::vector<RowProduct> sums;
      note.why_not = form_groups(f, family, *uses, limits, &mine, &sums);
      if (note.why_not.empty()) {
        groups->insert(groups->end(), std::make_move_iterator(mine.begin()), std::make_move_iterator(mine.end()));
        products->insert(products->end(), std::make_move_iterator(sums.begin()), std::make_move_iterator(sums.end()));
      }
    }
    notes->push_back(std::move(note));
  }
}

}  // namespace

Function take_attentions(const Function& f, std::vector<AttentionNote>* notes, const AttentionLimits& limits) {
  Function source = f;
  std::vector<AttentionNote> local;
  std::vector<AttentionGroup> groups;
  std::vector<RowProduct> products;
  find_groups(f, limits, &local, &groups, &products);
  if (!products.empty()) {
    source = replace_row_sums(f, products);
    local.clear();
    groups.clear();
    products.clear();
    find_groups(source, limits, &local, &groups, &products);
  }
  Function result = source;
  if (!groups.empty() && !Rebuilder(source, std::move(groups)).run(&result)) {
    result = f;
    for (AttentionNote& note : local)
      if (note.why_not.empty()) note.why_not = "its kernels would wait for one another";
  }
  if (notes != nullptr) *notes = std::move(local);
  return result;
}

}  // namespace burin::passes::fusion
