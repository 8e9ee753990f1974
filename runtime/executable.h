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

enum class Storage : std::uint8_t { input, output, arena, constant };

struct BufferRef {
  Storage storage = Storage::arena;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
};

struct Step {
  BurinKernel entry = nullptr;
  std::uint32_t first_arg = 0, num_args = 0;  // into StepTable::args
  std::int64_t tasks = 1;
  std::uint32_t phase = 0;
  double cost_ns = 0;               // all tasks on one core: decides whether waking threads pays
  std::int64_t scratch_bytes = 0;   // per running task
  std::vector<std::string> sites;   // messages of indices out of range, {index} and {extent} filled in when thrown
  std::string label;
};

struct StepTable {
  std::vector<Step> steps;
  std::vector<BufferRef> args;
  std::vector<std::int64_t> input_bytes, output_bytes;
  std::vector<std::vector<std::byte>> constants;
  std::int64_t arena_bytes = 0;
  std::shared_ptr<const void> code;  // keeps the entry points alive
};

struct RunOptions {
  int num_threads = 0;               // 0: the process default (BURIN_NUM_THREADS, else one per core)
  double threading_threshold_ns = -1;  // steps cheaper than this run on the calling thread; -1: default; 0: thread everything
};

class Executable {
 public:
  explicit Executable(StepTable table);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Runs the steps. Pointers: one per input and output, each of the table's size (null for size 0 is fine); an output
  /// may be the same pointer as an input that it aliases. All memory is allocated before the first step: a failure up to
  /// there throws and changes nothing. Throws burin::Error for an index out of range. Concurrent calls are safe, each has its own arena.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const RunOptions& options = {}) const;

  const StepTable& table() const;
  /// Bytes that one call holds beside inputs and outputs: arena and scratch for that many threads.
  std::int64_t held_bytes(int num_threads) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace burin::runtime
