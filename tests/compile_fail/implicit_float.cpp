// expect g++: cannot convert 'burin::Tensor' to 'float' in initialization
// expect clang: no viable conversion from 'burin::Tensor' to 'float'
#include <burin/burin.h>
void f(burin::Tensor x) {
  float y = x;
  (void)y;
}
