#include "base/check.h"

#include <gtest/gtest.h>

namespace burin {
namespace {

std::string describe(const void* data) { return std::string("while in ") + static_cast<const char*>(data); }

TEST(CheckDeathTest, AbortsWithConditionNoteAndContexts) {
  int three = 3;
  EXPECT_DEATH(BURIN_CHECK(three == 4), "internal error at .*check_test.cpp:[0-9]+: three == 4");
  EXPECT_DEATH(BURIN_CHECK(three == 4, "not four"), "three == 4: not four");
  CrashContext outer(describe, "fuse");
  EXPECT_DEATH(
      {
        CrashContext inner(describe, "lower");
        BURIN_CHECK(three == 4);
      },
      "three == 4\nwhile in lower\nwhile in fuse");
  { CrashContext closed(describe, "gone"); }
  EXPECT_DEATH(BURIN_CHECK(three == 4), "three == 4\nwhile in fuse\n$");
}

TEST(Check, PassesQuietly) {
  int evaluated = 0;
  BURIN_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace burin
