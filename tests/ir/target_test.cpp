#include "ir/target.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace burin::ir {
namespace {

CpuFeatures everything() {
  return {
      .avx2 = true, .fma = true, .f16c = true, .avx512 = true, .avx512_bf16 = true, .avx512_fp16 = true, .amx = true};
}

std::string error_of(const CpuFeatures& features, std::string_view max_isa) {
  try {
    narrowed_target(features, max_isa);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Target, TheWidestPathUpToTheLimit) {
  EXPECT_EQ(narrowed_target(everything(), "").isa, Isa::amx);
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const Target target = narrowed_target(everything(), name(isa));
    EXPECT_EQ(target.isa, isa);
    EXPECT_EQ(target.avx512_fp16, isa >= Isa::avx512_bf16);
    EXPECT_EQ(target.vector_bits(), isa == Isa::avx2 ? 256 : 512);
    EXPECT_EQ(target.vector_registers(), isa == Isa::avx2 ? 16 : 32);
  }
  CpuFeatures plain = everything();
  plain.avx512_bf16 = plain.avx512_fp16 = plain.amx = false;
  EXPECT_EQ(narrowed_target(plain, "").isa, Isa::avx512);
  EXPECT_EQ(narrowed_target(plain, "amx").isa, Isa::avx512) << "a limit above what is there changes nothing";
  plain.avx512 = false;
  EXPECT_EQ(narrowed_target(plain, "").isa, Isa::avx2);
}

TEST(Target, BelowTheFloorTheErrorNamesTheFeature) {
  const std::string rest = ", which compiled code needs (AVX2, FMA and F16C); the evaluator runs without it";
  CpuFeatures f = everything();
  f.avx2 = false;
  EXPECT_EQ(error_of(f, ""), "this machine lacks AVX2" + rest);
  f = everything();
  f.fma = false;
  EXPECT_EQ(error_of(f, "avx2"), "this machine lacks FMA" + rest);
  f = everything();
  f.f16c = false;
  EXPECT_EQ(error_of(f, ""), "this machine lacks F16C" + rest);
}

TEST(Target, UnknownLimit) {
  EXPECT_EQ(error_of(everything(), "sse2"),
            "target: unknown instruction set `sse2`, expected one of avx2, avx512, avx512_bf16, amx");
}

TEST(Target, Prints) {
  Target target{.isa = Isa::avx512_bf16, .l1_bytes = 48 << 10, .l2_bytes = 1 << 20, .l3_bytes = 32 << 20};
  EXPECT_EQ(to_string(target), "avx512_bf16 l1=48K l2=1024K l3=32M");
  target.avx512_fp16 = true;
  EXPECT_EQ(to_string(target), "avx512_bf16+fp16 l1=48K l2=1024K l3=32M");
}

// The kernel lists the same bits under "flags", hidden where it does not save the registers.
TEST(Target, FeaturesAgreeWithTheSystem) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(cpuinfo, line))
    if (line.starts_with("flags")) flags = line + " ";
  if (flags.empty()) GTEST_SKIP() << "no /proc/cpuinfo";
  const auto has = [&](const std::string& flag) { return flags.find(" " + flag + " ") != std::string::npos; };
  const CpuFeatures f = host_features(true);
  EXPECT_EQ(f.avx2, has("avx2"));
  EXPECT_EQ(f.fma, has("fma"));
  EXPECT_EQ(f.f16c, has("f16c"));
  EXPECT_EQ(f.avx512, has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl") && has("avx512cd"));
  EXPECT_EQ(f.avx512_bf16, f.avx512 && has("avx512_bf16"));
  EXPECT_EQ(f.avx512_fp16, f.avx512 && has("avx512_fp16"));
  EXPECT_LE(f.amx, has("amx_bf16"));
  EXPECT_FALSE(host_features(false).amx) << "tiles are used only when asked for";
}

TEST(Target, TheEnvironmentNarrowsTheHost) {
  const Target host = host_target("amx");
  EXPECT_GE(host.l1_bytes, 8 << 10);
  EXPECT_LE(host.l1_bytes, 1 << 20);
  EXPECT_GE(host.l2_bytes, host.l1_bytes);
  EXPECT_GE(host.l3_bytes, host.l2_bytes / 4);
  const char* before = std::getenv("BURIN_MAX_ISA");
  const std::string saved = before == nullptr ? "" : before;
  setenv("BURIN_MAX_ISA", "avx2", 1);
  EXPECT_EQ(host_target().isa, Isa::avx2);
  EXPECT_EQ(host_target("amx").isa, host.isa) << "an argument is stronger than the environment";
  setenv("BURIN_MAX_ISA", "sse", 1);
  std::string message;
  try {
    host_target();
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "BURIN_MAX_ISA: unknown instruction set `sse`, expected one of avx2, avx512, avx512_bf16, amx");
  setenv("BURIN_MAX_ISA", saved.c_str(), 1);
  if (before == nullptr) unsetenv("BURIN_MAX_ISA");
}

}  // namespace
}  // namespace burin::ir
