#include "tests/support/task_work.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>

namespace burin::test {
namespace {

using namespace ir;

class Counter {
 public:
  Counter(const Kernel& kernel, std::optional<std::int64_t> bound)
      : kernel_(kernel), bound_(bound), values_(kernel.var_names.size()) {}

  double task(std::int64_t index) {
    for (std::size_t i = kernel_.tasks.size(); i-- > 0; index /= kernel_.tasks[i].second)
      values_[kernel_.tasks[i].first.index] = index % kernel_.tasks[i].second;
    return count(kernel_.body);
  }

 private:
  // None where it hangs on data.
  std::optional<std::int64_t> value(const Affine& affine) const {
    std::int64_t sum = affine.constant;
    for (const auto& [var, coefficient] : affine.terms) {
      if (!values_[var.index]) return std::nullopt;
      sum += coefficient * *values_[var.index];
    }
    return sum;
  }

  static bool mentions(const std::vector<Affine>& all, VarId var) {
    return std::any_of(all.begin(), all.end(), [&](const Affine& a) { return a.coefficient(var) != 0; });
  }
  static bool depends_on(const Block& block, VarId var) {
    return std::any_of(block.begin(), block.end(), [&](const Stmt& s) {
      const bool own = s.kind == StmtKind::when ? mentions(s.conditions, var)
                       : s.kind == StmtKind::loop || s.kind == StmtKind::mma ? mentions(s.hi, var) || s.lo.coefficient(var) != 0
                                                                             : false;
      return own || depends_on(s.body, var);
    });
  }

  double count(const Block& block) {
    double all = 0;
    for (const Stmt& s : block) all += count(s);
    return all;
  }

  std::int64_t end(const Stmt& s) const {
    std::int64_t least = INT64_MAX;
    for (const Affine& hi : s.hi) least = std::min(least, value(hi).value_or(INT64_MAX));
    return least;
  }

  double count(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::loop: {
        const std::int64_t first = value(s.lo).value_or(0), last = end(s);
        if (first >= last) return 0;
        if (!depends_on(s.body, s.var)) {
          const std::int64_t runs = last - first;
          return static_cast<double>(s.loop_kind == LoopKind::vector ? (runs + s.width - 1) / s.width : runs) * count(s.body);
        }
        double all = 0;
        for (std::int64_t i = first; i < last; i += s.loop_kind == LoopKind::vector ? s.width : 1) {
          values_[s.var.index] = i;
          all += count(s.body);
        }
        values_[s.var.index].reset();
        return all;
      }
      case StmtKind::when:
        for (const Affine& condition : s.conditions)
          if (value(condition).value_or(0) < 0) return 0;
        return count(s.body);
      case StmtKind::mma: {
        const Shape& tile = kernel_.buffers[s.buffer.index].shape;
        return static_cast<double>(tile.size()) / 16 * static_cast<double>(std::max<std::int64_t>(end(s), 0));
      }
      case StmtKind::bind:
        if (bound_) values_[s.var.index] = std::clamp<std::int64_t>(*bound_, 0, s.extent - 1);
        return 1;
      default: return 1;
    }
  }

  const Kernel& kernel_;
  const std::optional<std::int64_t> bound_;
  std::vector<std::optional<std::int64_t>> values_;
};

}  // namespace

std::vector<double> task_work(const Kernel& kernel, std::optional<std::int64_t> bound) {
  Counter counter(kernel, bound);
  std::vector<double> work;
  for (std::int64_t task = 0; task < kernel.num_tasks(); ++task) work.push_back(counter.task(task));
  return work;
}

double unevenness(const Program& program, int workers, double least_ns) {
  double together = 0, even = 0;
  for (std::size_t first = 0, last; first < program.steps.size(); first = last) {
    double cost = 0;
    for (last = first; last < program.steps.size() && program.steps[last].after <= first; ++last)
      cost += program.kernels[program.steps[last].kernel].cost;
    if (cost < least_ns) continue;
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    for (int i = 0; i < workers; ++i) free_at.push(0);
    double end = 0, all = 0;
    for (std::size_t step = first; step < last; ++step)
      for (const double work : task_work(program.kernels[program.steps[step].kernel])) {
        const double done = free_at.top() + work;
        free_at.pop();
        free_at.push(done);
        end = std::max(end, done);
        all += work;
      }
    together += end;
    even += all / workers;
  }
  return even > 0 ? together / even : 1;
}

}  // namespace burin::test
