#include <burin/burin.h>

#include <iostream>
using namespace burin;

int main() {
  auto step = jit([](Tensor x) { return sum(square(x) + 1.0); });
  float got = float(step(2.0 * ones({2, 3})));
  std::cout << version() << ' ' << got << '\n';
  return got == 30 ? 0 : 1;
}
