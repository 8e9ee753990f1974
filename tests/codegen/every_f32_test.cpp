// Generated code of the vector-math routines on the bit patterns of f32, each compared with the reference; AVX2 and AVX-512 give the
// same bits. BURIN_ULP_STEP=1 takes all 2^32 patterns, on every processor (half a minute per function on two); the default takes one in 4099.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/vector_math/probe.h"
#include "tests/codegen/host_machine.h"
#include "tests/codegen/math_reference.h"

namespace burin::codegen {
namespace {

/// The distance of one result in units of its last place. As `ulps` measures it, by bits where `exact` is of normal size and `got` finite.
double distance(float got, double exact) {
  constexpr double least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  const double size = std::fabs(exact);
  if (size >= least && size <= most && std::fabs(got) <= std::numeric_limits<float>::max()) {
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(size) >> 52;
    return std::fabs(static_cast<double>(got) - exact) * std::bit_cast<double>((2 * 1023 + 23 - exponent) << 52);
  }
  return ulps(got, exact);
}

struct Found {
  double ulps = 0;  // the largest distance,
  float x = 0, got = 0;  // and where
  std::uint64_t tried = 0, differing = 0;
  float differs_at = 0;

  void add(const Found& other) {
    tried += other.tried;
    // The same of several places, whoever found it first.
    if (other.ulps > ulps || (other.ulps == ulps && std::bit_cast<std::uint32_t>(other.x) < std::bit_cast<std::uint32_t>(x))) {
      ulps = other.ulps;
      x = other.x;
      got = other.got;
    }
    if (other.differing > 0) differs_at = other.differs_at;
    differing += other.differing;
  }
};

bool same(float a, float b) { return (a != a && b != b) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

class Sweep {
 public:
  explicit Sweep(std::uint64_t step) : step_(step) {
    for (auto [lanes, features] : {std::pair(8, avx2_features()), std::pair(16, avx512_features())})
      if (host_has(features)) probes_.push_back(std::make_unique<MathProbe>(lanes, features));
  }

  Found run(MathFn fn) {
    float nothing[16] = {};
    for (const auto& probe : probes_) probe->run(fn, nothing, nullptr, nothing, 16);  // loads the code
    std::atomic<std::uint64_t> next = 0;
    std::mutex mutex;
    Found all;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
      threads.emplace_back([&] {
        Found mine;
        while (true) {
          const std::uint64_t first = next.fetch_add(block * step_);
          if (first >= patterns) break;
          try_block(fn, first, mine);
        }
        const std::lock_guard lock(mutex);
        all.add(mine);
      });
    for (std::thread& thread : threads) thread.join();
    return all;
  }

 private:
  static constexpr std::uint64_t patterns = std::uint64_t{1} << 32, block = 4096;

  void try_block(MathFn fn, std::uint64_t first, Found& found) const {
    std::vector<float> x(block, 1.0f), got(block), again(block);
    std::size_t n = 0;
    for (std::uint64_t bits = first; n < block && bits < patterns; bits += step_)
      x[n++] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    probes_.front()->run(fn, x.data(), nullptr, got.data(), block);
    for (std::size_t p = 1; p < probes_.size(); ++p) {
      probes_[p]->run(fn, x.data(), nullptr, again.data(), block);
      for (std::size_t i = 0; i < n; ++i) {
        if (same(got[i], again[i])) continue;
        ++found.differing;
        found.differs_at = x[i];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double error = distance(got[i], reference<double>(fn, x[i], 0));
      if (error <= found.ulps) continue;
      found.ulps = error;
      found.x = x[i];
      found.got = got[i];
    }
    found.tried += n;
  }

  std::uint64_t step_;
  std::vector<std::unique_ptr<MathProbe>> probes_;
};

class EveryF32 : public testing::TestWithParam<MathFn> {};

TEST_P(EveryF32, IsWithinTwoUnitsAndTheSameOnEachInstructionSet) {
  const char* text = std::getenv("BURIN_ULP_STEP");
  static Sweep sweep(text != nullptr ? std::strtoull(text, nullptr, 10) : 4099);
  const MathFn fn = GetParam();
  const Found found = sweep.run(fn);
  EXPECT_LE(found.ulps, 2) << math_name(fn) << '(' << std::hexfloat << found.x << ") = " << found.got << " of " << found.tried << " tried";
  EXPECT_EQ(found.differing, 0u) << math_name(fn) << " differs at " << std::hexfloat << found.differs_at;
  if (text != nullptr)
    std::cout << math_name(fn) << ": " << found.ulps << " units at " << std::hexfloat << found.x << std::defaultfloat << ", of "
              << found.tried << " inputs\n";
}

TEST(EveryF32Distance, IsThatOfTheTable) {
  constexpr double least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
  for (double exact : {1.0, 1.5, 0x1.fffffffp0, 2 * (1 - 0x1p-53), least, least * (1 - 0x1p-50), most, most * (1 + 0x1p-30), 1e300, 0.0, -0.0, 3.7, -1e-40})
    for (float got : {1.0f, 1.5f, 2.0f, std::numeric_limits<float>::min(), std::numeric_limits<float>::max(), 3.7f, -0.0f, 0.0f, -1e-40f,
                      std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      EXPECT_EQ(distance(got, exact), ulps(got, exact)) << got << ' ' << exact;
}

std::vector<MathFn> functions_of_one() {
  std::vector<MathFn> functions;
  for (MathFn fn : all_math_functions)
    if (math_arity(fn) == 1 && fn != MathFn::erf_inv) functions.push_back(fn);  // that follows another definition: erf_inv_test.cpp
  return functions;
}

INSTANTIATE_TEST_SUITE_P(VectorMath, EveryF32, testing::ValuesIn(functions_of_one()),
                         [](const auto& info) { return std::string(math_name(info.param)); });

}  // namespace
}  // namespace burin::codegen
