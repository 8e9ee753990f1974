// expect g++: wrong number of arguments: a transformed function takes one for each parameter
// expect clang: wrong number of arguments: a transformed function takes one for each parameter
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::jvp([](burin::Tensor a, burin::Tensor b) { return a * b; }, x, x); }
