// A 128-bit streaming hash for cache keys (not cryptographic): two 64-bit lanes of multiply-xorshift mixing, with the
// finaliser constants of MurmurHash3 (public domain).
#pragma once
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace burin {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(32, '0');
    for (int i = 0; i < 16; ++i) {
      text[15 - i] = digits[(high >> (4 * i)) & 15];
      text[31 - i] = digits[(low >> (4 * i)) & 15];
    }
    return text;
  }
};

class Hasher {
 public:
  void add(std::uint64_t word) {
    a_ = mix(a_ ^ word) + 0x9e3779b97f4a7c15ull;
    b_ = mix(std::rotl(b_, 23) + word * 0xc2b2ae3d27d4eb4full);
  }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T value) {
    add(static_cast<std::uint64_t>(value));
  }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(std::string_view text) { add_bytes(text.data(), text.size()); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add_bytes(const void* data, std::size_t size) {
    add(static_cast<std::uint64_t>(size));
    const char* p = static_cast<const char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
    }
    if (size > 0) {
      std::uint64_t word = 0;
      std::memcpy(&word, p, size);
      add(word);
    }
  }
  Hash128 finish() const { return {mix(a_ + b_), mix(b_ ^ std::rotl(a_, 31))}; }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
  }
  std::uint64_t a_ = 0x243f6a8885a308d3ull, b_ = 0x13198a2e03707344ull;
};

}  // namespace burin

template <>
struct std::hash<burin::Hash128> {
  std::size_t operator()(const burin::Hash128& h) const noexcept { return h.low; }
};
