// Typed indices into vectors: a ValueId cannot be passed where an OpId is wanted.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace burin {

template <class Tag>
struct Id {
  static constexpr std::uint32_t none = 0xffffffffu;
  std::uint32_t index = none;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr bool valid() const { return index != none; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace burin

template <class Tag>
struct std::hash<burin::Id<Tag>> {
  std::size_t operator()(burin::Id<Tag> id) const noexcept { return id.index * 0x9e3779b97f4a7c15ull; }
};
