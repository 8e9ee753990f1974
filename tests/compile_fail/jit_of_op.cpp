// expect g++: an op is no function of Tensors: wrap it in a lambda
// expect clang: an op is no function of Tensors: wrap it in a lambda
#include <burin/burin.h>
auto f = burin::jit(burin::erf_inv);
