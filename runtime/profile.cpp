#include "runtime/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace burin::runtime {

std::string print(const Profile& profile) {
  const double runs = static_cast<double>(std::max<std::int64_t>(profile.runs, 1));
  const double total = static_cast<double>(std::max<std::int64_t>(profile.total_ns, 1));
  std::string text = fmt::format("{} runs, {:.1f} us each\n{:>12} {:>7} {:>8} {:>7}  step\n", profile.runs,
                                 static_cast<double>(profile.total_ns) / runs / 1e3, "us", "share", "tasks", "threads");
  std::vector<const StepTime*> order;
  for (const StepTime& step : profile.steps) order.push_back(&step);
  std::stable_sort(order.begin(), order.end(), [](const StepTime* a, const StepTime* b) { return a->ns > b->ns; });
  for (const StepTime* step : order)
    fmt::format_to(std::back_inserter(text), "{:>12.1f} {:>6.1f}% {:>8} {:>7}  {}\n",
                   static_cast<double>(step->ns) / runs / 1e3, 100.0 * static_cast<double>(step->ns) / total,
                   step->tasks, step->threads, step->label);
  return text;
}

}  // namespace burin::runtime
