// expect g++: a parameter is no tree: trees are Tensors, numbers, enums, std::string, .* map<std::string, T>
// expect clang: a parameter is no tree: trees are Tensors, numbers, enums, std::string, .* map<std::string, T>
#include <burin/burin.h>
auto f = burin::jit([](std::map<int, burin::Tensor> m) { return m.at(1); });
