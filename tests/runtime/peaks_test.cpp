#include "runtime/peaks.h"

#include <gtest/gtest.h>

namespace burin::runtime {
namespace {

TEST(Peaks, AreMeasuredOnceAndOrdered) {
  for (int threads : {1, 3}) {
    const Peaks& peaks = machine_peaks(threads);
    EXPECT_EQ(&peaks, &machine_peaks(threads));
    EXPECT_EQ(peaks.threads, threads);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      EXPECT_GT(peaks.flops, 1e9);
    }
    ASSERT_GE(peaks.copies.size(), 2u);
    for (std::size_t i = 0; i < peaks.copies.size(); ++i) {
      EXPECT_GT(peaks.copies[i].bytes_per_second, 1e8);
      if (i > 0) {
        EXPECT_GT(peaks.copies[i].working_set, peaks.copies[i - 1].working_set);
      }
    }
  }
}

TEST(Peaks, OfWorkThatFitsNoCacheAreThoseOfMemory) {
  Peaks peaks;
  peaks.copies = {{100, 9.0}, {400, 11.0}, {1600, 3.0}};
  EXPECT_EQ(peaks.bytes_per_second(0), 11.0) << "larger copies count for smaller work";
  EXPECT_EQ(peaks.bytes_per_second(400), 11.0);
  EXPECT_EQ(peaks.bytes_per_second(401), 3.0);
  EXPECT_EQ(peaks.bytes_per_second(1'000'000), 3.0);
}

}  // namespace
}  // namespace burin::runtime
