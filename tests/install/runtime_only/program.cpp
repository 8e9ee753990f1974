#include <burin/base/error.h>

#include <cstdio>

int main() {
  try {
    throw burin::Error("thrown without a compiler");
  } catch (const burin::Error& error) {
    return std::puts(error.what()) < 0;
  }
}
