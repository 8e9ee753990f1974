// expect g++: jvp takes the function, the primals and as many tangents
// expect clang: jvp takes the function, the primals and as many tangents
#include <burin/burin.h>
void f(burin::Tensor x) { burin::jvp([](burin::Tensor a) { return a + 1; }, x); }
