#include "base/write_all.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace burin {

int write_all(int descriptor, std::span<const std::byte> bytes) {
  constexpr std::size_t largest_write = 1 << 30;  // Linux writes at most 0x7ffff000 bytes at a time
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), std::min(bytes.size(), largest_write));
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace burin
