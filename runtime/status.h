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
  bool any() const { return step_.load(std::memory_order_relaxed) != none; }
  /// Whether a step before that one has reported, so that it need not run: what it reports is not kept.
  bool any_before(std::uint32_t step) const { return step_.load(std::memory_order_relaxed) < step; }
  const IndexReport& first() const { return first_; }
  void clear() { step_.store(none, std::memory_order_relaxed); }
  void add(const IndexReport& report);

 private:
  static constexpr std::uint32_t none = ~0u;
  std::mutex mutex_;
  std::atomic<std::uint32_t> step_{none};  // of first_
  IndexReport first_;
};

}  // namespace burin::runtime

/// What a kernel sees: its step's way to the slot.
struct BurinStatus {
  burin::runtime::StatusSlot* slot;
  std::uint32_t step;
};
