// expect g++: a parameter is no tree: put BURIN_TREE\(all, data, members\) into the struct
// expect clang: a parameter is no tree: put BURIN_TREE\(all, data, members\) into the struct
#include <burin/burin.h>
struct Params {
  burin::Tensor w;
};
auto f = burin::jit([](Params p) { return p.w; });
