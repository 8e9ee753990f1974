// expect g++: a parameter is no tree: trees are Tensors, numbers, .* and structs with BURIN_TREE\(all, data, members\)
// expect clang: a parameter is no tree: trees are Tensors, numbers, .* and structs with BURIN_TREE\(all, data, members\)
#include <burin/burin.h>
struct Params {
  burin::Tensor w;
};
auto f = burin::jit([](Params p) { return p.w; });
