#include "codegen/vector_math/emit_math.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/check.h"
#include "codegen/vector_math/apply.h"
#include "codegen/vector_math/convert.h"

namespace burin::codegen {
namespace {

/// A truth value: i1 or a vector of it.
struct Truth {
  llvm::IRBuilderBase* b;
  llvm::Value* v;

  friend Truth operator&(Truth x, Truth y) { return {x.b, x.b->CreateAnd(x.v, y.v)}; }
  friend Truth operator|(Truth x, Truth y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
  Truth operator!() const { return {b, b->CreateNot(v)}; }
};

/// An integer of the machine's width; Width only keeps widths apart.
template <int Width>
struct Integer {
  llvm::IRBuilderBase* b;
  llvm::Value* v;

  friend Integer operator+(Integer x, Integer y) { return {x.b, x.b->CreateAdd(x.v, y.v)}; }
  friend Integer operator-(Integer x, Integer y) { return {x.b, x.b->CreateSub(x.v, y.v)}; }
  friend Integer operator&(Integer x, Integer y) { return {x.b, x.b->CreateAnd(x.v, y.v)}; }
  friend Integer operator|(Integer x, Integer y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
  friend Integer operator^(Integer x, Integer y) { return {x.b, x.b->CreateXor(x.v, y.v)}; }
  friend Integer operator<<(Integer x, int n) { return {x.b, x.b->CreateShl(x.v, n)}; }
  friend Integer operator>>(Integer x, int n) { return {x.b, x.b->CreateLShr(x.v, n)}; }
  friend Truth operator==(Integer x, Integer y) { return {x.b, x.b->CreateICmpEQ(x.v, y.v)}; }
};

template <int Width>
struct Float {
  llvm::IRBuilderBase* b;
  llvm::Value* v;

  friend Float operator+(Float x, Float y) { return {x.b, x.b->CreateFAdd(x.v, y.v)}; }
  friend Float operator-(Float x, Float y) { return {x.b, x.b->CreateFSub(x.v, y.v)}; }
  friend Float operator*(Float x, Float y) { return {x.b, x.b->CreateFMul(x.v, y.v)}; }
  friend Float operator/(Float x, Float y) { return {x.b, x.b->CreateFDiv(x.v, y.v)}; }
  Float operator-() const { return {b, b->CreateFNeg(v)}; }
  friend Truth operator<(Float x, Float y) { return {x.b, x.b->CreateFCmpOLT(x.v, y.v)}; }
  friend Truth operator<=(Float x, Float y) { return {x.b, x.b->CreateFCmpOLE(x.v, y.v)}; }
  friend Truth operator>(Float x, Float y) { return {x.b, x.b->CreateFCmpOGT(x.v, y.v)}; }
  friend Truth operator>=(Float x, Float y) { return {x.b, x.b->CreateFCmpOGE(x.v, y.v)}; }
  friend Truth operator==(Float x, Float y) { return {x.b, x.b->CreateFCmpOEQ(x.v, y.v)}; }
};

/// The function says that it wants registers of 512 bits: it is for AVX-512.
bool has_wide_registers(llvm::IRBuilderBase& b) {
  return b.GetInsertBlock()->getParent()->getFnAttribute("prefer-vector-width").getValueAsString() == "512";
}

/// x 2^n lane by lane, register by register of 512 bits; null for other numbers of lanes.
llvm::Value* scaled_by_powers(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* n) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr || !has_wide_registers(b)) return nullptr;
  const bool is_single = vector->getElementType()->isFloatTy();
  const unsigned lanes = vector->getNumElements(), most = is_single ? 16 : 8;
  if (lanes % most != 0) return nullptr;
  const llvm::Intrinsic::ID id = is_single ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512 : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  constexpr std::uint32_t thread_rounding = 4;
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < lanes; first += most) {
    const auto part = [&](llvm::Value* v) {
      return lanes == most ? v : b.CreateShuffleVector(v, llvm::createSequentialMask(first, most, 0));
    };
    llvm::Value* all = llvm::Constant::getAllOnesValue(b.getIntNTy(most));
    llvm::Value* none = llvm::PoisonValue::get(llvm::FixedVectorType::get(vector->getElementType(), most));
    parts.push_back(b.CreateIntrinsic(id, {}, {part(x), part(n), none, all, b.getInt32(thread_rounding)}));
  }
  return llvm::concatenateVectors(b, parts);
}

/// table[index & 15] by permutations of registers: of 16 lanes where the function says that it wants registers of 512 bits, else of 8.
llvm::Value* pick_of_16(llvm::IRBuilderBase& b, const std::array<double, 16>& table, llvm::Value* index) {
  std::vector<float> numbers(table.begin(), table.end());
  const auto constant = [&](std::size_t first, std::size_t count) {
    return llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef(numbers).slice(first, count));
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  if (vector == nullptr) {
    llvm::Value* one = b.CreateInsertElement(llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), 8)), index, std::uint64_t{0});
    return b.CreateExtractElement(pick_of_16(b, table, one), std::uint64_t{0});
  }
  const unsigned lanes = vector->getNumElements();
  const unsigned most = has_wide_registers(b) && lanes >= 16 ? 16 : 8;
  if (lanes != most) {  // in parts, the last filled up
    std::vector<llvm::Value*> parts;
    for (unsigned first = 0; first < lanes; first += most) {
      const unsigned used = std::min(most, lanes - first);
      parts.push_back(pick_of_16(b, table, b.CreateShuffleVector(index, llvm::createSequentialMask(first, used, most - used))));
    }
    return b.CreateShuffleVector(llvm::concatenateVectors(b, parts), llvm::createSequentialMask(0, lanes, 0));
  }
  if (most == 16)
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {constant(0, 16), index});
  const auto half = [&](std::size_t first) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {constant(first, 8), index});
  };
  llvm::Value* upper = b.CreateICmpSLT(b.CreateShl(index, 28), llvm::Constant::getNullValue(index->getType()));
  return b.CreateSelect(upper, half(8), half(0));
}

