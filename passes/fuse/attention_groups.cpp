#include "passes/fuse/attention_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/builder.h"
#include "passes/fuse/attention_delta.h"
#include "passes/lower/attention_plan.h"
#include "passes/lower/nest.h"

namespace burin::passes::fusion {
namespace {

constexpr std::size_t max_ops = 256;

class GroupFormer {
 public:
  GroupFormer(const Function& f, const ScoreFamily& family, const Uses& uses, const AttentionLimits& limits)
      : f_(f), family_(family), uses_(uses), limits_(limits), seen_(2 * f.num_values(), 0) {
    for (OpId op : family.targets) is_target_.insert(op);
  }

  std::string run(std::vector<AttentionGroup>* groups, std::vector<RowProduct>* products) {
    if (family_.maxima.size() > 1) return "its scores have several maxima";
    // All of it as one body says which axis each target sums over.
    const AttentionGroup all = group_of(family_.targets);
    if (all.ops.size() > max_ops) return fmt::format("its scores are made of more than {} ops", max_ops);
    std::map<OpId, OpId> in_body;
    const Function body = all.body("scores", f_, &in_body);
    lower::AttentionDomain domain;
    if (std::string why = lower::find_domain(body, &domain); !why.empty()) return why;
    std::map<OpId, std::size_t> axis;
    for (OpId target : family_.targets) {
      const auto mine = lower::summed_axis(body, domain, in_body.at(target));
      if (!mine) return "it sums over something else than one whole axis of its scores";
      axis[target] = *mine;
    }
    const OpId maximum = family_.maxima[0];
    std::vector<std::vector<OpId>> found = {{maximum}};
    std::vector<std::size_t> along = {axis[maximum]};
    bool weighs = false;
    for (OpId target : family_.targets) {
      if (target == maximum) continue;
      bool placed = false;
      for (std::size_t g = 0; g < found.size() && !placed; ++g) {
        if (along[g] != axis[target] || waits_for(target, found[g])) continue;
        std::vector<OpId> together = found[g];
        together.push_back(target);
        if (!refusal(together).empty()) continue;
        found[g] = std::move(together);
        placed = true;
      }
      if (!placed) {
        found.push_back({target});
        along.push_back(axis[target]);
      }
      weighs = weighs || (f_.kind(target) == Op::dot_general && weighs_by_softmax(target));
    }
    if (!weighs) return "nothing is weighted by its softmax";
    for (const auto& targets : found) {
      if (std::string why = refusal(targets); !why.empty()) return why;
      lower::AttentionPlan plan;
      AttentionGroup group = group_of(targets);
      lower::plan_attention(group.body("scores", f_), &plan);
      const std::int64_t fixed = plan.extents[plan.fixed], moving = plan.extents[plan.moving];
      if (fixed * moving < limits_.pairs || std::min(fixed, moving) < limits_.length)
        return fmt::format("its scores are {} x {}, below {} of them or {} a side they are cheaper in memory", fixed,
                           moving, limits_.pairs, limits_.length);
      follow_products(&group);
      if (targets != found[0])  // what the softmax makes on its way costs no walk of its own
        for (OpId target : targets)
          if (auto product = find_row_product(f_, family_, uses_, target, body, domain, in_body))
            products->push_back(std::move(*product));
      groups->push_back(std::move(group));
    }
    drop_unread(groups);
    return "";
  }

