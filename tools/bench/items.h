// What burin-bench can time.
#pragma once
#include <burin/profile.h>

#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Item {
  std::function<void()> run;                          // once, to the end
  double compile_seconds = 0;                         // trace and compile, cold
  std::function<burin::Profile(int runs)> profile;    // of its kernels
  std::vector<double> check_before;                   // check values known before timing
  std::function<std::vector<double>()> check_after;   // of the last timed repetition
};

/// Throws burin::Error for an unknown item, saying what is known.
Item make_item(const std::string& name, int num_threads);
std::string known_items();

}  // namespace bench
