// What an instruction does is written from its description in Intel's Software Developer's Manual, apart from ir/kernel/pairs.h,
// which says the same for the interpreter: tests compare the two.
#include "tests/support/emulated_tiles.h"

#include <immintrin.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace burin::test {
namespace {

struct Tile {
  int rows = 0, bytes = 0;  // configured: rows, bytes of a row
  alignas(64) std::uint8_t data[16][64] = {};
};
struct Tiles {
  bool configured = false;
  Tile tile[8];
};
constinit thread_local Tiles tiles;
std::atomic<long> emulated{0};

// In a signal handler: no formatting, no memory from the heap.
[[noreturn]] void refuse(const char* why) {
  const auto say = [](const char* text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(125);
  };
  say("emulated tiles: a processor would refuse this instruction: ");
  say(why);
  say("\n");
  std::abort();
}

Tile& configured(int number) {
  if (!tiles.configured) refuse("tiles are not configured");
  if (number >= 8) refuse("there are eight tiles");
  Tile& tile = tiles.tile[number];
  if (tile.rows == 0) refuse("the tile is not configured");
  return tile;
}

void release() { tiles = Tiles{}; }

// Palette 1: eight tiles of up to 16 rows of up to 64 bytes.
void configure(const std::uint8_t* memory) {
  std::uint8_t config[64];
  std::memcpy(config, memory, sizeof config);
  release();
  if (config[0] == 0) return;
  if (config[0] != 1) refuse("ldtilecfg: palette 1 is all there is");
  if (config[1] != 0) refuse("ldtilecfg: an interrupted load is not taken up");
  const auto zero = [&](int begin, int end) {
    for (int i = begin; i < end; ++i)
      if (config[i] != 0) refuse("ldtilecfg: reserved bytes are zero");
  };
  zero(2, 16);
  zero(32, 48);
  zero(56, 64);
  for (int i = 0; i < 8; ++i) {
    Tile& tile = tiles.tile[i];
    tile.rows = config[48 + i];
    tile.bytes = config[16 + 2 * i] | config[17 + 2 * i] << 8;
    if (tile.rows > 16 || tile.bytes > 64) refuse("ldtilecfg: a tile has up to 16 rows of 64 bytes");
    if ((tile.rows == 0) != (tile.bytes == 0)) refuse("ldtilecfg: rows without bytes, or bytes without rows");
  }
  tiles.configured = true;
}

void clear(Tile& tile) { std::memset(tile.data, 0, sizeof tile.data); }

void load(Tile& tile, const std::uint8_t* memory, std::int64_t stride) {
  clear(tile);
  for (int r = 0; r < tile.rows; ++r) std::memcpy(tile.data[r], memory + r * stride, static_cast<std::size_t>(tile.bytes));
}

void store(const Tile& tile, std::uint8_t* memory, std::int64_t stride) {
  for (int r = 0; r < tile.rows; ++r) std::memcpy(memory + r * stride, tile.data[r], static_cast<std::size_t>(tile.bytes));
}

// For each row m and column n of c: sums over k, from zero, of the even and of the odd elements' products; their sum; its sum with
// c. All rounded to nearest, subnormals read and given as zeros.
__attribute__((target("avx2,fma"))) void multiply_bf16(Tile& c, const Tile& a, const Tile& b) {
  if (a.bytes % 4 != 0 || c.bytes % 4 != 0) refuse("tdpbf16ps: rows are of whole pairs");
  if (a.bytes / 4 != b.rows || c.bytes != b.bytes || c.rows != a.rows) refuse("tdpbf16ps: shapes do not fit one another");
  if (&c == &a || &c == &b || &a == &b) refuse("tdpbf16ps: three different tiles");
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80 | 0x8000 | 0x0040);  // no exceptions, to nearest; results below the normal ones and operands: zero
  const __m256i high_half = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  for (int m = 0; m < c.rows; ++m) {
    for (int n = 0; n < c.bytes / 4; n += 8) {
      __m256 even = _mm256_setzero_ps(), odd = _mm256_setzero_ps();
      for (int k = 0; k < b.rows; ++k) {
        int pair;
        std::memcpy(&pair, &a.data[m][4 * k], 4);
        const __m256i left = _mm256_set1_epi32(pair);
        const __m256i right = _mm256_load_si256(reinterpret_cast<const __m256i*>(&b.data[k][4 * n]));
        even = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(left, 16)),
                               _mm256_castsi256_ps(_mm256_slli_epi32(right, 16)), even);
        odd = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(left, high_half)),
                              _mm256_castsi256_ps(_mm256_and_si256(right, high_half)), odd);
      }
      std::uint8_t* const at = &c.data[m][4 * n];
      const __m256 sum = _mm256_add_ps(_mm256_load_ps(reinterpret_cast<const float*>(at)), _mm256_add_ps(even, odd));
      alignas(32) float sums[8];
      _mm256_store_ps(sums, sum);
      const int columns = c.bytes / 4 - n;
      std::memcpy(at, sums, static_cast<std::size_t>(4 * (columns < 8 ? columns : 8)));
    }
  }
  _mm_setcsr(before);
}

