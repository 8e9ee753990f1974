// The compiler's middle: every pass in order, from a traced Function to a Program.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::passes {

struct Options {
  bool excess_precision = true;            // widen_half: 16-bit chains stay in f32 between ops
  bool small_attention = false;            // fuse: attention kernels however few the scores, for tests of them on little data
  std::vector<bool> donated;               // by argument: its memory may be reused
  std::int64_t split_elements = 1 << 17;   // split_reductions: from here on; below, one thread is done before another one has been asked
  bool keep_packed = false;                // packed copies of donated arguments are kept from call to call (lower_program)
  /// Bytes that arena and results in memory of their own are to fit into, -1 for no limit: lowering computes values again where
  /// they do not (`rematerialise`). Where that is not enough either, the Program is as small as it gets.
  std::int64_t memory_budget = -1;
  /// Passes left out, by name. Without `fuse` there is a kernel per op. Error for an unknown name, and for a pass that nothing
  /// runs without (PassInfo::optional).
  std::vector<std::string> disabled;
  /// The last pass that runs, "" for all: run_function_passes and run_lowering give what it leaves. Error for an unknown name.
  std::string stop_after;
  bool verify = BURIN_ASSERTS;  // after every pass
  /// Called after each pass with its name, its output as text on demand, whether it changed anything, its seconds, and when it began.
  struct Event {
    std::string_view pass;
    const ir::Function* function = nullptr;  // null for the passes that make a Program
    const ir::Program* program = nullptr;
    bool changed = false;
    double seconds = 0;
    std::chrono::steady_clock::time_point start = {};
  };
  std::function<void(const Event&)> observer;
};

struct PassInfo {
  std::string_view name, stage, why;  // stage: canonicalise, fuse, lower; why it stands where it stands
  bool optional = true;               // may be disabled
  bool keeps_bits = true;             // false: results are the same but for rounding
};
/// All passes in their order.
const std::vector<PassInfo>& pass_table();

/// From a traced function to one of fusions.
ir::Function run_function_passes(const ir::Function& f, const Options& options);
/// From a function of fusions to a Program.
ir::Program run_lowering(const ir::Function& fused, const ir::Target& target, const Options& options);
/// Both. With `stop_after` at a pass of the former, Error: there is no Program yet.
ir::Program build_program(const ir::Function& f, const ir::Target& target, const Options& options);
/// One Function -> Function pass by name; throws Error for an unknown name, listing the known ones.
ir::Function run_pass(std::string_view name, const ir::Function& f, const Options& options);

}  // namespace burin::passes
