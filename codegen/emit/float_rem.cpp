// The exact floating remainder by long division on the mantissas: one bit of the quotient a step, as many steps as the
// exponents differ. No library call, no rounding.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/emit/elementwise.h"

namespace burin::codegen {

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
