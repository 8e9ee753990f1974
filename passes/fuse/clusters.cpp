#include "passes/fuse/clusters.h"

#include <algorithm>

#include "base/check.h"
#include "ir/builder.h"

namespace burin::passes::fusion {

std::string_view name(Kind kind) {
  static constexpr std::string_view names[] = {"loop", "rows", "matmul", "scatter", "barrier", "constant"};
  return names[static_cast<int>(kind)];
}

Clusters::Clusters(const Function& function)
    : f(function),
      of_(f.num_values()),
      materialised_(f.num_values(), false),
      users_(f.num_values()),
      is_result_(f.num_values(), false),
      leaves_(f.num_values()),
      leaves_known_(f.num_values(), false) {
  f.for_each_op([&](OpId op) {
    for (ValueId operand : f.operands(op)) users_[operand.index].push_back(op);
  });
  for (ValueId result : f.results()) is_result_[result.index] = true;
}

const std::vector<ValueId>& Clusters::leaves(ValueId v) {
  if (leaves_known_[v.index]) return leaves_[v.index];
  std::vector<ValueId> found, stack;
  std::set<ValueId> seen;
  const auto expand = [&](ValueId value) {
    for (ValueId operand : f.operands(f.def(value)))
      if (seen.insert(operand).second) stack.push_back(operand);
  };
  if (!f.is_arg(v)) expand(v);
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    if (is_leaf(next))
      found.push_back(next);
    else
      expand(next);
  }
  std::sort(found.begin(), found.end());
  leaves_known_[v.index] = true;
  return leaves_[v.index] = std::move(found);
}

ClusterId Clusters::open(Kind kind) {
  all.push_back({kind, {}});
  return ClusterId{all.size() - 1};
}

void Clusters::add(ClusterId cluster, ValueId v) {
  BURIN_CHECK(!of_[v.index].valid() && materialised_[v.index]);
  of_[v.index] = cluster;
  auto& values = all[cluster.index].values;
  values.insert(std::upper_bound(values.begin(), values.end(), v), v);
}

// A value that has no cluster yet will be computed by one of those around it: what it reads counts as read by its
// reader.
std::set<ClusterId> Clusters::read_by(ValueId v) {
  std::set<ClusterId> found;
  std::set<ValueId> seen = {v};
  std::vector<ValueId> stack = {v};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    for (ValueId leaf : leaves(next)) {
      if (f.is_arg(leaf) || !seen.insert(leaf).second) continue;
      if (of_[leaf.index].valid())
        found.insert(of_[leaf.index]);
      else
        stack.push_back(leaf);
    }
  }
  return found;
}

// Depth-first over "reads from": does `from` read, through others, what `target` computes?
bool Clusters::reaches(ClusterId from, ClusterId target) {
  std::set<ClusterId> seen = {from};
  std::vector<ClusterId> stack = {from};
  while (!stack.empty()) {
    const ClusterId cluster = stack.back();
    stack.pop_back();
    for (ValueId v : all[cluster.index].values)
      for (ClusterId next : read_by(v)) {
        if (next == target) return true;
        if (seen.insert(next).second) stack.push_back(next);
      }
  }
  return false;
}

bool Clusters::would_cycle(ClusterId cluster, ValueId v) {
  for (ClusterId other : read_by(v))
    if (other != cluster && reaches(other, cluster)) return true;
  return false;
}

bool Clusters::would_cycle(ClusterId a, ClusterId b) {
  // Each may read the other directly; a path through a third cluster closes a circle.
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
    for (ValueId v : all[from.index].values)
      for (ClusterId other : read_by(v))
        if (other != a && other != b && reaches(other, to)) return true;
  return false;
}

void Clusters::merge(ClusterId into, ClusterId from) {
  for (ValueId v : all[from.index].values) of_[v.index] = into;
  auto& values = all[into.index].values;
  values.insert(values.end(), all[from.index].values.begin(), all[from.index].values.end());
  std::sort(values.begin(), values.end());
  all[from.index].values.clear();
}

bool Clusters::used_outside(ClusterId cluster, ValueId v) {
  if (is_result_[v.index]) return true;
  // Follow users through expressions to the materialised values that read v.
  std::vector<ValueId> stack = {v};
  std::set<ValueId> seen = {v};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    for (OpId user : users_[next.index])
      for (std::size_t r = 0; r < f.num_results(user); ++r) {
        const ValueId result = f.result(user, r);
        if (materialised_[result.index]) {
          if (of_[result.index] != cluster) return true;
        } else if (seen.insert(result).second) {
          stack.push_back(result);
        }
      }
  }
  return false;
}

Function Clusters::body(ClusterId cluster, ValueId extra, const std::string& name, std::vector<ValueId>* args,
                        std::vector<ValueId>* results) {
  std::vector<ValueId> values = all[cluster.index].values;
  if (extra.valid()) values.push_back(extra);
  std::set<ValueId> needed;
  std::set<ValueId> own(values.begin(), values.end());
  std::vector<ValueId> stack = values;
  args->clear();
  results->clear();
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (!needed.insert(v).second) continue;
    if (is_leaf(v) && !own.contains(v)) {
      args->push_back(v);
      continue;
    }
    for (ValueId operand : f.operands(f.def(v))) stack.push_back(operand);
  }
  std::sort(args->begin(), args->end());
  Builder b(name);
  std::vector<ValueId> map(f.num_values());
  for (ValueId arg : *args) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  std::vector<ValueId> operands;
  for (ValueId v : needed) {  // in program order
    if (map[v.index].valid()) continue;
    const OpId op = f.def(v);
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    map[v.index] = b.append_copy(f, op, operands);
  }
  std::vector<ValueId> outs;
  for (ValueId v : values)
    if ((extra.valid() && v == extra) || used_outside(cluster, v)) {
      results->push_back(v);
      outs.push_back(map[v.index]);
    }
  return b.finish(std::move(outs));
}

}  // namespace burin::passes::fusion
