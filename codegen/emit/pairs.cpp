#include "codegen/emit/pairs.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace burin::codegen {
namespace {

constexpr std::uint32_t all_but_sign = 0x7fffffff, sign = 0x80000000, smallest_normal = 0x00800000;

llvm::Constant* word(llvm::Type* like, std::uint32_t value) {
  auto* vector = llvm::cast<llvm::FixedVectorType>(like);
  return llvm::ConstantInt::get(llvm::FixedVectorType::get(llvm::Type::getInt32Ty(like->getContext()), vector->getNumElements()), value);
}

/// x, or a zero of its sign where `size` is below `limit`, both as the bits of floats.
llvm::Value* zero_below(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* size, std::uint32_t limit) {
  llvm::Type* type = x->getType();
  llvm::Type* bits = word(type, 0)->getType();
  llvm::Value* raw = b.CreateBitCast(x, bits);
  llvm::Value* magnitude = b.CreateAnd(b.CreateBitCast(size, bits), word(type, all_but_sign));
  llvm::Value* below = b.CreateICmpULT(magnitude, word(type, limit));
  return b.CreateBitCast(b.CreateSelect(below, b.CreateAnd(raw, word(type, sign)), raw), type);
}

llvm::Value* flushed(llvm::IRBuilderBase& b, llvm::Value* x) { return zero_below(b, x, x, smallest_normal); }

/// Whether the result is below the normal numbers is asked 64 powers of two higher, where it has all of its 24 bits.
llvm::Value* flushed_multiply_add(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  llvm::Type* type = z->getType();
  llvm::Constant* higher = llvm::ConstantFP::get(type, 0x1p64);
  constexpr std::uint32_t limit = smallest_normal + (64u << 23);
  llvm::Value* sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
  llvm::Value* raised = b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b.CreateFMul(x, higher), y, b.CreateFMul(z, higher)});
  return zero_below(b, sum, raised, limit);
}

llvm::Value* high_half(llvm::IRBuilderBase& b, llvm::Value* pairs, llvm::Type* type) {
  return flushed(b, b.CreateBitCast(b.CreateAnd(pairs, word(type, 0xffff0000)), type));
}

llvm::Value* low_half(llvm::IRBuilderBase& b, llvm::Value* pairs, llvm::Type* type) {
  return flushed(b, b.CreateBitCast(b.CreateShl(pairs, word(type, 16)), type));
}

}  // namespace

llvm::Value* add_pairs(llvm::IRBuilderBase& b, const ir::Target& target, llvm::Value* sum, llvm::Value* left, llvm::Value* right) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const unsigned width = type->getNumElements();
  if (target.multiplies_bf16_pairs()) {
    const llvm::Intrinsic::ID id = width == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                                   : width == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                                : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    llvm::Type* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * width);
    return b.CreateIntrinsic(id, {sum, b.CreateBitCast(left, pairs), b.CreateBitCast(right, pairs)});
  }
  llvm::Value* high = flushed_multiply_add(b, high_half(b, left, type), high_half(b, right, type), flushed(b, sum));
  return flushed_multiply_add(b, low_half(b, left, type), low_half(b, right, type), high);
}

PairSums add_pairs(llvm::IRBuilderBase& b, const PairSums& sums, llvm::Value* left, llvm::Value* right) {
  llvm::Type* type = sums.low->getType();
  return {flushed_multiply_add(b, low_half(b, left, type), low_half(b, right, type), sums.low),
          flushed_multiply_add(b, high_half(b, left, type), high_half(b, right, type), sums.high)};
}

llvm::Value* added_to(llvm::IRBuilderBase& b, const PairSums& sums, llvm::Value* sum) {
  return flushed(b, b.CreateFAdd(flushed(b, sum), flushed(b, b.CreateFAdd(sums.low, sums.high))));
}

}  // namespace burin::codegen
