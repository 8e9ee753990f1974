// expect g++: default arguments are lost, wrap it in a lambda
// expect clang: default arguments are lost, wrap it in a lambda
#include <burin/burin.h>
burin::Tensor f(const burin::Tensor& x, double eps = 1) { return x + eps; }
auto g(burin::Tensor x) { return burin::jit(f)(x); }
