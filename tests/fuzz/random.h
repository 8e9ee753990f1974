// The dice of the fuzzer: the same on every machine and standard library.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace burin::fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(spread(seed)) {}

  std::uint64_t bits() { return engine_(); }
  /// Uniform in 0 .. n - 1; n is positive.
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
  /// Uniform in low .. high.
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(double p) { return uniform() < p; }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  // Neighbouring seeds must not give related streams.
  static std::uint64_t spread(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  std::mt19937_64 engine_;
};

}  // namespace burin::fuzz
