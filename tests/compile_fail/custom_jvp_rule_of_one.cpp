// expect g++: custom_jvp: the rule takes a std::tuple of the arguments
// expect clang: custom_jvp: the rule takes a std::tuple of the arguments
#include <burin/burin.h>
auto f(burin::Tensor x) {
  return burin::custom_jvp([](burin::Tensor a) { return a + 1; },
                           [](std::tuple<burin::Tensor> a) { return std::pair{std::get<0>(a), std::get<0>(a)}; })(x);
}
