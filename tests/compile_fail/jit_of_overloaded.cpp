// expect g++: no matching function for call to 'jit\(<unresolved overloaded function type>\)'
// expect clang: no matching function for call to 'jit'
#include <burin/burin.h>
#include <cmath>
using namespace burin;
auto f = jit(sqrt);
