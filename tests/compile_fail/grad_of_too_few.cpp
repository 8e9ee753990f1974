// expect g++: wrong number of arguments: a transformed function takes one for each parameter
// expect clang: wrong number of arguments: a transformed function takes one for each parameter
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::grad([](burin::Tensor a, burin::Tensor b) { return sum(a * b); })(x); }
