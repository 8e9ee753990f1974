#include "passes/fuse/fuse.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/check.h"
#include "ir/builder.h"
#include "passes/fuse/attention.h"
#include "passes/fuse/clusters.h"
#include "passes/fuse/prologue.h"
#include "passes/fuse/saved.h"
#include "passes/lower/fusion_check.h"
#include "passes/lower/nest.h"
#include "passes/lower/rows_plan.h"

namespace burin::passes {
namespace fusion {
namespace {

// Expressions larger than this are materialised: what is computed again at each user stays small.
constexpr std::uint32_t max_expression = 64;
constexpr std::uint32_t max_shared_expensive = 3;
// Elements from which on work of their own is not left to the one task that sums a single row: several tasks' share.
constexpr std::int64_t large_row = 8 * lower::task_grain;
constexpr std::size_t max_values = 24;  // per cluster: each may be a kernel parameter
constexpr std::size_t max_readers = 8;  // of one array that a reduction asks to join, the latest: keeps fusion linear

bool is_large_constant(const Function& f, OpId op) {
  return f.kind(op) == Op::constant && !f.attrs<Op::constant>(op).value.stores_one_element();
}

class Fuser {
 public:
  Fuser(const Function& f, bool enabled) : c_(f), f_(f), enabled_(enabled) {}

  Function run() {
    materialise();
    place_anchors();
    if (enabled_) join_rows();
    place_values();
    if (enabled_) join_readers();
    if (enabled_) join_loops();
    return rebuild();
  }

 private:
  // What v's base in memory is when its users read it through movement ops only.
  ValueId base_of(ValueId v) const {
    while (!f_.is_arg(v) && lower::is_movement(f_.kind(f_.def(v)))) v = f_.operand(f_.def(v), 0);
    return v;
  }

  void materialise() {
    std::vector<std::uint32_t> size(f_.num_values(), 0), dear(f_.num_values(), 0);
    std::vector<std::uint32_t> users(f_.num_values(), 0);
    f_.for_each_op([&](OpId op) {
      std::vector<ValueId> distinct(f_.operands(op).begin(), f_.operands(op).end());
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      for (ValueId operand : distinct) ++users[operand.index];
    });
    for (ValueId result : f_.results())
      if (!f_.is_arg(result)) c_.materialise(result);
    std::vector<bool> must(f_.num_values(), false), multiplied(f_.num_values(), false);
    f_.for_each_op([&](OpId op) {
      const Op kind = f_.kind(op);
      if (kind == Op::dot_general)
        for (ValueId operand : f_.operands(op)) multiplied[base_of(operand).index] = true;
      if (kind == Op::optimization_barrier || kind == Op::fusion)
        for (ValueId operand : f_.operands(op)) must[operand.index] = true;
    });
    std::vector<bool> read_from_memory(f_.num_values());
    for (std::size_t v = 0; v < read_from_memory.size(); ++v) read_from_memory[v] = must[v] || multiplied[v];
    if (enabled_)
      for (ValueId v : saved_values(f_, read_from_memory)) must[v.index] = true;
    const Prologues prologues(c_);
    f_.for_each_op([&](OpId op) {
      const Op kind = f_.kind(op);
      for (std::size_t r = 0; r < f_.num_results(op); ++r) {
        const ValueId v = f_.result(op, r);
        if (is_anchor(kind) || is_large_constant(f_, op) || !enabled_) {
          const bool scalar_constant = kind == Op::constant && !is_large_constant(f_, op);
          if (!scalar_constant || c_.is_result(v) || must[v.index]) c_.materialise(v);
          continue;
        }
        std::uint32_t n = 1, expensive = lower::is_expensive(kind) ? 1 : 0;
        for (ValueId operand : f_.operands(op)) {
          if (c_.is_leaf(operand)) continue;
          n += size[operand.index];
          expensive += dear[operand.index];
        }
        bool here = c_.materialised(v) || must[v.index] || n > max_expression;
        if (!here && multiplied[v.index]) {
          std::vector<ValueId> smaller;
          here = !prologues.wanted(v) || !prologues.cheap(v, smaller);
          for (ValueId value : smaller)
            if (!here) c_.materialise(value);
        } else if (!here && users[v.index] > 1 && kind != Op::constant && kind != Op::iota) {
          // Computed for each user again unless that reads several large arrays or costs much.
          std::size_t large = 0;
          for (ValueId leaf : c_.leaves(v)) large += f_.type(leaf).size() >= f_.type(v).size() && f_.type(v).size() > 1;
          here = (large > 1 && family_of(kind) == Family::elementwise) || expensive > max_shared_expensive;
        }
        if (here) {
          c_.materialise(v);
        } else {
          size[v.index] = n;
          dear[v.index] = expensive;
        }
      }
    });
  }

