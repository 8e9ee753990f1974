// Values computed again in place of being kept, when memory is short.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "passes/lower/program.h"
#include "passes/lower/work.h"

namespace burin::passes {
namespace {

using namespace ir;

constexpr std::size_t max_chain = 8;  // fusions that are run again for one
// Every fusion may be run again a few times; more would only move the same bytes about.
constexpr std::size_t max_runs_again = 4;

/// Ops in the order of the text, which is that of the steps: where values come and go, and where most bytes are alive.
class Lives {
 public:
  explicit Lives(const Function& f) : f_(f), base_(f.num_values()), uses_(f.num_values()), kept_outside_(f.num_values(), false) {
    for (ValueId arg : f.args()) base_[arg.index] = arg, kept_outside_[arg.index] = true;
    f.for_each_op([&](OpId op) {
      for (std::size_t k = 0; k < f.operands(op).size(); ++k) uses_[base_[f.operand(op, k).index].index].push_back(op.index);
      for (std::size_t r = 0; r < f.num_results(op); ++r) {
        const ValueId v = f.result(op, r);
        // A barrier's results are its operands.
        base_[v.index] = f.kind(op) == Op::optimization_barrier ? base_[f.operand(op, r).index] : v;
        if (f.kind(op) == Op::constant) kept_outside_[v.index] = true;
      }
    });
    for (ValueId result : f.results()) kept_outside_[base_[result.index].index] = true;
  }

  bool in_arena(ValueId v) const { return base_[v.index] == v && !kept_outside_[v.index]; }
  ValueId base(ValueId v) const { return base_[v.index]; }
  bool kept_outside(ValueId v) const { return kept_outside_[v.index]; }
  std::size_t last_use(ValueId v) const { return uses_[v.index].empty() ? f_.def(v).index : uses_[v.index].back(); }
  /// The first op after `position` that reads v, which one does.
  std::size_t next_use(ValueId v, std::size_t position) const {
    return *std::upper_bound(uses_[v.index].begin(), uses_[v.index].end(), position);
  }
  /// Waits in memory while op `position` runs, which does not touch it.
  bool waits_at(ValueId v, std::size_t position) const {
    return in_arena(v) && f_.def(v).index < position && last_use(v) > position && !std::binary_search(uses_[v.index].begin(), uses_[v.index].end(), position);
  }

  /// (position, bytes) where most bytes are alive.
  std::pair<std::size_t, std::int64_t> peak() const {
    std::vector<std::int64_t> change(f_.num_ops() + 1, 0);
    for (std::size_t i = 0; i < f_.num_values(); ++i)
      if (const ValueId v{i}; in_arena(v)) {
        change[f_.def(v).index] += planned_bytes(f_.type(v));
        change[last_use(v) + 1] -= planned_bytes(f_.type(v));
      }
    std::pair<std::size_t, std::int64_t> most{0, 0};
    std::int64_t now = 0;
    for (std::size_t position = 0; position < f_.num_ops(); ++position)
      if (now += change[position]; now > most.second) most = {position, now};
    return most;
  }

 private:
  const Function& f_;
  std::vector<ValueId> base_;
  std::vector<std::vector<std::size_t>> uses_;  // by base: positions of the ops that read it
  std::vector<bool> kept_outside_;              // arguments, constants and results
};

/// Work of the fusions that are run again, and how often: by body, which copies share.
class Ledger {
 public:
  bool may_run_again(const Function& body) const {
    const auto found = runs_.find(body.name());
    return found == runs_.end() || found->second < max_runs_again;
  }
  void ran_again(const Function& body) { ++runs_[body.name()]; }
  double work(const Function& body) {
    const auto [found, added] = work_.try_emplace(body.name(), 0);
    if (added) {
      const lower::Work work = lower::work_of(body);
      found->second = static_cast<double>(work.flops) + 4.0 * static_cast<double>(work.bytes);
    }
    return found->second;
  }

 private:
  std::map<std::string, std::size_t> runs_;
  std::map<std::string, double> work_;
};

const Function& body_of(const Function& f, OpId op) { return *f.attrs<Op::fusion>(op).body; }

struct Choice {
  std::vector<OpId> again;  // in order; the results of the last are wanted
  std::size_t before = 0;   // the op that the copies stand before: the first that reads one
};

/// Looks for the most bytes that do not wait at the peak for the least work.
class Search {
 public:
  Search(const Function& f, const Lives& lives, std::size_t peak, Ledger& ledger) : f_(f), lives_(lives), peak_(peak), ledger_(ledger) {}