/// The abstract machine over LLVM values; `shape` is any value with the number of lanes wanted.
template <int Width>
class LlvmMachine {
 public:
  using F = Float<Width>;
  using I = Integer<Width>;
  using B = Truth;
  using Wide = LlvmMachine<64>;
  static constexpr int width = Width;

  LlvmMachine(llvm::IRBuilderBase& builder, llvm::Type* shape) : b_(&builder), shape_(shape) {
    llvm::LLVMContext& context = builder.getContext();
    float_ = like_shape(Width == 32 ? llvm::Type::getFloatTy(context) : llvm::Type::getDoubleTy(context));
    integer_ = like_shape(llvm::Type::getIntNTy(context, Width));
  }

  F value(llvm::Value* v) const { return {b_, v}; }
  I integer(llvm::Value* v) const { return {b_, v}; }
  F f(double c) const { return {b_, llvm::ConstantFP::get(float_, c)}; }
  I i(std::uint64_t c) const { return {b_, llvm::ConstantInt::get(integer_, c)}; }

  F fma(F x, F y, F z) const { return call(llvm::Intrinsic::fma, {x.v, y.v, z.v}); }
  F abs(F x) const { return call(llvm::Intrinsic::fabs, {x.v}); }
  F sqrt(F x) const { return call(llvm::Intrinsic::sqrt, {x.v}); }
  F floor(F x) const { return call(llvm::Intrinsic::floor, {x.v}); }
  F round_even(F x) const { return call(llvm::Intrinsic::roundeven, {x.v}); }
  F copysign(F magnitude, F sign) const { return call(llvm::Intrinsic::copysign, {magnitude.v, sign.v}); }
  B is_nan(F x) const { return {b_, b_->CreateFCmpUNO(x.v, x.v)}; }
  F select(B c, F x, F y) const { return {b_, b_->CreateSelect(c.v, x.v, y.v)}; }
  I select(B c, I x, I y) const { return {b_, b_->CreateSelect(c.v, x.v, y.v)}; }
  I bits(F x) const { return {b_, b_->CreateBitCast(x.v, integer_)}; }
  F from_bits(I x) const { return {b_, b_->CreateBitCast(x.v, float_)}; }

