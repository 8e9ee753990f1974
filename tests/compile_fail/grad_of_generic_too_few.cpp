// expect g++: the function cannot be called with these arguments: their number or types
// expect clang: the function cannot be called with these arguments: their number or types
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::grad([](auto a, auto b) { return sum(a * b); })(x); }