 private:
  // What a kernel sums for itself alone it does not write.
  void drop_unread(std::vector<AttentionGroup>* groups) const {
    std::set<ValueId> read;
    for (const AttentionGroup& group : *groups) read.insert(group.args.begin(), group.args.end());
    const auto is_ours = [&](OpId op) {
      const ValueId v = f_.result(op);
      return is_target_.contains(op) || family_.domain.contains(v) || family_.rows.contains(v);
    };
    for (auto v = family_.rows.rbegin(); v != family_.rows.rend(); ++v) {
      bool outside = uses_.is_result[v->index];
      for (OpId reader : uses_.readers[v->index])
        outside = outside || !is_ours(reader) ||
                  (!is_target_.contains(reader) && family_.rows.contains(f_.result(reader)) &&
                   read.contains(f_.result(reader)));
      if (outside) read.insert(*v);
    }
    for (AttentionGroup& group : *groups)
      std::erase_if(group.results, [&](ValueId v) { return family_.rows.contains(v) && !read.contains(v); });
    std::erase_if(*groups, [](const AttentionGroup& group) { return group.results.empty(); });
  }

  // The ops that compute the targets from other targets' results, arguments, and what lies in memory anyway.
  AttentionGroup group_of(const std::vector<OpId>& targets) const {
    AttentionGroup group;
    std::vector<OpId> stack;
    // A factor of a product is read from memory, moved as it may be; what is computed for it would be computed for each
    // tile.
    std::set<OpId> moves;
    const auto include = [&](OpId op) {
      if (group.ops.insert(op).second) stack.push_back(op);
    };
    for (OpId target : targets) include(target);
    while (!stack.empty() && group.ops.size() <= max_ops) {
      const OpId op = stack.back();
      stack.pop_back();
      for (ValueId operand : f_.operands(op)) {
        if (f_.is_arg(operand)) continue;
        const OpId def = f_.def(operand);
        if (is_target_.contains(def)) {
          if (std::find(targets.begin(), targets.end(), def) != targets.end()) include(def);
        } else if (family_.domain.contains(operand) || family_.rows.contains(operand)) {
          include(def);
        } else if (f_.kind(op) == Op::dot_general || moves.contains(op)) {
          const bool widens = f_.kind(def) == Op::convert && is_half(f_.type(f_.operand(def, 0)).dtype) &&
                              f_.type(operand).dtype == DType::f32;
          if (lower::is_movement(f_.kind(def)) || widens) {
            moves.insert(def);
            include(def);
          }
        } else if (is_expression(def)) {
          include(def);
        }
      }
    }
    std::set<ValueId> args;
    for (OpId op : group.ops)
      for (ValueId operand : f_.operands(op))
        if (f_.is_arg(operand) || !group.ops.contains(f_.def(operand))) args.insert(operand);
    group.args.assign(args.begin(), args.end());
    for (OpId target : targets) group.results.push_back(f_.result(target));
    std::sort(group.results.begin(), group.results.end());
    return group;
  }
  // Masks, biases, scales: computed again for each score.
  bool is_expression(OpId op) const {
    const Op kind = f_.kind(op);
    if (f_.num_results(op) != 1) return false;
    if (kind == Op::constant) return f_.attrs<Op::constant>(op).value.stores_one_element();
    const Family family = family_of(kind);
    if (family != Family::elementwise && family != Family::compare && kind != Op::iota && !lower::is_movement(kind))
      return false;
    const std::int64_t scores = f_.type(*family_.domain.begin()).size();
    return !lower::is_expensive(kind) || f_.type(f_.result(op)).size() >= scores;
  }

  // Does a target need one of `others`, through whatever lies between in the function?
  bool waits_for(OpId target, const std::vector<OpId>& others) const {
    const std::uint32_t oldest = std::min_element(others.begin(), others.end())->index;
    // Through scores and rows alone is no waiting: those a kernel computes itself, if it can.
    std::vector<std::pair<ValueId, bool>> stack;
    ++walk_;
    const auto push = [&](ValueId v, bool outside) {
      if (f_.is_arg(v) || f_.def(v).index < oldest || seen_[2 * v.index + outside] == walk_) return;
      seen_[2 * v.index + outside] = walk_;
      stack.emplace_back(v, outside);
    };
    for (ValueId operand : f_.operands(target)) push(operand, false);
    while (!stack.empty()) {
      const auto [v, outside] = stack.back();
      stack.pop_back();
      const OpId op = f_.def(v);
      const bool ours = std::find(others.begin(), others.end(), op) != others.end();
      if (ours && outside) return true;
      const bool inside =
          !outside && (family_.domain.contains(v) || family_.rows.contains(v)) && (!is_target_.contains(op) || ours);
      for (ValueId operand : f_.operands(op)) push(operand, !inside);
    }
    return false;
  }

