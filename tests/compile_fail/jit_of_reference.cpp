// expect g++: a parameter is a reference that can be written to: take it by value or by const&
// expect clang: a parameter is a reference that can be written to: take it by value or by const&
#include <burin/burin.h>
auto f = burin::jit([](burin::Tensor& x) { return x + 1; });
