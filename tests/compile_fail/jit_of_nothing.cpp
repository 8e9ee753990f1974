// expect g++: the function returns nothing: return what it computes
// expect clang: the function returns nothing: return what it computes
#include <burin/burin.h>
auto f = burin::jit([](burin::Tensor x) { x += 1; });
