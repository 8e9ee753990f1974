// expect g++: grad: a number, enum or string is static and has no gradient: declare the parameter as a Tensor
// expect clang: grad: a number, enum or string is static and has no gradient: declare the parameter as a Tensor
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::grad<1>([](burin::Tensor a, double b) { return a * b; })(x, 2.0); }
