// The emulation of tile instructions by values worked out by hand, and against the rule of the interpreter. On a processor with tiles
// it is the instructions themselves that are tested.
#include "tests/support/emulated_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "ir/kernel/pairs.h"
#include "tests/support/guarded.h"

namespace burin::test {
namespace {

struct alignas(64) Config {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(Config) == 64);

void configure(const Config& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
void release() { asm volatile("tilerelease"); }

/// Tile 0 is c, 1 is a, 2 is b.
Config shapes(int rows, int columns, int pairs) {
  Config config;
  const auto set = [&](int tile, int tile_rows, int words) {
    config.rows[tile] = static_cast<std::uint8_t>(tile_rows);
    config.bytes[tile] = static_cast<std::uint16_t>(4 * words);
  };
  set(0, rows, columns);
  set(1, rows, pairs);
  set(2, pairs, columns);
  return config;
}

std::uint32_t bf16_bits(float x) { return std::bit_cast<std::uint32_t>(x) >> 16; }
std::uint32_t pair(float low, float high) { return bf16_bits(high) << 16 | bf16_bits(low); }

template <class T>
Guarded guarded(const std::vector<T>& values) {
  return Guarded(std::as_bytes(std::span(values)));
}

/// c + a b by the instructions, on memory that ends where the tiles do.
std::vector<float> multiplied(int rows, int columns, int pairs, const std::vector<float>& c, const std::vector<std::uint32_t>& a,
                              const std::vector<std::uint32_t>& b) {
  Guarded c_memory = guarded(c), a_memory = guarded(a), b_memory = guarded(b);
  const Config config = shapes(rows, columns, pairs);
  const std::int64_t c_stride = 4 * columns, a_stride = 4 * pairs;
  configure(config);
  asm volatile("tileloadd (%0,%1), %%tmm0" ::"r"(c_memory.data()), "r"(c_stride) : "memory");
  asm volatile("tileloaddt1 (%0,%1), %%tmm1" ::"r"(a_memory.data()), "r"(a_stride) : "memory");
  asm volatile("tileloadd (%0,%1), %%tmm2" ::"r"(b_memory.data()), "r"(c_stride) : "memory");
  asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0");
  asm volatile("tilestored %%tmm0, (%0,%1)" ::"r"(c_memory.data()), "r"(c_stride) : "memory");
  release();
  std::vector<float> result(c.size());
  c_memory.copy_to(std::as_writable_bytes(std::span(result)));
  return result;
}

class EmulatedTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = tiles_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(EmulatedTiles, small_whole_numbers) {
  // a = [1 2 | 3 4], b by pairs of k: [5 6 | 7 8] and [9 10 | 11 12], one row of two columns.
  const std::vector<std::uint32_t> a = {pair(1, 2), pair(3, 4)};
  const std::vector<std::uint32_t> b = {pair(5, 6), pair(7, 8), pair(9, 10), pair(11, 12)};
  EXPECT_EQ(multiplied(1, 2, 2, {100, 200}, a, b), (std::vector<float>{100 + 5 + 12 + 27 + 40, 200 + 7 + 16 + 33 + 48}));
}

TEST_F(EmulatedTiles, even_and_odd_elements_are_summed_apart) {
  const float half_unit = 0x1p-24f;
  // Even: 1 + u = 1, as u is half a unit and ties go to even; odd: u + u = 2u. 1 + 2u is a number. One after another would give 1.
  const std::vector<std::uint32_t> ones = {pair(1, 1), pair(1, 1)};
  EXPECT_EQ(multiplied(1, 1, 2, {0}, {pair(1, half_unit), pair(half_unit, half_unit)}, ones), std::vector<float>{1 + 2 * half_unit});
  // The two sums meet before they are added to c: u + u = 2u first.
  EXPECT_EQ(multiplied(1, 1, 1, {1}, {pair(half_unit, half_unit)}, {pair(1, 1)}), std::vector<float>{1 + 2 * half_unit});
  // And start from zero, not from c.
  EXPECT_EQ(multiplied(1, 1, 2, {1}, {pair(half_unit, 0), pair(half_unit, 0)}, ones), std::vector<float>{1 + 2 * half_unit});
}

TEST_F(EmulatedTiles, subnormals_are_zeros) {
  const float smallest = 0x1p-126f;
  EXPECT_EQ(multiplied(1, 1, 1, {0x1p-130f}, {0}, {0}), std::vector<float>{0}) << "of c";
  EXPECT_EQ(multiplied(1, 1, 1, {0}, {pair(0x1p-127f, 0)}, {pair(0x1p30f, 0)}), std::vector<float>{0}) << "of a";
  EXPECT_EQ(multiplied(1, 1, 1, {0}, {pair(0, 0x1p30f)}, {pair(0, 0x1p-127f)}), std::vector<float>{0}) << "of b";
  EXPECT_EQ(multiplied(1, 1, 1, {0}, {pair(smallest, 0)}, {pair(0.5, 0)}), std::vector<float>{0}) << "of a product";
  EXPECT_EQ(multiplied(1, 1, 1, {1.5f * -smallest}, {pair(smallest, 0)}, {pair(1, 0)}), std::vector<float>{0}) << "of a sum with c";
  EXPECT_EQ(multiplied(1, 1, 1, {0}, {pair(1.5f * smallest, smallest)}, {pair(1, -1)}), std::vector<float>{0}) << "of two sums";
  // 2^-126 - 2^-150 is below the normal numbers before it is rounded to the subnormals' grid, which has it as 2^-126.
  EXPECT_EQ(multiplied(1, 1, 2, {0}, {pair(smallest, 0), pair(0x1p-75f, 0)}, {pair(1, 0), pair(-0x1p-75f, 0)}), std::vector<float>{0});
  EXPECT_EQ(multiplied(1, 1, 2, {0}, {pair(smallest, 0), pair(0x1p-75f, 0)}, {pair(1, 0), pair(-0x1p-76f, 0)}),
            std::vector<float>{smallest});
}

TEST_F(EmulatedTiles, infinities_and_nan) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(multiplied(1, 1, 1, {0}, {pair(inf, 1)}, {pair(2, 1)}), std::vector<float>{inf});
  EXPECT_TRUE(std::isnan(multiplied(1, 1, 1, {0}, {pair(inf, 0)}, {pair(0, 0)})[0]));
  EXPECT_TRUE(std::isnan(multiplied(1, 1, 1, {0}, {pair(inf, inf)}, {pair(1, -1)})[0]));
  EXPECT_TRUE(std::isnan(multiplied(1, 1, 1, {-inf}, {pair(inf, 0)}, {pair(1, 0)})[0]));
}

TEST_F(EmulatedTiles, every_shape_as_the_interpreter_sums) {
  std::mt19937 random(7);
  for (const auto [rows, columns, pairs] : {std::array{16, 16, 16}, {1, 1, 1}, {3, 5, 2}, {16, 9, 16}, {11, 16, 9}, {1, 16, 16}, {7, 8, 15}}) {
    for (const std::uint32_t exponents : {0x7f807f80u, 0x40004000u, 0x1f801f80u, 0x01000100u}) {
      std::vector<float> c(static_cast<std::size_t>(rows * columns));
      std::vector<std::uint32_t> a(static_cast<std::size_t>(rows * pairs)), b(static_cast<std::size_t>(pairs * columns));
      for (float& x : c) x = std::ldexp(static_cast<float>(random() % 100), static_cast<int>(random() % 8) - 130);
      for (std::uint32_t& x : a) x = static_cast<std::uint32_t>(random()) & (exponents | 0x807f807fu);
      for (std::uint32_t& x : b) x = static_cast<std::uint32_t>(random()) & (exponents | 0x807f807fu);
      const std::vector<float> found = multiplied(rows, columns, pairs, c, a, b);
      for (int m = 0; m < rows; ++m)
        for (int n = 0; n < columns; ++n) {
          ir::PairSums sums;
          for (int k = 0; k < pairs; ++k)
            sums.add(a[static_cast<std::size_t>(m * pairs + k)], b[static_cast<std::size_t>(k * columns + n)]);
          const std::size_t i = static_cast<std::size_t>(m * columns + n);
          const float expected = sums.added_to(c[i]);
          if (std::isnan(expected))
            EXPECT_TRUE(std::isnan(found[i]));
          else
            EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected)) << m << ", " << n;
        }
    }
  }
}

