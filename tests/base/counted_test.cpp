#include "base/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace burin {
namespace {

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(counted(1, "axis", "axes"), "1 axis");
  EXPECT_EQ(counted(0, "axis", "axes"), "0 axes");
  EXPECT_EQ(counted(std::size_t{2}, "kernel"), "2 kernels");
  EXPECT_EQ(counted(std::int64_t{1}, "kernel"), "1 kernel");
  EXPECT_EQ(counted(-1, "step"), "-1 steps");
}

}  // namespace
}  // namespace burin
