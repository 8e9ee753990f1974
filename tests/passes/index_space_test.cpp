// What is known of loop variables: their ranges, when a quotient of them is affine, and which loop has to be split to make it so.
#include <gtest/gtest.h>

#include "passes/lower/element.h"

namespace burin::passes::lower {
namespace {

using namespace ir;

class IndexSpaces : public testing::Test {
 protected:
  std::string divided(const Affine& a, std::int64_t divisor) {
    try {
      const auto parts = space.divide(a, divisor);
      if (!parts) return "at run time";
      return text(parts->first) + " rest " + text(parts->second);
    } catch (const NeedSplit& split) {
      return "loop " + std::to_string(split.loop) + " by " + std::to_string(split.factor);
    }
  }
  std::string text(const Affine& a) const {
    std::string all;
    for (const auto& [var, coefficient] : a.terms) all += std::to_string(coefficient) + kernel.var_names[var.index] + " + ";
    return all + std::to_string(a.constant);
  }

  Kernel kernel;
  BlockBuilder b{kernel};
  IndexSpace space{b};
};

TEST_F(IndexSpaces, know_ranges_from_loops_binds_and_the_grid) {
  const VarId t = b.task("t", 5);
  b.loop("i", 0, {Affine(7), Affine(40) - Affine(t, 8)}, LoopKind::serial, 1, [&](VarId i) {
    EXPECT_EQ(space.range(Affine(i, 3) - Affine(t, 2) + Affine(1)), std::pair(std::int64_t{-7}, std::int64_t{19}));
    b.loop("j", 0, {Affine(9), Affine(4)}, LoopKind::serial, 1, [&](VarId j) { EXPECT_EQ(space.extent(j), 4); });
  });
  EXPECT_EQ(space.extent(b.bind(b.constant(DType::i32, 1), 3, IndexMode::clip, -1)), 3);
  EXPECT_EQ(space.range(Affine(4)), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(kernel.tasks, (std::vector<std::pair<VarId, std::int64_t>>{{t, 5}}));
}

TEST_F(IndexSpaces, divide_where_the_rest_stays_below_the_divisor) {
  const Affine i(b.new_var("i", 4)), j(b.new_var("j", 6));
  EXPECT_EQ(divided(i * 6 + j, 6), "1i + 0 rest 1j + 0");
  EXPECT_EQ(divided(i * 12 + j - Affine(12), 6), "2i + -2 rest 1j + 0");
}

TEST_F(IndexSpaces, divide_at_run_time_where_the_rest_leaves_its_range) {
  const Affine i(b.new_var("i", 4)), j(b.new_var("j", 6));
  EXPECT_EQ(divided(i * 6 + j + Affine(1), 6), "at run time") << "up to 6";
  EXPECT_EQ(divided(i * 6 + j, 5), "at run time");
  EXPECT_EQ(divided(i * 6 - j, 6), "at run time") << "down to -5";
  EXPECT_EQ(divided(Affine(5) - j, 6), "0 rest -1j + 5");
  EXPECT_EQ(divided(Affine(4) - j, 6), "at run time") << "down to -1";
}

TEST_F(IndexSpaces, name_the_loop_to_split) {
  const VarId i = b.new_var("i", 12), j = b.new_var("j", 10);
  space.set_loop(i, 3);
  EXPECT_EQ(divided(Affine(i), 4), "loop 3 by 4");
  EXPECT_EQ(divided(Affine(i, 2), 8), "loop 3 by 4");
  EXPECT_EQ(divided(Affine(i), 5), "at run time") << "5 does not divide 12";
  EXPECT_EQ(divided(Affine(i), 12), "0 rest 1i + 0");
  EXPECT_EQ(divided(Affine(j), 5), "at run time") << "a loop without a number";
}

TEST_F(IndexSpaces, resolve_what_stands_for_an_expression) {
  const VarId i = b.new_var("i", 4), j = b.new_var("j", 8);
  const VarId whole = space.stand_for(Affine(i, 8) + Affine(j), 30, 2), twice = space.stand_for(Affine(whole, 2), 60);
  EXPECT_EQ(space.extent(whole), 30);
  EXPECT_EQ(text(space.resolve(Affine(twice) + Affine(whole) + Affine(1))), "24i + 3j + 1");
  EXPECT_EQ(divided(Affine(whole), 10), "loop 2 by 10");
}

}  // namespace
}  // namespace burin::passes::lower
