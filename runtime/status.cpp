#include "runtime/status.h"

#include <tuple>

namespace burin::runtime {

void StatusSlot::add(const IndexReport& report) {
  std::lock_guard lock(mutex_);
  const bool earlier = std::tie(report.step, report.task) < std::tie(first_.step, first_.task);
  if (any() && !earlier) return;
  first_ = report;
  step_.store(report.step, std::memory_order_relaxed);
}

}  // namespace burin::runtime

extern "C" void burin_report_index(BurinStatus* status, int64_t task, int32_t site, int64_t index, int64_t extent) {
  status->slot->add({status->step, task, site, index, extent});
}