// Rows apart, before and behind the base, in every form of an address; what is no part of the tile stays as it is.
TEST_F(EmulatedTiles, addresses) {
  static Config config;  // relative to the instruction
  for (int i = 0; i < 8; ++i) config.rows[i] = 2, config.bytes[i] = 8;
  std::array<std::int32_t, 64> from{}, to{};
  for (int i = 0; i < 64; ++i) from[static_cast<std::size_t>(i)] = i + 1;
  configure(config);
  asm volatile(
      "movq %0, %%r13\n movq %1, %%r12\n movq $3, %%r9\n movq $-32, %%rbx\n movq %%r13, %%rax\n"
      "tileloadd (%%r13,%%r9,8), %%tmm7\n"     // rows 24 bytes apart: elements 0, 6
      "tilestored %%tmm7, 16(%%r12,%%r9,4)\n"  // 12 bytes apart: 4, 7
      "tileloadd 128(%%r13,%%rbx), %%tmm6\n"   // -32 bytes apart: 32, 24
      "tilestored %%tmm6, 64(%%r12,%%r9,4)\n"  // 16, 19
      "tileloadd 8(%%rax), %%tmm5\n"           // one row twice: 2
      "tilestored %%tmm5, 160(%%r12,%%r9,8)\n"  // 40, 46
      ::"r"(from.data()), "r"(to.data())
      : "rax", "rbx", "r9", "r12", "r13", "memory");
  release();
  std::array<std::int32_t, 64> expected{};
  const auto set = [&](std::size_t at, int first) {
    expected[at] = first + 1;
    expected[at + 1] = first + 2;
  };
  set(4, 0);
  set(7, 6);
  set(16, 32);
  set(19, 24);
  set(40, 2);
  set(46, 2);
  EXPECT_EQ(to, expected);
}