// ---- decoding ----
std::int64_t general_register(const greg_t* registers, int number) {
  static constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return registers[order[number]];
}

struct Instruction {
  int prefix = 0;  // 0 none, 1 0x66, 2 0xF3, 3 0xF2
  int opcode = 0, mod = 0, reg = 0, rm = 0, vvvv = 0;
  bool has_sib = false;
  std::int64_t address = 0, index = 0;  // without the index of a SIB byte, which is a distance between rows
  std::int64_t length = 0;
};

/// False when it is none of VEX.128.0F38.W0.
bool decode(const std::uint8_t* at, const greg_t* registers, Instruction& x) {
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0) return false;
  const int r = (at[1] & 0x80) != 0 ? 0 : 8, index_high = (at[1] & 0x40) != 0 ? 0 : 8, b = (at[1] & 0x20) != 0 ? 0 : 8;
  x.vvvv = ~(at[2] >> 3) & 15;
  x.prefix = at[2] & 3;
  x.opcode = at[3];
  x.mod = at[4] >> 6;
  x.reg = ((at[4] >> 3) & 7) | r;
  x.rm = at[4] & 7;
  const std::uint8_t* next = at + 5;
  if (x.mod == 3) {
    x.rm |= b;
  } else {
    int base = x.rm;
    bool based = true;
    if (x.rm == 4) {
      const int sib = *next++;
      x.has_sib = true;
      base = sib & 7;
      const int index = ((sib >> 3) & 7) | index_high;
      if (index != 4) x.index = static_cast<std::int64_t>(static_cast<std::uint64_t>(general_register(registers, index)) << (sib >> 6));
    }
    const bool relative = x.mod == 0 && x.rm == 5;
    if (x.mod == 0 && base == 5) based = false;
    if (based) x.address = general_register(registers, base | b);
    if (x.mod == 1) x.address += static_cast<std::int8_t>(*next++);
    if (x.mod == 2 || !based) {
      std::int32_t distance;
      std::memcpy(&distance, next, 4);
      next += 4;
      x.address += distance;
    }
    if (relative) x.address += reinterpret_cast<std::intptr_t>(next);
  }
  x.length = next - at;
  return true;
}

/// False when it is none of the instructions on tiles that are known here.
bool execute(const Instruction& x) {
  auto* const memory = reinterpret_cast<std::uint8_t*>(x.address);
  const bool alone = x.vvvv == 0;
  if (x.opcode == 0x49 && x.mod == 3 && alone) {
    if (x.prefix == 0 && x.reg == 0 && x.rm == 0) return release(), true;
    if (x.prefix == 3 && x.rm == 0) return clear(configured(x.reg)), true;
  } else if (x.opcode == 0x49 && x.prefix == 0 && x.reg == 0 && alone) {
    return configure(memory + x.index), true;
  } else if (x.opcode == 0x4b && x.mod != 3 && x.has_sib && alone) {
    if (x.prefix == 3 || x.prefix == 1) return load(configured(x.reg), memory, x.index), true;
    if (x.prefix == 2) return store(configured(x.reg), memory, x.index), true;
  } else if (x.opcode == 0x5c && x.mod == 3 && x.prefix == 2) {
    return multiply_bf16(configured(x.reg), configured(x.rm), configured(x.vvvv)), true;
  }
  return false;
}

struct sigaction previous;

void on_unknown_instruction(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Instruction x;
  if (decode(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]), registers, x) && execute(x)) {
    registers[REG_RIP] += x.length;
    emulated.fetch_add(1, std::memory_order_relaxed);
    errno = kept;
    return;
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
  char text[] = "no instruction on tiles that is known:                                     \n";
  for (int i = 0; i < 12; ++i) {
    const int byte = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP])[i];
    text[39 + 3 * i] = "0123456789abcdef"[byte >> 4];
    text[40 + 3 * i] = "0123456789abcdef"[byte & 15];
  }
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(125);
  signal(number, SIG_DFL);  // it is met again, and ends the process
}

}  // namespace

std::string enable_tiles() {
  static std::once_flag once;
  static std::string problem;
  std::call_once(once, [] {
    if (ir::host_features(true).amx) return;
    struct sigaction action = {};
    action.sa_sigaction = on_unknown_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGILL, &action, &previous) != 0) problem = std::string("no handler for SIGILL: ") + std::strerror(errno);
  });
  return problem;
}

std::string tiles_missing() {
  if (ir::host_target().isa < ir::Isa::avx512_bf16) return "this machine has no AVX512-BF16, or BURIN_MAX_ISA hides it";
  return enable_tiles();
}

ir::Target tile_target() {
  ir::Target target = ir::host_target();
  target.isa = ir::Isa::amx;
  return target;
}

long emulated_tile_instructions() { return emulated.load(); }

}  // namespace burin::test
