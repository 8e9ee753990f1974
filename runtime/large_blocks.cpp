#include "runtime/large_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "runtime/limits.h"

namespace burin::runtime {
namespace {

struct Block {
  void* data;
  std::int64_t bytes;
};

struct Kept {
  std::mutex mutex;
  std::vector<Block> blocks;  // oldest first
  std::int64_t bytes = 0;
};

Kept& kept() {
  static Kept* instance = new Kept;  // never destroyed: buffers may be freed by static destructors
  return *instance;
}

std::int64_t limit() {
  static const std::int64_t bytes = std::min<std::int64_t>(
      std::int64_t{1} << 30, static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 8);
  return bytes;
}

void free_all(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) std::free(block.data);
}

}  // namespace

void* allocate_large(std::int64_t bytes) {
  bytes = round_up(bytes, huge_page);
  {
    Kept& k = kept();
    std::lock_guard lock(k.mutex);
    const auto at = std::find_if(k.blocks.rbegin(), k.blocks.rend(), [&](const Block& b) { return b.bytes == bytes; });
    if (at != k.blocks.rend()) {
      void* data = at->data;
      k.bytes -= bytes;
      k.blocks.erase(std::next(at).base());
      return data;
    }
  }
  void* data = std::aligned_alloc(huge_page, static_cast<std::size_t>(bytes));
  if (data == nullptr && kept_large_bytes() > 0) {
    give_back_large_blocks();
    data = std::aligned_alloc(huge_page, static_cast<std::size_t>(bytes));
  }
  // Advice only: small pages work as well, more slowly.
  if (data != nullptr) madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  return data;
}

void release_large(void* data, std::int64_t bytes) {
  bytes = round_up(bytes, huge_page);
  std::vector<Block> surplus;
  {
    Kept& k = kept();
    std::lock_guard lock(k.mutex);
    k.blocks.push_back({data, bytes});
    k.bytes += bytes;
    auto end = k.blocks.begin();
    for (; k.bytes > limit(); ++end) k.bytes -= end->bytes;
    surplus.assign(k.blocks.begin(), end);
    k.blocks.erase(k.blocks.begin(), end);
  }
  free_all(surplus);
}

std::int64_t kept_large_bytes() {
  std::lock_guard lock(kept().mutex);
  return kept().bytes;
}

void give_back_large_blocks() {
  std::vector<Block> blocks;
  {
    std::lock_guard lock(kept().mutex);
    blocks.swap(kept().blocks);
    kept().bytes = 0;
  }
  free_all(blocks);
}

}  // namespace burin::runtime
