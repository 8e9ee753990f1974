// expect g++: an overloaded name is several functions: wrap it in a lambda
// expect clang: an overloaded name is several functions: wrap it in a lambda
#include <burin/burin.h>
#include <cmath>
using namespace burin;
auto f = jit(sqrt);
