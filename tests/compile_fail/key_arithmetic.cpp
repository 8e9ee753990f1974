// expect g++: keys take no arithmetic: use random::split\(key\) or random::fold_in\(key, n\)
// expect clang: keys take no arithmetic: use random::split\(key\) or random::fold_in\(key, n\)
#include <burin/burin.h>
void f(burin::Key key) { (void)(key + 1); }
