#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/emit/elementwise.h"

namespace burin::codegen {

namespace {

llvm::Type* like(llvm::Type* shape, llvm::Type* element) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape))
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  return element;
}

llvm::Type* register_type(llvm::IRBuilderBase& b, DType dtype, llvm::Type* shape) {
  if (dtype == bool_) return like(shape, b.getInt1Ty());
  if (dtype == f64) return like(shape, b.getDoubleTy());
  if (is_float(dtype)) return like(shape, b.getFloatTy());
  return like(shape, b.getIntNTy(static_cast<unsigned>(8 * size_of(dtype))));
}

/// f64 to f32 rounded to odd: a later rounding to a half type sees whether anything was cut off, and so rounds once.
llvm::Value* narrow_to_odd(llvm::IRBuilderBase& b, llvm::Value* x) {
  llvm::Type* single = like(x->getType(), b.getFloatTy());
  llvm::Type* integer = like(x->getType(), b.getInt32Ty());
  llvm::Value* nearest = b.CreateFPTrunc(x, single);
  llvm::Value* back = b.CreateFPExt(nearest, x->getType());
  llvm::Value* bits = b.CreateBitCast(nearest, integer);
  llvm::Value* one = llvm::ConstantInt::get(integer, 1);
  llvm::Value* beyond = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                        b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  llvm::Value* towards_zero = b.CreateSelect(beyond, b.CreateSub(bits, one), bits);
  llvm::Value* inexact = b.CreateFCmpONE(back, x);
  return b.CreateBitCast(b.CreateSelect(inexact, b.CreateOr(towards_zero, one), bits), single);
}

/// A 64-bit integer as f64 where low bits that f64 cannot hold are folded into one that it can.
llvm::Value* int64_to_odd_f64(llvm::IRBuilderBase& b, llvm::Value* x, bool is_signed) {
  llvm::Type* type = x->getType();
  llvm::Value* magnitude = is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
  llvm::Value* large = b.CreateICmpUGE(magnitude, llvm::ConstantInt::get(type, std::uint64_t{1} << 52));
  llvm::Value* low = b.CreateAnd(x, llvm::ConstantInt::get(type, 0xfff));
  llvm::Value* sticky = b.CreateSelect(b.CreateICmpNE(low, llvm::Constant::getNullValue(type)),
                                       llvm::ConstantInt::get(type, 0x800), llvm::Constant::getNullValue(type));
  llvm::Value* folded = b.CreateOr(b.CreateAnd(x, llvm::ConstantInt::getSigned(type, -0x1000)), sticky);
  llvm::Value* source = b.CreateSelect(large, folded, x);
  llvm::Type* wide = like(type, b.getDoubleTy());
  return is_signed ? b.CreateSIToFP(source, wide) : b.CreateUIToFP(source, wide);
}

llvm::Value* int_to_half(llvm::IRBuilderBase& b, llvm::Value* x, DType from, DType half) {
  const bool is_signed = is_signed_int(from);
  if (from == bool_ || size_of(from) <= 2) {  // exact in f32
    llvm::Type* single = like(x->getType(), b.getFloatTy());
    return round_to_half(b, is_signed ? b.CreateSIToFP(x, single) : b.CreateUIToFP(x, single), half);
  }
  llvm::Type* wide = like(x->getType(), b.getDoubleTy());
  llvm::Value* exact = size_of(from) == 8 ? int64_to_odd_f64(b, x, is_signed)
                       : is_signed        ? b.CreateSIToFP(x, wide)
                                          : b.CreateUIToFP(x, wide);
  return round_to_half(b, narrow_to_odd(b, exact), half);
}

}  // namespace

// Integer arithmetic throughout for bfloat16: the instruction for it flushes denormals.
llvm::Value* round_to_half(llvm::IRBuilderBase& b, llvm::Value* x, DType half) {
  if (half == f16) return b.CreateFPExt(b.CreateFPTrunc(x, like(x->getType(), b.getHalfTy())), x->getType());
  llvm::Type* integer = like(x->getType(), b.getInt32Ty());
  llvm::Value* bits = b.CreateBitCast(x, integer);
  llvm::Value* lowest_kept = b.CreateAnd(b.CreateLShr(bits, 16), llvm::ConstantInt::get(integer, 1));
  llvm::Value* rounded = b.CreateAdd(bits, b.CreateAdd(lowest_kept, llvm::ConstantInt::get(integer, 0x7fff)));
  llvm::Value* sign = b.CreateAnd(bits, llvm::ConstantInt::get(integer, 0x80000000));
  llvm::Value* quiet = b.CreateOr(sign, llvm::ConstantInt::get(integer, 0x7fc00000));
  llvm::Value* either = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  return b.CreateBitCast(b.CreateAnd(either, llvm::ConstantInt::get(integer, 0xffff0000)), x->getType());
}

llvm::Value* half_bits(llvm::IRBuilderBase& b, llvm::Value* x, DType half) {
  llvm::Type* stored = like(x->getType(), b.getInt16Ty());
  if (half == f16) return b.CreateBitCast(b.CreateFPTrunc(x, like(x->getType(), b.getHalfTy())), stored);
  llvm::Value* bits = b.CreateBitCast(x, like(x->getType(), b.getInt32Ty()));
  return b.CreateTrunc(b.CreateLShr(bits, 16), stored);
}

llvm::Value* half_value(llvm::IRBuilderBase& b, llvm::Value* bits, DType half) {
  llvm::Type* single = like(bits->getType(), b.getFloatTy());
  if (half == f16) return b.CreateFPExt(b.CreateBitCast(bits, like(bits->getType(), b.getHalfTy())), single);
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, like(bits->getType(), b.getInt32Ty())), 16), single);
}

llvm::Value* emit_convert(llvm::IRBuilderBase& b, llvm::Value* x, DType from, DType to) {
  if (from == to) return x;
  llvm::Type* type = register_type(b, to, x->getType());
  if (is_float(from)) {
    if (to == bool_) return b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));
    if (is_half(to)) return round_to_half(b, from == f64 ? narrow_to_odd(b, x) : x, to);
    if (to == f64) return b.CreateFPExt(x, type);
    if (to == f32) return from == f64 ? b.CreateFPTrunc(x, type) : x;
    return b.CreateIntrinsic(is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                             {type, x->getType()}, {x});
  }
  const bool is_signed = is_signed_int(from);
  if (is_half(to)) return int_to_half(b, x, from, to);
  if (is_float(to)) return is_signed ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  if (to == bool_) return b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  return is_signed ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

}  // namespace burin::codegen
