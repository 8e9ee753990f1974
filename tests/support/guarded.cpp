#include "tests/support/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/check.h"

namespace burin::test {

Guarded::Guarded(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inside = (bytes.size() + page - 1) / page * page;
  mapped_ = inside + page;
  void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BURIN_CHECK(map != MAP_FAILED && mprotect(static_cast<std::byte*>(map) + inside, page, PROT_NONE) == 0, "no guarded memory");
  map_ = static_cast<std::byte*>(map);
  data_ = map_ + inside - bytes.size();
  std::memcpy(data_, bytes.data(), bytes.size());
}

Guarded::~Guarded() {
  if (map_ != nullptr) munmap(map_, mapped_);
}

Guarded::Guarded(Guarded&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)), data_(std::exchange(other.data_, nullptr)), mapped_(other.mapped_) {}

void Guarded::copy_to(std::span<std::byte> bytes) const {
  if (!bytes.empty()) std::memcpy(bytes.data(), data_, bytes.size());
}

}  // namespace burin::test
