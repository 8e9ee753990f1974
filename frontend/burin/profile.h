// Where the time of a compiled function goes, measured against what the machine can do at best.
#pragma once
#include <burin/standard.h>

#include <cstdint>
#include <string>
#include <vector>

namespace burin {

struct Profile {
  /// A kernel and all its calls in one run.
  struct Kernel {
    std::string name;           // of its first call, with source line and scopes: "matmul_3 (model.cpp:13, in block0)"
    std::int64_t calls = 0;
    int threads = 1;              // that it could use: 1 when waking others would not pay
    double seconds = 0;
    double flops = 0, bytes = 0;  // what its ops ask for: each argument read once, each result written once
    double flop_share = 0;        // of the machine's peak in f32 multiply-adds, 0 to 1
    double byte_share = 0;        // of the speed of a copy of as many bytes, 0 to 1
    /// Share of the machine's limit.
    double of_limit() const { return flop_share > byte_share ? flop_share : byte_share; }
  };
  std::vector<Kernel> kernels;  // the dearest first
  std::int64_t runs = 0;
  double seconds = 0;           // of one run, with what lies between kernels
  int threads = 1;
  double peak_flops = 0;                        // per second, on as many threads
  double cache_bytes = 0, memory_bytes = 0;     // copied per second: in the nearest cache, in memory

  /// A table: one line per kernel.
  std::string text() const;
};

}  // namespace burin
