#include "ir/kernel/constraints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace burin::ir {
namespace {

const VarId i{std::size_t{0}}, j{std::size_t{1}}, k{std::size_t{2}}, t{std::size_t{3}};

TEST(Constraints, TiledLoops) {
  Facts facts;  // t in 0..7, j in 0..min(16, 100 - 16*t)
  facts.add(Affine(t));
  facts.add(Affine(6) - Affine(t));
  facts.add(Affine(j));
  facts.add(Affine(15) - Affine(j));
  facts.add(Affine(99) - Affine(t, 16) - Affine(j));
  const Affine index = Affine(t, 16) + Affine(j);
  EXPECT_TRUE(facts.prove(index));
  EXPECT_TRUE(facts.prove(Affine(99) - index));
  EXPECT_FALSE(facts.prove(Affine(98) - index));
  EXPECT_EQ(facts.highest(index), 99);
  EXPECT_EQ(facts.lowest(index), 0);
  EXPECT_EQ(facts.highest(Affine(t) + Affine(j)), 20);  // t = 5, j = 15
  facts.truncate(4);
  EXPECT_EQ(facts.highest(index), 111);
  facts.truncate(3);
  EXPECT_EQ(facts.highest(index), std::nullopt);
  EXPECT_EQ(facts.lowest(index), 0);
}

TEST(Constraints, IntegersAreTighterThanFractions) {
  // 2 * i = 2 * j + 1 has no integer solution, 3 <= 2 * i <= 3 neither.
  EXPECT_TRUE(infeasible({}, {Affine(i, 2) - Affine(j, 2) - Affine(1)}));
  EXPECT_TRUE(infeasible({Affine(i, 2) - Affine(3), Affine(3) - Affine(i, 2)}));
  EXPECT_FALSE(infeasible({Affine(i, 2) - Affine(3), Affine(4) - Affine(i, 2)}));
  EXPECT_FALSE(infeasible({}));
  EXPECT_FALSE(infeasible({Affine(0)}, {Affine(0)}));
  EXPECT_TRUE(infeasible({Affine(-1)}));
  EXPECT_TRUE(infeasible({}, {Affine(1)}));
}

TEST(Constraints, TriesSeveralOrders) {
  // With 0 <= j <= 3, 4*i + j >= 4 says i >= 1; eliminating i first would lose that.
  Facts facts;
  for (VarId var : {i, j, k}) {
    facts.add(Affine(var));
    facts.add(Affine(3) - Affine(var));
  }
  facts.add(Affine(i, 4) + Affine(j) - Affine(4));
  EXPECT_EQ(facts.lowest(Affine(i, 12) + Affine(k, 4) + Affine(j)), 12);
}

TEST(Constraints, FactsOfOtherVariablesDoNotMatterUntilTheyContradict) {
  Facts facts;
  for (std::uint32_t i = 0; i < 3000; ++i) {  // each 0 to 6
    facts.add(Affine(VarId{i}));
    facts.add(Affine(6) - Affine(VarId{i}));
  }
  const Affine index = Affine(VarId{7}, 7) + Affine(VarId{2900});
  EXPECT_TRUE(facts.prove(index));
  EXPECT_EQ(facts.lowest(index), 0);
  EXPECT_EQ(facts.highest(index), 48);
  EXPECT_FALSE(facts.prove(Affine(47) - index));
  Facts dead;
  dead.add(Affine(VarId{0}) - Affine(1));
  dead.add(Affine(0) - Affine(VarId{0}));
  EXPECT_TRUE(dead.prove(Affine(47) - index));
}

TEST(Constraints, HugeFactorsAreNotProvenRatherThanWrong) {
  const std::int64_t huge = std::int64_t{1} << 48;
  EXPECT_FALSE(infeasible({Affine(i, huge) + Affine(j, huge - 1) + Affine(k, 3),
                           Affine(i, -huge + 5) + Affine(j, -7) + Affine(k, -huge),
                           Affine(j, huge - 3) - Affine(k, huge - 11) - Affine(i, 13)}));
}

// What is called infeasible has no solution in a box; and simple interval facts are all found.
TEST(Constraints, AgreesWithEnumeration) {
  std::mt19937 generator(11);
  std::uniform_int_distribution<int> coefficient(-3, 3), constant(-8, 8), count(1, 4), kind(0, 3);
  int contradictions = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Affine> inequalities, equalities;
    for (VarId var : {i, j, k}) {
      inequalities.push_back(Affine(var) + Affine(4));
      inequalities.push_back(Affine(4) - Affine(var));
    }
    for (int n = count(generator); n > 0; --n) {
      const Affine e = Affine(i, coefficient(generator)) + Affine(j, coefficient(generator)) +
                       Affine(k, coefficient(generator)) + Affine(constant(generator));
      (kind(generator) == 0 ? equalities : inequalities).push_back(e);
    }
    bool solvable = false;
    for (int x = -4; x <= 4 && !solvable; ++x)
      for (int y = -4; y <= 4 && !solvable; ++y)
        for (int z = -4; z <= 4 && !solvable; ++z) {
          const auto at = [&](const Affine& e) {
            return e.constant + x * e.coefficient(i) + y * e.coefficient(j) + z * e.coefficient(k);
          };
          solvable = std::ranges::all_of(inequalities, [&](const Affine& e) { return at(e) >= 0; }) &&
                     std::ranges::all_of(equalities, [&](const Affine& e) { return at(e) == 0; });
        }
    const bool found = infeasible(inequalities, equalities);
    ASSERT_FALSE(found && solvable) << round;
    contradictions += found;
    missed += !found && !solvable;
  }
  EXPECT_GT(contradictions, 500);
  EXPECT_LT(missed, contradictions / 10);
}

}  // namespace
}  // namespace burin::ir
