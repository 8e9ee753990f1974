// expect g++: vjp takes the function and its arguments
// expect clang: vjp takes the function and its arguments
#include <burin/burin.h>
void f() { burin::vjp([](burin::Tensor a) { return a + 1; }); }
