// Integer ops with an edge: what the machine traps on or leaves undefined has the value that ops.def gives it.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <array>

#include "codegen/emit/elementwise.h"

namespace burin::codegen {

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

}  // namespace burin::codegen
