// The vector-math routines as LLVM IR.
#pragma once
#include "codegen/vector_math/functions.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace burin::codegen {

/// fn(x) or fn(x, y) at the builder's insertion point, in its block, without branches, memory or calls of libraries. x
/// (and y, of the same type) is float, double, or a fixed vector of either; y is null for functions of one argument.
/// Scalar and vector code give the same bits. The target needs AVX2 and FMA at least.
llvm::Value* emit_math(llvm::IRBuilderBase& builder, MathFn fn, llvm::Value* x, llvm::Value* y = nullptr);

/// float or double (or vectors) -> i16 holding the bfloat16, rounded once to nearest even; NaN is the quiet one of its sign.
llvm::Value* emit_to_bf16(llvm::IRBuilderBase& builder, llvm::Value* x);
/// i16 (or a vector) holding bfloat16 -> float, exactly.
llvm::Value* emit_from_bf16(llvm::IRBuilderBase& builder, llvm::Value* bits);
/// float or double (or vectors) -> i16 holding the binary16, rounded once to nearest even. The target needs F16C.
llvm::Value* emit_to_f16(llvm::IRBuilderBase& builder, llvm::Value* x);
/// i16 (or a vector) holding binary16 -> float, exactly. The target needs F16C.
llvm::Value* emit_from_f16(llvm::IRBuilderBase& builder, llvm::Value* bits);

}  // namespace burin::codegen
