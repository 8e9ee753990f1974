// Conversions, and arithmetic with an edge.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <array>

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
  if (half == f16) {
    // Without the fence LLVM moves the rounding into a copysign whose sign comes from an f64, and then rounds that: a library call.
    llvm::Value* fenced = b.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {x->getType()}, {x});
    return b.CreateFPExt(b.CreateFPTrunc(fenced, like(x->getType(), b.getHalfTy())), x->getType());
  }
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

// Integer ops with an edge: what the machine traps on or leaves undefined has the value that ops.def gives it.

// Divides by 1 where the divisor is 0 or INT_MIN / -1 would overflow: INT_MIN / 1 is the wanted INT_MIN.
llvm::Value* emit_int_div(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Type* type = y->getType();
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* minus_one = llvm::Constant::getAllOnesValue(type);
  llvm::Value* by_zero = b.CreateICmpEQ(y, llvm::Constant::getNullValue(type));
  llvm::Value* unsafe = by_zero;
  if (is_signed) {
    llvm::Value* lowest = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
    unsafe = b.CreateOr(unsafe, b.CreateAnd(b.CreateICmpEQ(x, lowest), b.CreateICmpEQ(y, minus_one)));
  }
  llvm::Value* divisor = b.CreateSelect(unsafe, one, y);
  llvm::Value* quotient = is_signed ? b.CreateSDiv(x, divisor) : b.CreateUDiv(x, divisor);
  return b.CreateSelect(by_zero, minus_one, quotient);
}

llvm::Value* emit_int_rem(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Type* type = y->getType();
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b.CreateICmpEQ(y, llvm::Constant::getNullValue(type));
  llvm::Value* unsafe = by_zero;  // anything rem -1 is 0, as is anything rem 1
  if (is_signed) unsafe = b.CreateOr(unsafe, b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type)));
  llvm::Value* divisor = b.CreateSelect(unsafe, one, y);
  llvm::Value* remainder = is_signed ? b.CreateSRem(x, divisor) : b.CreateURem(x, divisor);
  return b.CreateSelect(by_zero, x, remainder);
}

// Square and multiply, one step per bit of the exponent, in a loop of the machine.
llvm::Value* emit_int_pow(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Type* type = x->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  llvm::Constant* one = llvm::ConstantInt::get(type, 1);
  llvm::Constant* minus_one = llvm::Constant::getAllOnesValue(type);
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* body = llvm::BasicBlock::Create(b.getContext(), "pow", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "pow.done", function);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  llvm::PHINode* step = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::PHINode* base = b.CreatePHI(type, 2);
  llvm::PHINode* exponent = b.CreatePHI(type, 2);
  llvm::PHINode* power = b.CreatePHI(type, 2);
  step->addIncoming(b.getInt32(0), before);
  base->addIncoming(x, before);
  exponent->addIncoming(y, before);
  power->addIncoming(one, before);
  llvm::Value* odd = b.CreateICmpNE(b.CreateAnd(exponent, one), zero);
  llvm::Value* next_power = b.CreateSelect(odd, b.CreateMul(power, base), power);
  llvm::Value* next_step = b.CreateAdd(step, b.getInt32(1));
  step->addIncoming(next_step, body);
  base->addIncoming(b.CreateMul(base, base), body);
  exponent->addIncoming(b.CreateLShr(exponent, one), body);
  power->addIncoming(next_power, body);
  b.CreateCondBr(b.CreateICmpEQ(next_step, b.getInt32(type->getScalarSizeInBits())), done, body);
  b.SetInsertPoint(done);
  if (!is_signed) return next_power;
  llvm::Value* is_one = b.CreateICmpEQ(x, one);
  llvm::Value* is_minus_one = b.CreateICmpEQ(x, minus_one);
  llvm::Value* of_minus_one = b.CreateSelect(b.CreateICmpNE(b.CreateAnd(y, one), zero), minus_one, one);
  llvm::Value* inverse = b.CreateSelect(is_one, one, b.CreateSelect(is_minus_one, of_minus_one, zero));
  return b.CreateSelect(b.CreateICmpSLT(y, zero), inverse, next_power);
}

llvm::Value* emit_shift(llvm::IRBuilderBase& b, Shift shift, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  const unsigned bits = type->getScalarSizeInBits();
  llvm::Value* in_range = b.CreateICmpULT(y, llvm::ConstantInt::get(type, bits));
  llvm::Value* most = llvm::ConstantInt::get(type, bits - 1);
  llvm::Value* amount = b.CreateSelect(in_range, y, most);
  if (shift == Shift::right_arithmetic) return b.CreateAShr(x, amount);
  llvm::Value* shifted = shift == Shift::left ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
  return b.CreateSelect(in_range, shifted, llvm::Constant::getNullValue(type));
}

// Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 (2011): 20 rounds, a key injection after four.
llvm::Value* emit_threefry2x32(llvm::IRBuilderBase& b, llvm::Value* key, llvm::Value* counter) {
  llvm::Type* pair = key->getType();
  llvm::Type* word = b.getInt32Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(pair))
    word = llvm::FixedVectorType::get(word, vector->getNumElements());
  auto high = [&](llvm::Value* v) { return b.CreateTrunc(b.CreateLShr(v, 32), word); };
  auto low = [&](llvm::Value* v) { return b.CreateTrunc(v, word); };
  auto number = [&](std::uint32_t n) { return llvm::ConstantInt::get(word, n); };
  llvm::Value* keys[3] = {high(key), low(key), nullptr};
  keys[2] = b.CreateXor(b.CreateXor(keys[0], keys[1]), number(0x1bd11bda));
  llvm::Value* x0 = b.CreateAdd(high(counter), keys[0]);
  llvm::Value* x1 = b.CreateAdd(low(counter), keys[1]);
  constexpr std::array<std::array<std::uint32_t, 4>, 2> rotations = {{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (std::uint32_t rotation : rotations[group % 2]) {
      x0 = b.CreateAdd(x0, x1);
      x1 = b.CreateIntrinsic(llvm::Intrinsic::fshl, {word}, {x1, x1, number(rotation)});
      x1 = b.CreateXor(x1, x0);
    }
    x0 = b.CreateAdd(x0, keys[(group + 1) % 3]);
    x1 = b.CreateAdd(b.CreateAdd(x1, keys[(group + 2) % 3]), number(group + 1));
  }
  return b.CreateOr(b.CreateShl(b.CreateZExt(x0, pair), 32), b.CreateZExt(x1, pair));
}

