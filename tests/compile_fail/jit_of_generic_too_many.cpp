// expect g++: the function cannot be called with these arguments: their number or types
// expect clang: the function cannot be called with these arguments: their number or types
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::jit([](auto a) { return a + 1; })(x, x); }
