// A compiled program as the runtime sees it: a table of steps over bytes. Knows no op.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/abi.h"

namespace burin::runtime {

enum class Storage : std::uint8_t { input, output, arena, constant, kept };

struct BufferRef {
  Storage storage = Storage::arena;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
};

struct Profile;

struct Step {
  BurinKernel entry = nullptr;
  std::uint32_t first_arg = 0, num_args = 0;  // into StepTable::args
  std::int64_t tasks = 1;
  std::uint32_t after = 0;         // so many leading steps must be done before this one begins; ascending
  double cost_ns = 0;              // all tasks on one core: decides whether waking threads pays
  std::int64_t scratch_bytes = 0;  // per running task
  std::vector<std::string> sites;  // messages of indices out of range, {index} and {extent} filled in when thrown
  std::vector<std::uint32_t> unless;  // kept values: a call that is given all of them (and they are some) leaves the step out
  std::string label, kernel;  // for tables: what it computes, and the name of its code
};

struct StepTable {
  std::string name;  // of the whole, for tables
  std::vector<Step> steps;
  std::vector<BufferRef> args;
  std::vector<std::int64_t> input_bytes, output_bytes;
  std::vector<std::int64_t> kept_bytes;  // of values that calls hand on to one another
  std::vector<std::vector<std::byte>> constants;  // read in place: 16-byte aligned
  std::int64_t arena_bytes = 0;
  std::shared_ptr<const void> code;  // keeps the entry points alive
};

/// Where a kept value is to be left, and whether it is there already, as an earlier call left it.
struct KeptPlace {
  void* data = nullptr;
  bool given = false;
};

struct RunOptions {
  int num_threads = 0;  // 0: the process default (BURIN_NUM_THREADS, else one per core)
  double threading_threshold_ns =
      -1;                      // steps cheaper than this (with those that may run beside them) are not shared; -1: default; 0: thread everything
  std::span<const KeptPlace> kept = {};  // one per kept value of the table; none: made in memory that the call allocates, and lost
  Profile* profile = nullptr;  // when given, receives the steps' times, and steps run one after another
};

/// What one call asks of the allocator, in one block.
struct Held {
  std::int64_t arena = 0, scratch = 0;  // bytes; the scratch of all threads
  int threads = 1;                      // that the call can employ: as many as allowed, but no more than there are pieces that may run at one time
  std::int64_t bytes() const { return arena + scratch; }
};

class Executable {
 public:
  explicit Executable(StepTable table);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Runs the steps. Pointers: one per input and output, each of the table's size (null for size 0 is fine); an output
  /// may be the same pointer as an input that it aliases. All memory is allocated before the first step: a failure up
  /// to there throws burin::Error and changes nothing. Concurrent calls are safe, each has its own arena; arenas are
  /// kept for the next calls. An index out of range throws burin::Error once the steps before its own are done and
  /// nothing runs any more; no step begins that waits for it. Of several it is the one of the first step, then the lowest task, whatever the
  /// number of threads.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const RunOptions& options = {}) const;

  const StepTable& table() const;
  /// What a call with that many threads (0: the default) holds beside inputs and outputs, to the byte.
  Held held(int num_threads) const;
  /// Gives the arenas kept from earlier calls back to the allocator.
  void release_arenas() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin::runtime