// The exact floating remainder by long division on the mantissas: one bit of the quotient a step, as many steps as the
// exponents differ. No library call, no rounding.
llvm::Value* emit_float_rem(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) {
  llvm::Type* real = x->getType();
  const unsigned bits = real->getScalarSizeInBits();
  const unsigned mantissa = bits == 32 ? 23 : 52;
  llvm::Type* type = b.getIntNTy(bits);
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(real))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  auto number = [&](std::uint64_t n) { return llvm::ConstantInt::get(type, n); };
  llvm::Constant* zero = number(0);
  llvm::Constant* one = number(1);
  llvm::Constant* implicit = number(std::uint64_t{1} << mantissa);
  llvm::Constant* infinity = llvm::ConstantInt::get(type, bits == 32 ? 0x7f800000 : 0x7ff0000000000000);
  auto any = [&](llvm::Value* v) { return v->getType()->isVectorTy() ? b.CreateOrReduce(v) : v; };

  llvm::Constant* sign_mask = llvm::ConstantInt::get(type, llvm::APInt::getSignMask(bits));
  llvm::Value* x_bits = b.CreateBitCast(x, type);
  llvm::Value* sign = b.CreateAnd(x_bits, sign_mask);
  llvm::Value* ax = b.CreateXor(x_bits, sign);
  llvm::Value* ay = b.CreateAnd(b.CreateBitCast(y, type), b.CreateNot(sign_mask));
  // value = m * 2^(e - 1 - bias...) with e >= 1; a denormal has e = 1 and no implicit bit.
  auto split = [&](llvm::Value* a, llvm::Value** e, llvm::Value** m) {
    llvm::Value* exponent = b.CreateLShr(a, mantissa);
    llvm::Value* fraction = b.CreateAnd(a, number((std::uint64_t{1} << mantissa) - 1));
    llvm::Value* normal = b.CreateICmpNE(exponent, zero);
    *e = b.CreateSelect(normal, exponent, one);
    *m = b.CreateSelect(normal, b.CreateOr(fraction, implicit), fraction);
  };
  llvm::Value *ex, *mx, *ey, *my;
  split(ax, &ex, &mx);
  split(ay, &ey, &my);
  // The divisor's highest bit moves to the implicit bit: a remainder is then below twice the divisor at every step.
  llvm::Value* lift = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, my, b.getFalse()), number(bits - 1 - mantissa));
  lift = b.CreateSelect(b.CreateICmpEQ(ay, zero), zero, lift);
  my = b.CreateShl(my, lift);
  ey = b.CreateSub(ey, lift);
  llvm::Value* steps = b.CreateSub(ex, ey);
  steps = b.CreateSelect(b.CreateOr(b.CreateICmpULT(ax, ay), b.CreateICmpUGE(ax, infinity)), zero, steps);
  steps = b.CreateSelect(b.CreateICmpEQ(ay, zero), zero, steps);

  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "rem", function);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "rem.step", function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "rem.done", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* r = b.CreatePHI(type, 2);
  llvm::PHINode* left = b.CreatePHI(type, 2);
  r->addIncoming(mx, before);
  left->addIncoming(steps, before);
  llvm::Value* active = b.CreateICmpSGT(left, zero);
  llvm::Value* reduced = b.CreateSelect(b.CreateICmpUGE(r, my), b.CreateSub(r, my), r);
  b.CreateCondBr(any(active), body, done);
  b.SetInsertPoint(body);
  r->addIncoming(b.CreateSelect(active, b.CreateShl(reduced, one), r), body);
  left->addIncoming(b.CreateSub(left, one), body);
  b.CreateBr(head);

  b.SetInsertPoint(done);
  // An exponent below 1 goes back to 1: the remainder is a multiple of the smallest denormal.
  llvm::Value* drop = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(one, ey), zero);
  llvm::Value* m = b.CreateLShr(reduced, drop);
  llvm::Value* e = b.CreateAdd(ey, drop);
  llvm::Value* room = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, m, b.getFalse()), number(bits - 1 - mantissa));
  llvm::Value* rise = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, room, b.CreateSub(e, one));
  m = b.CreateShl(m, rise);
  e = b.CreateSub(e, rise);
  llvm::Value* magnitude = b.CreateAdd(b.CreateShl(b.CreateSub(e, one), mantissa), m);
  magnitude = b.CreateSelect(b.CreateICmpEQ(m, zero), zero, magnitude);
  magnitude = b.CreateSelect(b.CreateICmpULT(ax, ay), ax, magnitude);
  llvm::Value* result = b.CreateBitCast(b.CreateOr(magnitude, sign), real);
  llvm::Value* undefined = b.CreateOr(b.CreateOr(b.CreateICmpUGE(ax, infinity), b.CreateICmpUGT(ay, infinity)),
                                      b.CreateICmpEQ(ay, zero));
  return b.CreateSelect(undefined, llvm::ConstantFP::getNaN(real), result);
}

}  // namespace burin::codegen
