// expect g++: x\[i\] = y would change a temporary: write x = x.at\(i\).set\(y\)
// expect clang: x\[i\] = y would change a temporary: write x = x.at\(i\).set\(y\)
#include <burin/burin.h>
void f(burin::Tensor x, burin::Tensor y) { x[0] = y; }
