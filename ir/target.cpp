#include "ir/target.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "base/message_ids.h"

namespace burin::ir {
namespace {

constexpr std::array<std::string_view, 4> isa_names = {"avx2", "avx512", "avx512_bf16", "amx"};

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero where the processor has no such leaf.
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(unsigned word, int i) { return ((word >> i) & 1) != 0; }

// The register states that the operating system saves (XCR0); 0 without XGETBV.
std::uint64_t saved_states(const Registers& leaf1) {
  if (!bit(leaf1.ecx, 27)) return 0;  // OSXSAVE
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr std::uint64_t ymm_states = 0x6, zmm_states = 0xe6, tile_states = 0x60000;

// Linux hands out the tile registers on request only, for the life of the process.
bool tiles_permitted() {
  constexpr long arch_req_xcomp_perm = 0x1023, xfeature_xtiledata = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata) == 0;
}

std::int64_t value_or(std::int64_t value, std::int64_t fallback) { return value > 0 ? value : fallback; }

// Sizes by level from the deterministic cache leaf: 4 on Intel, 0x8000001D on AMD, which has the same layout. 0: not told.
std::array<std::int64_t, 4> cache_sizes() {
  const Registers vendor = cpuid(0);
  const bool amd = vendor.ebx == signature_AMD_ebx;
  const unsigned leaf = amd ? 0x8000001D : 4;
  std::array<std::int64_t, 4> sizes = {};
  for (unsigned i = 0; i < 16; ++i) {
    const Registers r = cpuid(leaf, i);
    const unsigned type = r.eax & 31, level = (r.eax >> 5) & 7;
    if (type == 0) break;
    if (type == 2 || level < 1 || level > 3) continue;  // 2: instructions alone
    sizes[level] = static_cast<std::int64_t>((r.ebx >> 22) + 1) * (((r.ebx >> 12) & 0x3ff) + 1) *
                   ((r.ebx & 0xfff) + 1) * (static_cast<std::int64_t>(r.ecx) + 1);
  }
  return sizes;
}

// Read once: a hypervisor takes tens of microseconds for each leaf.
void read_caches(Target& target) {
  static const std::array<std::int64_t, 4> sizes = cache_sizes();
  target.l1_bytes = value_or(sizes[1], target.l1_bytes);
  target.l2_bytes = value_or(sizes[2], target.l2_bytes);
  target.l3_bytes = value_or(sizes[3], target.l3_bytes);
}

std::string size_text(std::int64_t bytes) {
  if (bytes % (1 << 20) == 0 && bytes >= 8 << 20) return fmt::format("{}M", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{}K", bytes >> 10) : fmt::format("{}", bytes);
}

}  // namespace

std::string known_isas() { return fmt::format("{}", fmt::join(isa_names, ", ")); }

std::string_view name(Isa isa) { return isa_names[static_cast<std::size_t>(isa)]; }

bool isa_from_name(std::string_view text, Isa* isa) {
  for (std::size_t i = 0; i < isa_names.size(); ++i)
    if (isa_names[i] == text) {
      *isa = static_cast<Isa>(i);
      return true;
    }
  return false;
}

std::string target_option(const Target& target) {
  return target == host_target() ? "" : fmt::format(" --target={}", name(target.isa));
}

std::string to_string(const Target& target) {
  return fmt::format("{}{} l1={} l2={} l3={}", name(target.isa), target.avx512_fp16 ? "+fp16" : "",
                     size_text(target.l1_bytes), size_text(target.l2_bytes), size_text(target.l3_bytes));
}

namespace {

CpuFeatures read_features(bool ask_for_tiles) {
  const Registers leaf1 = cpuid(1), leaf7 = cpuid(7), leaf7_1 = cpuid(7, 1);
  const std::uint64_t states = saved_states(leaf1);
  const bool ymm = (states & ymm_states) == ymm_states, zmm = (states & zmm_states) == zmm_states;
  CpuFeatures f;
  f.avx2 = ymm && bit(leaf7.ebx, 5);
  f.fma = ymm && bit(leaf1.ecx, 12);
  f.f16c = ymm && bit(leaf1.ecx, 29);
  // F, BW, DQ, VL and CD: what every AVX-512 server since 2017 has.
  f.avx512 =
      zmm && bit(leaf7.ebx, 16) && bit(leaf7.ebx, 30) && bit(leaf7.ebx, 17) && bit(leaf7.ebx, 31) && bit(leaf7.ebx, 28);
  f.avx512_bf16 = f.avx512 && bit(leaf7_1.eax, 5);
  f.avx512_fp16 = f.avx512 && bit(leaf7.edx, 23);
  const bool tiles = (states & tile_states) == tile_states && bit(leaf7.edx, 24) && bit(leaf7.edx, 22);
  f.amx = f.avx512_bf16 && tiles && ask_for_tiles && tiles_permitted();
  return f;
}

}  // namespace

CpuFeatures host_features(bool ask_for_tiles) {
  if (!ask_for_tiles) {
    static const CpuFeatures without_tiles = read_features(false);
    return without_tiles;
  }
  static const CpuFeatures all = read_features(true);
  return all;
}

Target narrowed_target(const CpuFeatures& features, std::string_view max_isa) {
  Isa limit = Isa::amx;
  if (!max_isa.empty() && !isa_from_name(max_isa, &limit)) fail(Msg::unknown_isa, "target", max_isa, known_isas());
  const std::pair<bool, std::string_view> floor[] = {
      {features.avx2, "AVX2"}, {features.fma, "FMA"}, {features.f16c, "F16C"}};
  for (const auto& [present, feature] : floor)
    if (!present) fail(Msg::missing_cpu_feature, feature);
  Target target;
  if (features.avx512 && limit >= Isa::avx512) target.isa = Isa::avx512;
  if (features.avx512_bf16 && limit >= Isa::avx512_bf16) target.isa = Isa::avx512_bf16;
  if (features.amx && limit >= Isa::amx) target.isa = Isa::amx;
  target.avx512_fp16 = features.avx512_fp16 && target.isa >= Isa::avx512_bf16;
  return target;
}

Target host_target(std::string_view max_isa) {
  std::string_view limit = max_isa;
  Isa isa = Isa::amx;
  if (const char* variable = std::getenv("BURIN_MAX_ISA"); limit.empty() && variable != nullptr) {
    limit = variable;
    if (!limit.empty() && !isa_from_name(limit, &isa)) fail(Msg::unknown_isa, "BURIN_MAX_ISA", limit, known_isas());
  }
  const bool tiles_wanted = limit.empty() || (isa_from_name(limit, &isa) && isa == Isa::amx);
  Target target = narrowed_target(host_features(tiles_wanted), limit);
  read_caches(target);
  return target;
}

}  // namespace burin::ir
