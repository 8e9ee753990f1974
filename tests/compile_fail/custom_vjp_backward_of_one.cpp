// expect g++: custom_vjp: backward takes the residuals and the cotangent
// expect clang: custom_vjp: backward takes the residuals and the cotangent
#include <burin/burin.h>
auto f(burin::Tensor x) {
  return burin::custom_vjp([](burin::Tensor a) { return a + 1; },
                           [](burin::Tensor a) { return std::pair{a + 1, a}; },
                           [](burin::Tensor g) { return std::tuple{g}; })(x);
}