TEST_F(EmulatedTiles, each_thread_has_its_own) {
  const auto stored = [](float value) {
    std::vector<float> c = {0, 0};
    configure(shapes(1, 2, 1));
    const std::array<float, 2> from = {value, -value};
    asm volatile("tileloadd (%0,%1), %%tmm0" ::"r"(from.data()), "r"(std::int64_t{8}) : "memory");
    return [c]() mutable {
      asm volatile("tilestored %%tmm0, (%0,%1)" ::"r"(c.data()), "r"(std::int64_t{8}) : "memory");
      return c;
    };
  };
  auto mine = stored(1);
  std::thread([&] {
    auto its = stored(2);
    EXPECT_EQ(its(), (std::vector<float>{2, -2}));
    asm volatile("tilezero %tmm0");
    EXPECT_EQ(its(), (std::vector<float>{0, 0}));
    release();
  }).join();
  EXPECT_EQ(mine(), (std::vector<float>{1, -1}));
  release();
}

TEST_F(EmulatedTiles, what_a_processor_refuses_ends_the_process) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(asm volatile("tilezero %tmm0"), "") << "not configured";
  const auto misfit = [] {
    Config config = shapes(2, 3, 4);
    config.rows[2] = 3;
    configure(config);
    asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0");
  };
  EXPECT_DEATH(misfit(), "");
  const auto too_large = [] {
    Config config = shapes(2, 3, 4);
    config.rows[0] = 17;
    configure(config);
  };
  EXPECT_DEATH(too_large(), "");
  EXPECT_DEATH(asm volatile("ud2"), "") << "of other instructions nothing changes";
}

}  // namespace
}  // namespace burin::test
