// Elementwise and compare ops of ops.def as LLVM instructions. Private to codegen/.
#pragma once
#include <span>

#include "ir/op.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace burin::codegen {

/// The op over scalars or vectors of equal length. Half types come and go as f32 values that the half type can hold
/// exactly; bool is i1. `operand` is the dtype of the operands (of the last one for select). Emits no call.
llvm::Value* emit_elementwise(llvm::IRBuilderBase& b, ir::Op op, DType operand, DType result,
                              std::span<llvm::Value* const> args);

// emit/arithmetic.cpp: conversions
/// Any dtype to any dtype by the rules of Op::convert; half types as f32 on both sides.
llvm::Value* emit_convert(llvm::IRBuilderBase& b, llvm::Value* x, DType from, DType to);
/// f32 rounded to the nearest value of a half type, still as f32. The one such routine.
llvm::Value* round_to_half(llvm::IRBuilderBase& b, llvm::Value* x, DType half);
/// The 16 bits of an f32 that the half type can hold exactly, and back.
llvm::Value* half_bits(llvm::IRBuilderBase& b, llvm::Value* x, DType half);
llvm::Value* half_value(llvm::IRBuilderBase& b, llvm::Value* bits, DType half);

// emit/arithmetic.cpp: integer ops with an edge
llvm::Value* emit_int_div(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* emit_int_rem(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed);
llvm::Value* emit_int_pow(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed);
enum class Shift { left, right_logical, right_arithmetic };
llvm::Value* emit_shift(llvm::IRBuilderBase& b, Shift shift, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_threefry2x32(llvm::IRBuilderBase& b, llvm::Value* key, llvm::Value* counter);

// emit/arithmetic.cpp: the remainder
/// x - y * trunc(x / y), exact, in f32 or f64.
llvm::Value* emit_float_rem(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);

}  // namespace burin::codegen
