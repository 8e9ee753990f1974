#include "passes/fuse/clusters.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "ir/builder.h"

namespace burin::passes::fusion {

constexpr std::size_t max_walk = 64;

std::string_view name(Kind kind) {
  static constexpr std::string_view names[] = {"loop", "rows", "matmul", "scatter", "barrier", "constant"};
  return names[static_cast<int>(kind)];
}

bool is_anchor(Op op) {
  return family_of(op) == Family::reduce || op == Op::dot_general || op == Op::scatter ||
         op == Op::optimization_barrier || op == Op::fusion;
}

Clusters::Clusters(const Function& function)
    : f(function),
      of_(f.num_values()),
      materialised_(f.num_values(), false),
      users_(f.num_values()),
      is_result_(f.num_values(), false),
      youngest_(f.num_values()),
      visited_(f.num_values(), 0),
      leaves_(f.num_values()),
      leaves_known_(f.num_values(), false) {
  f.for_each_op([&](OpId op) {
    for (ValueId operand : f.operands(op)) users_[operand.index].push_back(op);
  });
  for (ValueId result : f.results()) is_result_[result.index] = true;
  std::iota(youngest_.begin(), youngest_.end(), 0);
}

// A value that is stored for a later one's sake is a leaf of those between.
void Clusters::materialise(ValueId v) {
  materialised_[v.index] = true;
  for (std::size_t later = v.index + std::size_t{1}; later < end_of_known_; ++later) leaves_known_[later] = false;
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
  end_of_known_ = std::max(end_of_known_, v.index + std::size_t{1});
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
  raise(cluster);
}

// What one value of a cluster depends on, all of them wait for, and so do their users.
void Clusters::raise(ClusterId cluster) {
  std::vector<ValueId> stack;
  const auto raise_value = [&](ValueId v, std::size_t youngest) {
    if (youngest_[v.index] >= youngest) return;
    youngest_[v.index] = youngest;
    stack.push_back(v);
  };
  const auto raise_cluster = [&](ClusterId id, std::size_t youngest) {
    for (ValueId v : all[id.index].values) raise_value(v, youngest);
  };
  std::size_t youngest = 0;
  for (ValueId v : all[cluster.index].values) youngest = std::max(youngest, youngest_[v.index]);
  raise_cluster(cluster, youngest);
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    for (OpId user : users_[v.index])
      for (std::size_t r = 0; r < f.num_results(user); ++r) {
        const ValueId result = f.result(user, r);
        raise_value(result, youngest_[v.index]);
        if (of_[result.index].valid()) raise_cluster(of_[result.index], youngest_[result.index]);
      }
  }
}

// A value that has no cluster yet will be computed by one of those around it: what it reads counts as read by its
// reader.
std::vector<ClusterId> Clusters::read_by(ValueId v, std::size_t max_steps) {
  std::vector<ClusterId> found;
  std::vector<ValueId> stack = {v};
  ++visit_;
  for (std::size_t step = 0; step < max_steps && !stack.empty(); ++step) {
    const ValueId next = stack.back();
    stack.pop_back();
    for (ValueId leaf : leaves(next)) {
      if (f.is_arg(leaf) || visited_[leaf.index] == visit_) continue;
      visited_[leaf.index] = visit_;
      if (of_[leaf.index].valid())
        found.push_back(of_[leaf.index]);
      else
        stack.push_back(leaf);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<ClusterId> Clusters::nearest(ValueId v) { return read_by(v, max_walk); }

// Depth-first over "reads from": does `from` read, through others, what `target` computes? Clusters that depend on
// nothing as young as the target are not entered, which keeps the walk to the stretch of the program between the two. A
// longer walk than max_walk says yes: two clusters that far apart stay two, and fusion stays linear in the length of
// the program.
bool Clusters::reaches(ClusterId from, ClusterId target) {
  const std::size_t oldest = all[target.index].values.front().index;
  std::set<ClusterId> seen = {from};
  std::vector<ClusterId> stack = {from};
  while (!stack.empty()) {
    const ClusterId cluster = stack.back();
    stack.pop_back();
    if (seen.size() > max_walk) return true;
    if (youngest_[all[cluster.index].values.front().index] < oldest) continue;  // raise keeps all of a cluster alike
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
  raise(into);
}

std::vector<ValueId> Clusters::between(ClusterId a, ClusterId b) {
  const std::size_t oldest = std::min(all[a.index].values.front(), all[b.index].values.front()).index;
  std::vector<ValueId> stack = all[a.index].values, found;
  stack.insert(stack.end(), all[b.index].values.begin(), all[b.index].values.end());
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    for (ValueId leaf : leaves(next)) {
      if (f.is_arg(leaf) || of_[leaf.index].valid() || youngest_[leaf.index] < oldest || !seen.insert(leaf).second) continue;
      stack.push_back(leaf);
      const std::vector<ClusterId> read = read_by(leaf);
      if (std::binary_search(read.begin(), read.end(), a) || std::binary_search(read.begin(), read.end(), b))
        found.push_back(leaf);
    }
  }
  return found;
}

// Follows users through expressions to the materialised values that read v; true when the cluster of one passes the test.
bool Clusters::any_reader(ValueId v, const std::function<bool(ClusterId)>& test) {
  std::vector<ValueId> stack = {v};
  std::set<ValueId> seen = {v};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    for (OpId user : users_[next.index])
      for (std::size_t r = 0; r < f.num_results(user); ++r) {
        const ValueId result = f.result(user, r);
        if (materialised_[result.index]) {
          if (test(of_[result.index])) return true;
        } else if (seen.insert(result).second) {
          stack.push_back(result);
        }
      }
  }
  return false;
}

bool Clusters::used_outside(const std::vector<ClusterId>& clusters, ValueId v) {
  return is_result_[v.index] || any_reader(v, [&](ClusterId reader) {
           return std::find(clusters.begin(), clusters.end(), reader) == clusters.end();
         });
}

ClusterId Clusters::only_reader(ClusterId cluster) {
  ClusterId only;
  const auto another = [&](ClusterId reader) {
    if (reader == cluster) return false;
    if (!only.valid()) only = reader;
    return reader != only;
  };
  for (ValueId v : all[cluster.index].values)
    if (is_result_[v.index] || any_reader(v, another)) return {};
  return only;
}

Function Clusters::body(const std::vector<ClusterId>& clusters, const std::vector<ValueId>& extra,
                        const std::string& name, std::vector<ValueId>* args, std::vector<ValueId>* results) {
  std::vector<ValueId> values;
  for (ClusterId cluster : clusters)
    values.insert(values.end(), all[cluster.index].values.begin(), all[cluster.index].values.end());
  std::sort(values.begin(), values.end());
  values.insert(values.end(), extra.begin(), extra.end());
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
  std::unordered_map<std::uint32_t, ValueId> map;
  for (ValueId arg : *args) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  std::vector<ValueId> operands;
  for (ValueId v : needed) {  // in program order
    if (map.contains(v.index)) continue;
    const OpId op = f.def(v);
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    map[v.index] = b.append_copy(f, op, operands);
  }
  std::vector<ValueId> outs;
  for (ValueId v : values)
    if (std::find(extra.begin(), extra.end(), v) != extra.end() || used_outside(clusters, v)) {
      results->push_back(v);
      outs.push_back(map[v.index]);
    }
  return b.finish(std::move(outs));
}

}  // namespace burin::passes::fusion
