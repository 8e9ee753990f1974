// expect g++: BURIN_TREE leaves out a data member: list every one of them
// expect clang: BURIN_TREE leaves out a data member: list every one of them
#include <burin/burin.h>
struct Params {
  burin::Tensor w, b;
  BURIN_TREE(w)
};
auto f(const Params& p) { return burin::tree::leaves(p); }