  std::string refusal(const std::vector<OpId>& targets) const {
    lower::AttentionPlan plan;
    return lower::plan_attention(group_of(targets).body("scores", f_), &plan);
  }

  // A product of the exponentials below the maximum, times what is known per row: softmax, and nothing added to it.
  bool weighs_by_softmax(OpId product) const {
    for (ValueId v : f_.operands(product)) {
      if (!family_.domain.contains(v)) continue;
      for (;;) {
        const OpId op = f_.def(v);
        if (f_.kind(op) == Op::exp) return true;
        const Op kind = f_.kind(op);
        if (kind != Op::div && kind != Op::mul && kind != Op::convert && kind != Op::reshape && kind != Op::transpose &&
            kind != Op::select)
          break;
        const std::size_t next = kind == Op::select ? 1 : 0;
        if (!family_.domain.contains(f_.operand(op, next))) break;
        v = f_.operand(op, next);
      }
    }
    return false;
  }

  // A product that is only converted and moved is stored as it is wanted.
  void follow_products(AttentionGroup* group) const {
    for (ValueId& result : group->results) {
      if (f_.kind(f_.def(result)) != Op::dot_general) continue;
      for (;;) {
        if (uses_.is_result[result.index] || uses_.readers[result.index].size() != 1) break;
        const OpId user = uses_.readers[result.index][0];
        const Op kind = f_.kind(user);
        if (kind != Op::convert && kind != Op::transpose && kind != Op::reshape) break;
        AttentionGroup longer = *group;
        longer.ops.insert(user);
        std::replace(longer.results.begin(), longer.results.end(), result, f_.result(user));
        lower::AttentionPlan plan;
        if (!lower::plan_attention(longer.body("scores", f_), &plan).empty()) break;
        group->ops.insert(user);
        result = f_.result(user);
      }
    }
  }

  const Function& f_;
  const ScoreFamily& family_;
  std::set<OpId> is_target_;
  const Uses& uses_;
  const AttentionLimits& limits_;
  mutable std::vector<std::uint32_t> seen_;  // by value, inside and outside: the last walk of waits_for that met it
  mutable std::uint32_t walk_ = 0;
};

}  // namespace

Uses::Uses(const Function& f) : readers(f.num_values()), is_result(f.num_values(), false) {
  f.for_each_op([&](OpId op) {
    for (ValueId operand : f.operands(op))
      if (readers[operand.index].empty() || readers[operand.index].back() != op) readers[operand.index].push_back(op);
  });
  for (ValueId result : f.results()) is_result[result.index] = true;
}

Function AttentionGroup::body(const std::string& name, const Function& f, std::map<OpId, OpId>* in_body) const {
  Builder b(name);
  std::unordered_map<std::uint32_t, ValueId> map;
  for (ValueId arg : args) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  std::vector<ValueId> operands, outs;
  for (OpId op : ops) {  // in program order
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map.at(operand.index));
    map[f.result(op).index] = b.append_copy(f, op, operands);
    if (in_body != nullptr) (*in_body)[op] = b.function().def(map[f.result(op).index]);
  }
  for (ValueId result : results) outs.push_back(map.at(result.index));
  return b.finish(std::move(outs));
}

std::string form_groups(const Function& f, const ScoreFamily& family, const Uses& uses, const AttentionLimits& limits,
                        std::vector<AttentionGroup>* groups, std::vector<RowProduct>* products) {
  return GroupFormer(f, family, uses, limits).run(groups, products);
}

}  // namespace burin::passes::fusion