  void place_anchors() {
    f_.for_each_op([&](OpId op) {
      const Op kind = f_.kind(op);
      if (f_.num_results(op) == 0) return;
      const ValueId v = f_.result(op);
      if (kind == Op::optimization_barrier || kind == Op::fusion) {
        const ClusterId cluster = c_.open(Kind::barrier);
        for (std::size_t r = 0; r < f_.num_results(op); ++r) c_.add(cluster, f_.result(op, r));
      } else if (is_large_constant(f_, op)) {
        c_.add(c_.open(Kind::constant), v);
      } else if (kind == Op::dot_general) {
        c_.add(c_.open(is_float(f_.type(v).dtype) ? Kind::matmul : Kind::loop), v);
      } else if (kind == Op::scatter) {
        c_.add(c_.open(Kind::scatter), v);
      } else if (is_anchor(kind)) {
        c_.add(c_.open(Kind::rows), v);
        reductions_.push_back(op);
      }
    });
  }

  bool rows_work(const std::vector<ClusterId>& clusters, const std::vector<ValueId>& extra) {
    std::vector<ValueId> args, results;
    lower::RowsPlan plan;
    return lower::plan_rows(c_.body(clusters, extra, "rows", &args, &results), &plan);
  }

  // Reductions of one domain that feed one another, or read the same large array, share a kernel.
  void join_rows() {
    std::map<ValueId, std::vector<ClusterId>> readers;  // by large leaf
    for (OpId op : reductions_) {
      const ValueId v = f_.result(op);
      const Shape& domain = f_.type(f_.operand(op, 0)).shape;
      std::vector<ClusterId> candidates;
      const auto consider = [&](ClusterId cluster) {
        if (cluster.valid() && c_.all[cluster.index].kind == Kind::rows && cluster != c_.of(v) &&
            std::find(candidates.begin(), candidates.end(), cluster) == candidates.end())
          candidates.push_back(cluster);
      };
      for (ClusterId cluster : c_.nearest(v)) consider(cluster);
      for (ValueId leaf : c_.leaves(v))
        if (f_.type(leaf).size() >= domain.size())
          for (ClusterId cluster : readers[leaf]) consider(cluster);
      for (std::size_t i = candidates.size(); i-- > 0;) {
        const ClusterId other = candidates[i], mine = c_.of(v);
        if (c_.all[other.index].values.empty() || other == mine || c_.all[other.index].values.size() >= max_values)
          continue;
        if (f_.type(f_.operand(f_.def(c_.all[other.index].values[0]), 0)).shape != domain) continue;
        if (c_.would_cycle(other, mine)) continue;
        // What lies between the two has no kernel of its own any more: it would wait for this one and this one for it.
        const std::vector<ValueId> between = c_.between(other, mine);
        if (!rows_work({other, mine}, between)) continue;
        c_.merge(other, mine);
        for (ValueId value : between) c_.add(other, value);
      }
      for (ValueId leaf : c_.leaves(v)) {
        if (f_.type(leaf).size() < domain.size()) continue;
        auto& of_leaf = readers[leaf];
        of_leaf.erase(std::remove(of_leaf.begin(), of_leaf.end(), c_.of(v)), of_leaf.end());
        of_leaf.push_back(c_.of(v));
        if (of_leaf.size() > max_readers) of_leaf.erase(of_leaf.begin());
      }
    }
  }

  // Does v follow element by element from a value of the cluster, in one consistent place?
  bool follows_matmul(ClusterId cluster, ValueId v) {
    const ValueId dot = c_.all[cluster.index].values[0];
    if (f_.type(v).size() != f_.type(dot).size()) return false;
    std::vector<ValueId> args, results;
    const Function body = c_.body({cluster}, {v}, "matmul", &args, &results);
    return lower::epilogue_is_aligned(body);
  }

  void place_values() {
    f_.for_each_op([&](OpId op) {
      for (std::size_t r = 0; r < f_.num_results(op); ++r) {
        const ValueId v = f_.result(op, r);
        if (!c_.materialised(v) || c_.of(v).valid()) continue;
        if (enabled_ && join_anchor(v)) continue;
        c_.add(c_.open(Kind::loop), v);
      }
    });
  }

