// Memory whose neighbours may not be touched.
#pragma once
#include <cstddef>
#include <span>

namespace burin::test {

/// A copy of `bytes` that ends where a page without access begins: machine code that goes past the end crashes, also where it only
/// reads lanes that it drops.
class Guarded {
 public:
  explicit Guarded(std::span<const std::byte> bytes);
  ~Guarded();
  Guarded(Guarded&& other) noexcept;
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  /// Null when there are no bytes.
  std::byte* data() const { return data_; }
  void copy_to(std::span<std::byte> bytes) const;

 private:
  std::byte *map_ = nullptr, *data_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace burin::test
