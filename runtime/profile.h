// Optional times of the steps of a run. Costs nothing when nobody asks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace burin::runtime {

struct StepTime {
  std::string label;
  std::int64_t ns = 0;     // from the call's first task to its last, summed over the runs
  std::int64_t tasks = 0;  // per run
  int threads = 1;         // that the last run could use
};

/// One row per step of the table, in order. Runs with the same Profile add up; one run at a time may use it.
struct Profile {
  std::vector<StepTime> steps;
  std::int64_t runs = 0;
  std::int64_t total_ns = 0;  // of the runs, with what is beside the steps
};

}  // namespace burin::runtime
