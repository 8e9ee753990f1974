// expect g++: grad needs a function that returns the loss as a Tensor, or std::pair\{loss, aux\}
// expect clang: grad needs a function that returns the loss as a Tensor, or std::pair\{loss, aux\}
#include <burin/burin.h>
auto f(burin::Tensor x) { return burin::value_and_grad([](burin::Tensor) { return 1.0; })(x); }