  std::optional<Choice> best() {
    std::optional<Choice> best;
    double most = 0;
    for (std::size_t i = 0; i < peak_; ++i) {
      Choice choice;
      if (const double gain = consider(OpId{i}, &choice); gain > most) {
        most = gain;
        best = std::move(choice);
      }
    }
    return best;
  }

 private:
  bool may_run_again(OpId op) const {
    if (f_.kind(op) != Op::fusion || !ledger_.may_run_again(body_of(f_, op))) return false;
    for (std::size_t r = 0; r < f_.num_results(op); ++r)
      if (lives_.kept_outside(f_.result(op, r))) return false;  // its memory is the caller's
    return true;
  }

  // Bytes for work; 0 when nothing is gained.
  double consider(OpId op, Choice* choice) {
    std::int64_t gain = 0;
    choice->before = f_.num_ops();
    for (std::size_t r = 0; r < f_.num_results(op); ++r) {
      const ValueId v = f_.result(op, r);
      if (!lives_.waits_at(v, peak_)) continue;
      gain += planned_bytes(f_.type(v));
      choice->before = std::min(choice->before, lives_.next_use(v, peak_));
    }
    std::set<OpId> again;
    if (gain == 0 || !may_run_again(op) || !collect(op, &again)) return 0;
    double work = 1;
    for (OpId each : again) work += ledger_.work(body_of(f_, each));
    choice->again.assign(again.begin(), again.end());
    return static_cast<double>(gain) / work;
  }

  // What has to run again before `op` can: the makers of operands that are gone at the peak. Others only live longer.
  bool collect(OpId op, std::set<OpId>* again) {
    if (!again->insert(op).second) return true;
    if (again->size() > max_chain) return false;
    for (ValueId operand : f_.operands(op)) {
      const ValueId base = lives_.base(operand);
      if (lives_.kept_outside(base) || lives_.last_use(base) >= peak_) continue;
      if (base != operand || !may_run_again(f_.def(base)) || !collect(f_.def(base), again)) return false;
    }
    return true;
  }

  const Function& f_;
  const Lives& lives_;
  const std::size_t peak_;
  Ledger& ledger_;
};

Function run_again(const Function& f, const Choice& choice) {
  Rewriter r(f);
  f.for_each_op([&](OpId op) {
    if (op.index == choice.before) {
      std::vector<std::pair<OpId, ValueId>> copies;  // first results
      for (OpId again : choice.again) {
        std::vector<ValueId> operands = r.operands(again);
        for (std::size_t k = 0; k < operands.size(); ++k)
          for (const auto& [made, first] : copies)
            if (f.def(f.operand(again, k)) == made) operands[k] = ValueId{first.index + (f.operand(again, k).index - f.result(made).index)};
        copies.emplace_back(again, r.b.append_copy(f, again, operands));
      }
      r.replace_results(choice.again.back(), copies.back().second);
    }
    r.copy(op);
  });
  return r.finish();
}

}  // namespace

std::int64_t held_bytes(const Program& program) {
  std::int64_t bytes = program.arena_bytes;
  for (std::size_t i = 0; i < program.outputs.size(); ++i)
    if (program.aliases[i] < 0) bytes += program.outputs[i].bytes();
  for (const KeptValue& kept : program.kept) bytes += kept.type.bytes();
  return bytes;
}

Function rematerialise(const Function& fused, std::int64_t budget, const std::function<Program(const Function&)>& plan) {
  Ledger ledger;
  Function now = fused, best = fused;
  std::int64_t least = held_bytes(plan(fused)), held = least;
  while (held > budget) {
    // The plan knows more than the values: what kernels need for themselves, and gaps.
    const std::int64_t beside = held - Lives(now).peak().second;
    bool changed = false;
    for (;;) {
      const Lives lives(now);
      const auto [peak, bytes] = lives.peak();
      if (changed && bytes + beside <= budget) break;
      const std::optional<Choice> choice = Search(now, lives, peak, ledger).best();
      if (!choice) break;
      for (OpId again : choice->again) ledger.ran_again(body_of(now, again));
      now = run_again(now, *choice);
      changed = true;
    }
    if (!changed) break;
    held = held_bytes(plan(now));
    if (held < least) {
      least = held;
      best = now;
    }
  }
  return best;
}

}  // namespace burin::passes