  bool join_anchor(ValueId v) {
    // The youngest first: what v follows from directly.
    std::vector<ClusterId> candidates;
    const auto& leaves = c_.leaves(v);
    for (std::size_t i = leaves.size(); i-- > 0;) {
      const ClusterId cluster = f_.is_arg(leaves[i]) ? ClusterId{} : c_.of(leaves[i]);
      if (cluster.valid() && std::find(candidates.begin(), candidates.end(), cluster) == candidates.end())
        candidates.push_back(cluster);
    }
    for (ClusterId cluster : candidates) {
      const Kind kind = c_.all[cluster.index].kind;
      if (c_.all[cluster.index].values.size() >= max_values || c_.would_cycle(cluster, v)) continue;
      if (kind == Kind::rows && f_.type(v).size() >= large_row && sums_one_row(cluster)) continue;
      if (kind == Kind::rows && !rows_work({cluster}, {v})) continue;
      if ((kind == Kind::matmul || kind == Kind::scatter) && !follows_matmul(cluster, v)) continue;
      if (kind == Kind::loop && f_.type(c_.all[cluster.index].values[0]).size() != f_.type(v).size()) continue;
      if (kind == Kind::loop && !loop_is_aligned(cluster, v)) continue;
      if (kind == Kind::barrier || kind == Kind::constant) continue;
      c_.add(cluster, v);
      return true;
    }
    return false;
  }

  // In a loop every value that another needs is computed again at the position where it is needed, so any member fits;
  // what has to be watched is only that nothing large is computed many times over.
  bool loop_is_aligned(ClusterId cluster, ValueId v, std::size_t max_ops = 4 * max_expression) {
    std::vector<ValueId> args, results;
    const Function body = c_.body({cluster}, v.valid() ? std::vector{v} : std::vector<ValueId>{}, "loop", &args, &results);
    if (body.num_ops() > max_ops) return false;
    bool good = true;
    body.for_each_op([&](OpId op) { good = good && !is_anchor(body.kind(op)) && body.kind(op) != Op::gather; });
    return good;
  }

  // What is computed for one rows kernel alone, element by element of its domain, is computed there.
  void join_readers() {
    for (std::size_t i = c_.all.size(); i-- > 0;) {  // the last first: what that one read may follow it
      const ClusterId mine{i};
      if (c_.all[i].kind != Kind::loop || c_.all[i].values.empty()) continue;
      const ClusterId reader = c_.only_reader(mine);
      if (!reader.valid() || c_.all[reader.index].kind != Kind::rows) continue;
      if (c_.all[reader.index].values.size() + c_.all[i].values.size() > max_values) continue;
      const std::int64_t size = domain_size(reader);
      bool fits = true;
      for (ValueId v : c_.all[i].values) fits = fits && f_.type(v).size() == size;
      if (!fits || !loop_is_aligned(mine, {}, max_expression) || c_.would_cycle(reader, mine)) continue;
      if (rows_work({reader, mine}, {})) c_.merge(reader, mine);
    }
  }

  // Its kernel is one task.
  bool sums_one_row(ClusterId rows) const {
    for (ValueId v : c_.all[rows.index].values)
      if (family_of(f_.kind(f_.def(v))) == Family::reduce) return f_.type(v).size() == 1;
    return false;
  }

  std::int64_t domain_size(ClusterId rows) const {
    for (ValueId v : c_.all[rows.index].values)
      if (const OpId op = f_.def(v); family_of(f_.kind(op)) == Family::reduce) return f_.type(f_.operand(op, 0)).size();
    return -1;
  }

  // Loops over equally many elements that read a common large array become one.
  void join_loops() {
    std::map<std::pair<ValueId, std::int64_t>, ClusterId> by_leaf;
    for (std::size_t i = 0; i < c_.all.size(); ++i) {
      const ClusterId mine{i};
      if (c_.all[i].kind != Kind::loop || c_.all[i].values.empty()) continue;
      const std::int64_t size = f_.type(c_.all[i].values[0]).size();
      ClusterId now = mine;
      const std::vector<ValueId> values = c_.all[i].values;
      for (ValueId v : values)
        for (ValueId leaf : c_.leaves(v)) {
          if (f_.type(leaf).size() != size || size <= 1) continue;
          const auto [found, added] = by_leaf.try_emplace({leaf, size}, now);
          const ClusterId other = found->second;
          if (added || other == now || c_.all[other.index].values.empty()) {
            found->second = now;
            continue;
          }
          if (c_.all[other.index].values.size() + c_.all[now.index].values.size() > max_values) continue;
          if (!loop_is_aligned(other, {}) || !loop_is_aligned(now, {}) || c_.would_cycle(other, now)) continue;
          c_.merge(other, now);
          now = other;
        }
    }
  }

