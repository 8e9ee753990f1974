// Where generated code reports indices out of range, and which of the reports a run keeps.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/abi.h"

namespace burin::runtime {

struct IndexReport {
  std::uint32_t step = 0;
  std::int64_t task = 0;
  std::int32_t site = 0;
  std::int64_t index = 0, extent = 0;
};

/// One per run. Keeps the report of the lowest (step, task), and of one task its first: tasks run on one thread each,
/// so the choice does not depend on the threads.
class StatusSlot {
 public:
  bool any() const { return any_.load(std::memory_order_relaxed); }
  const IndexReport& first() const { return first_; }
  void clear() { any_.store(false, std::memory_order_relaxed); }
  void add(const IndexReport& report);

 private:
  std::mutex mutex_;
  std::atomic<bool> any_{false};
  IndexReport first_;
};

}  // namespace burin::runtime

/// What a kernel sees: its step's way to the slot.
struct BurinStatus {
  burin::runtime::StatusSlot* slot;
  std::uint32_t step;
};
