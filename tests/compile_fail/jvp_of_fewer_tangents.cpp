// expect g++: jvp takes a tangent for each primal
// expect clang: jvp takes a tangent for each primal
#include <burin/burin.h>
void f(burin::Tensor x) {
  burin::jvp([](burin::Tensor a, burin::Tensor b) { return a + b; }, std::tuple{x, x}, std::tuple{x});
}
