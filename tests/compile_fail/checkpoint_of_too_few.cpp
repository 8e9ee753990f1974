// expect g++: wrong number of arguments: a transformed function takes one for each parameter
// expect clang: wrong number of arguments: a transformed function takes one for each parameter
#include <burin/burin.h>
auto f() { return burin::checkpoint([](burin::Tensor a) { return a + 1; })(); }