  // Clusters in an order that respects what they read, the oldest first among those that may go.
  std::vector<ClusterId> order() {
    const std::size_t n = c_.all.size();
    std::vector<std::set<ClusterId>> readers(n);
    std::vector<std::size_t> waiting(n, 0);
    for (std::size_t i = 0; i < n; ++i)
      for (ValueId v : c_.all[i].values)
        for (ValueId leaf : c_.leaves(v)) {
          const ClusterId other = f_.is_arg(leaf) ? ClusterId{} : c_.of(leaf);
          if (other.valid() && other.index != i && readers[other.index].insert(ClusterId{i}).second) ++waiting[i];
        }
    const auto later = [&](ClusterId a, ClusterId b) { return c_.all[a.index].values[0] > c_.all[b.index].values[0]; };
    std::priority_queue<ClusterId, std::vector<ClusterId>, decltype(later)> ready(later);
    std::size_t expected = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (c_.all[i].values.empty()) continue;
      ++expected;
      if (waiting[i] == 0) ready.push(ClusterId{i});
    }
    std::vector<ClusterId> done;
    while (!ready.empty()) {
      const ClusterId next = ready.top();
      ready.pop();
      done.push_back(next);
      for (ClusterId reader : readers[next.index])
        if (--waiting[reader.index] == 0) ready.push(reader);
    }
    BURIN_CHECK(done.size() == expected, "kernels that wait for one another");
    return done;
  }

  Function rebuild() {
    Builder b(f_.name());
    std::vector<ValueId> map(f_.num_values());
    for (ValueId arg : f_.args()) map[arg.index] = b.add_arg(f_.type(arg), f_.value_name(arg));
    for (ClusterId cluster : order()) {
      const Kind kind = c_.all[cluster.index].kind;
      const OpId first = f_.def(c_.all[cluster.index].values[0]);
      if (kind == Kind::barrier || kind == Kind::constant) {
        std::vector<ValueId> operands;
        for (ValueId operand : f_.operands(first)) operands.push_back(map[operand.index]);
        const ValueId out = b.append_copy(f_, first, operands);
        for (std::size_t r = 0; r < f_.num_results(first); ++r) map[f_.result(first, r).index] = ValueId{out.index + r};
        continue;
      }
      std::vector<ValueId> args, results, operands;
      const std::string label = std::string(name(kind)) + "_" + std::to_string(count_++);
      Function body = c_.body({cluster}, {}, label, &args, &results);
      if (results.empty()) continue;  // nobody needs it
      for (ValueId arg : args) operands.push_back(map[arg.index]);
      b.set_location(f_.location(first));
      const std::vector<ValueId> outs =
          b.call(Op::fusion, operands, {Str(name(kind)), std::make_shared<const Function>(std::move(body))});
      for (std::size_t i = 0; i < outs.size(); ++i) {
        map[results[i].index] = outs[i];
        if (const auto given = f_.value_name(results[i]); !given.empty()) b.set_value_name(outs[i], given);
      }
    }
    std::vector<ValueId> results;
    for (ValueId result : f_.results()) results.push_back(map[result.index]);
    return b.finish(std::move(results));
  }

  Clusters c_;
  const Function& f_;
  const bool enabled_;
  std::vector<OpId> reductions_;
  std::size_t count_ = 0;
};

}  // namespace
}  // namespace fusion

bool is_fused(const ir::Function& f) {
  bool any = false, all = true;
  f.for_each_op([&](ir::OpId op) {
    const ir::Op kind = f.kind(op);
    any = any || kind == ir::Op::fusion;
    all = all && (kind == ir::Op::fusion || kind == ir::Op::optimization_barrier || kind == ir::Op::constant);
  });
  return any && all;
}

ir::Function fuse(const ir::Function& f, const FuseOptions& options) {
  if (is_fused(f)) return f;
  if (!options.enabled) return fusion::Fuser(f, false).run();
  const fusion::AttentionLimits limits =
      options.small_attention ? fusion::AttentionLimits{.pairs = 1, .length = 1} : fusion::AttentionLimits{};
  return fusion::Fuser(fusion::take_attentions(f, nullptr, limits), true).run();
}

}  // namespace burin::passes
