// Target: what the passes and codegen may know of the machine. Plain data that prints.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace burin::ir {

enum class Isa : std::uint8_t { avx2, avx512, avx512_bf16, amx };

struct Target {
  Isa isa = Isa::avx2;
  bool avx512_fp16 = false;
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 8 << 20;

  std::int64_t vector_bits() const { return isa == Isa::avx2 ? 256 : 512; }
  /// Has the instruction that multiplies pairs of bf16.
  bool multiplies_bf16_pairs() const { return isa == Isa::avx512_bf16 || isa == Isa::amx; }
  /// Has registers for tiles of matrices, and the instruction that multiplies tiles of pairs of bf16.
  bool multiplies_tiles() const { return isa == Isa::amx; }
  std::int64_t vector_registers() const { return isa == Isa::avx2 ? 16 : 32; }
  friend bool operator==(const Target&, const Target&) = default;
};

/// "avx512_bf16 l1=48K l2=1024K l3=32M"; "amx+fp16 l1=..." with AVX512-FP16.
std::string to_string(const Target& target);
std::string_view name(Isa isa);
/// False when the name is none of avx2, avx512, avx512_bf16, amx.
bool isa_from_name(std::string_view text, Isa* isa);
/// " --target=avx2", what burin-opt is told to do the same on another machine; "" where the target is this machine.
std::string target_option(const Target& target);
/// These names, for messages.
std::string known_isas();

/// What the processor has and the operating system lets programs use. `avx512` is F, BW, DQ, VL and CD together.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512 = false, avx512_bf16 = false, avx512_fp16 = false;
  bool amx = false;  // with the BF16 tiles
};
/// From CPUID and XGETBV, never from the CPU's name. `amx` is set only if `ask_for_tiles` and the system grants the
/// tile registers, which it then does for the life of the process.
CpuFeatures host_features(bool ask_for_tiles);
/// The widest path that the features allow, up to `max_isa` ("" is no limit); default caches. Throws Error as
/// host_target.
Target narrowed_target(const CpuFeatures& features, std::string_view max_isa);

/// This machine's features and caches (CPUID), narrowed to `max_isa`, or else to BURIN_MAX_ISA (a name; "" is no
/// limit). Throws Error below AVX2+FMA+F16C, naming the missing feature, and for an unknown name.
Target host_target(std::string_view max_isa = "");

}  // namespace burin::ir
