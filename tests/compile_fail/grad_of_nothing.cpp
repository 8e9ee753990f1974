// expect g++: the function returns nothing: return what it computes
// expect clang: the function returns nothing: return what it computes
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::grad([](auto y) { y += 1; })(x); }