  F pick(const std::array<double, 16>& table, I index) const { return {b_, pick_of_16(*b_, table, index.v)}; }
  std::optional<F> scaled(F x, F n) const {
    llvm::Value* result = scaled_by_powers(*b_, x.v, n.v);
    return result == nullptr ? std::nullopt : std::optional(F{b_, result});
  }

  Wide wide() const { return Wide(*b_, shape_); }
  Float<64> widen(F x) const { return {b_, b_->CreateFPExt(x.v, like_shape(b_->getDoubleTy()))}; }
  F narrow(Float<64> x) const { return {b_, b_->CreateFPTrunc(x.v, float_)}; }
  I narrow_bits(Integer<64> x) const { return {b_, b_->CreateTrunc(x.v, integer_)}; }

  llvm::Type* like_shape(llvm::Type* scalar) const { return shape_->getWithNewType(scalar); }

 private:
  F call(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> operands) const {
    return {b_, b_->CreateIntrinsic(id, {float_}, operands)};
  }

  llvm::IRBuilderBase* b_;
  llvm::Type* shape_;
  llvm::Type* float_;
  llvm::Type* integer_;
};

/// Clears the builder's fast-math flags for a while: routines mean exactly what they say.
class ExactMath {
 public:
  explicit ExactMath(llvm::IRBuilderBase& builder) : guard_(builder) { builder.clearFastMathFlags(); }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

/// x as float; a double is rounded to odd, ready for one more rounding.
llvm::Value* float_for_rounding(LlvmMachine<32>& m, llvm::Value* x) {
  if (x->getType()->getScalarType()->isFloatTy()) return x;
  BURIN_CHECK(x->getType()->getScalarType()->isDoubleTy());
  return math::round_to_odd(m, m.wide().value(x)).v;
}

}  // namespace

llvm::Value* emit_math(llvm::IRBuilderBase& builder, MathFn fn, llvm::Value* x, llvm::Value* y) {
  BURIN_CHECK((y != nullptr) == (math_arity(fn) == 2));
  BURIN_CHECK(y == nullptr || y->getType() == x->getType());
  ExactMath exact(builder);
  auto emit = [&](auto machine) { return math::apply(machine, fn, machine.value(x), machine.value(y ? y : x)).v; };
  llvm::Type* scalar = x->getType()->getScalarType();
  if (scalar->isFloatTy()) return emit(LlvmMachine<32>(builder, x->getType()));
  BURIN_CHECK(scalar->isDoubleTy());
  return emit(LlvmMachine<64>(builder, x->getType()));
}

llvm::Value* emit_to_bf16(llvm::IRBuilderBase& builder, llvm::Value* x) {
  ExactMath exact(builder);
  LlvmMachine<32> m(builder, x->getType());
  auto bits = math::bf16_bits(m, m.value(float_for_rounding(m, x)));
  return builder.CreateTrunc(bits.v, m.like_shape(builder.getInt16Ty()));
}

llvm::Value* emit_from_bf16(llvm::IRBuilderBase& builder, llvm::Value* bits) {
  LlvmMachine<32> m(builder, bits->getType());
  auto wide = m.integer(builder.CreateZExt(bits, m.like_shape(builder.getInt32Ty())));
  return math::bf16_value(m, wide).v;
}

llvm::Value* emit_to_f16(llvm::IRBuilderBase& builder, llvm::Value* x) {
  ExactMath exact(builder);
  LlvmMachine<32> m(builder, x->getType());
  llvm::Value* half = builder.CreateFPTrunc(float_for_rounding(m, x), m.like_shape(builder.getHalfTy()));
  return builder.CreateBitCast(half, m.like_shape(builder.getInt16Ty()));
}

llvm::Value* emit_from_f16(llvm::IRBuilderBase& builder, llvm::Value* bits) {
  ExactMath exact(builder);
  LlvmMachine<32> m(builder, bits->getType());
  llvm::Value* half = builder.CreateBitCast(bits, m.like_shape(builder.getHalfTy()));
  return builder.CreateFPExt(half, m.like_shape(builder.getFloatTy()));
}

}  // namespace burin::codegen
