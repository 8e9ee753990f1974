// Runs kernels statement by statement over raw bytes: the meaning of the loop level, against which machine code is tested.
// interpret() itself is declared in program.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"

namespace burin::ir {

/// Tasks are independent: results are the same in any order. Tests run them in several.
enum class TaskOrder : std::uint8_t { forward, reverse, shuffled };

/// An index outside 0..extent-1 met by a bind with mode error.
struct IndexReport {
  std::int64_t task = 0;
  std::int32_t site = -1;
  std::int64_t index = 0, extent = 0;
};
/// The site's message with its placeholders filled in.
std::string report_text(const Site& site, const IndexReport& report);

/// Words that hold `bytes` bytes, all of them 0xFF (a NaN, -1), so that reading what was never written shows. Throws Error,
/// naming `what`, when there is no memory.
std::vector<std::uint64_t> uninitialised_words(std::string_view what, std::int64_t bytes);

/// A kernel made ready to run: names resolved to slots, indices flattened to one address each.
class KernelRunner {
 public:
  /// The kernel must satisfy its invariants.
  explicit KernelRunner(const Kernel& kernel);
  ~KernelRunner();
  KernelRunner(KernelRunner&&) noexcept;

  /// Runs all tasks over one pointer per parameter. Of several reports the one of the lowest task is returned, within a
  /// task the first. Aborts when an access leaves its buffer. Scratch and tiles begin each task filled with 0xFF bytes.
  std::optional<IndexReport> run(std::span<std::byte* const> params, TaskOrder order = TaskOrder::forward);

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace burin::ir
