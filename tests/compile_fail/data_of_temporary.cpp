// expect g++: the elements die with the temporary: give the tensor a name
// expect clang: the elements die with the temporary: give the tensor a name
#include <burin/burin.h>
auto f(burin::Tensor x) { return (x + 1).data<float>(); }
