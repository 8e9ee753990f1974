// Numbers of things, for people.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace burin {

/// "1 axis", "3 axes", "0 axes".
template <std::integral N>
std::string counted(N n, std::string_view one, std::string_view many) {
  return (std::to_string(n) + ' ').append(n == 1 ? one : many);
}
/// "1 kernel", "2 kernels".
template <std::integral N>
std::string counted(N n, std::string_view one) {
  return counted(n, one, std::string(one) + "s");
}

/// What an index of an axis may be: "0 to 2" of 3.
inline std::string index_bounds(std::int64_t extent) {
  return extent > 0 ? "0 to " + std::to_string(extent - 1) : "none, as there is no place";
}

}  // namespace burin
