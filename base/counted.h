// Numbers of things, for people.
#pragma once
#include <concepts>
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

}  // namespace burin
