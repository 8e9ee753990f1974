// What this machine can do at best, measured: the yardstick of profiles.
#pragma once
#include <cstdint>
#include <vector>

namespace burin::runtime {

struct Peaks {
  int threads = 1;
  double flops = 0;  // f32 operations per second of that many threads, in fused multiply-adds of the widest vectors
  struct Copy {
    std::int64_t working_set = 0;  // bytes of source and destination, of all threads
    double bytes_per_second = 0;   // read and written
  };
  std::vector<Copy> copies;  // from small enough for the nearest cache to larger than the last

  /// Of work that touches so many bytes: the best copy over as many or more.
  double bytes_per_second(std::int64_t bytes) const;
};

/// Measures once per number of threads and process, in about a quarter of a second. Without AVX2 and FMA `flops` is 0.
const Peaks& machine_peaks(int threads);

}  // namespace burin::runtime
