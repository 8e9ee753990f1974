// Compiles the vector-math routines alone, so that tests can run them and look at the object they become.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/vector_math/functions.h"

namespace burin::codegen {

enum class HalfConversion : std::uint8_t { f32_to_bf16, f64_to_bf16, bf16_to_f32, f32_to_f16, f64_to_f16, f16_to_f32 };

/// Every function and conversion for one number of lanes (1: scalar code) and one set of LLVM target features.
class MathProbe {
 public:
  MathProbe(int lanes, const std::string& features);
  ~MathProbe();
  MathProbe(const MathProbe&) = delete;
  MathProbe& operator=(const MathProbe&) = delete;

  /// Names that the object refers to and does not define.
  std::vector<std::string> undefined_symbols() const;
  /// The assembly of one function, for reading and counting.
  std::string assembly(MathFn fn, int width) const;

  /// out[k] = fn(x[k], y[k]), n a multiple of lanes. The host must have the features. y may be null for one argument.
  void run(MathFn fn, const float* x, const float* y, float* out, std::int64_t n);
  void run(MathFn fn, const double* x, const double* y, double* out, std::int64_t n);
  /// x and out as the conversion's name says, bf16 and f16 as 16-bit integers.
  void run(HalfConversion conversion, const void* x, void* out, std::int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// LLVM's names of the two instruction sets that generated code is made for.
const char* avx2_features();
const char* avx512_features();
/// Whether this machine can run code for such a set.
bool host_has(const std::string& features);

}  // namespace burin::codegen
