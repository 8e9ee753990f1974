// One overload of emit() per elementwise op; a missing one is a compile error at emit_elementwise below.
#include "codegen/emit/elementwise.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <concepts>

#include "base/check.h"
#include "codegen/vector_math/emit_math.h"

namespace burin::codegen {

namespace {

using ir::Op;
using ir::Tag;
using llvm::Intrinsic::ID;
using llvm::Value;

struct Args {
  llvm::IRBuilderBase& b;
  DType dtype;   // of the operands; half types are f32 here, and rounded by the caller
  DType result;
  std::span<Value* const> x;

  bool real() const { return is_float(dtype); }
  bool is_signed() const { return is_signed_int(dtype); }
  bool boolean() const { return dtype == bool_; }
  llvm::Type* type() const { return x.back()->getType(); }
  Value* operator[](std::size_t i) const { return x[i]; }
  Value* zero() const { return llvm::Constant::getNullValue(type()); }
  Value* number(double value) const { return llvm::ConstantFP::get(type(), value); }
  Value* unary(ID id) const { return b.CreateUnaryIntrinsic(id, x[0]); }
  Value* binary(ID id, Value* left, Value* right) const { return b.CreateBinaryIntrinsic(id, left, right); }
};

/// An op that a dtype does not have; shape inference has refused it.
Value* no_rule(const Args& a, Op op) {
  BURIN_CHECK(false, std::string("no machine code for ") + std::string(ir::name(op)) + " of " + std::string(name(a.dtype)));
  return nullptr;
}

/// The larger (smaller) of two floats. The machine's max(x, y) gives y for two zeros and for NaN: both orders, joined bit by
/// bit, leave the zero of the right sign; NaN is put in afterwards. Shorter a chain than what llvm.maximum becomes.
Value* extremum(const Args& a, bool largest, Value* x, Value* y) {
  if (llvm::isa<llvm::Constant>(x) || llvm::isa<llvm::Constant>(y))
    return a.binary(largest ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, x, y);
  llvm::Type* real = x->getType();
  llvm::Type* bits = real->getWithNewType(a.b.getIntNTy(real->getScalarSizeInBits()));
  const llvm::CmpInst::Predicate wins = largest ? llvm::CmpInst::FCMP_OGT : llvm::CmpInst::FCMP_OLT;
  Value* one_way = a.b.CreateBitCast(a.b.CreateSelect(a.b.CreateFCmp(wins, x, y), x, y), bits);
  Value* other_way = a.b.CreateBitCast(a.b.CreateSelect(a.b.CreateFCmp(wins, y, x), y, x), bits);
  Value* joined = largest ? a.b.CreateAnd(one_way, other_way) : a.b.CreateOr(one_way, other_way);
  return a.b.CreateSelect(a.b.CreateFCmpUNO(x, y), llvm::ConstantFP::getNaN(real), a.b.CreateBitCast(joined, real));
}

Value* maximum(const Args& a, Value* x, Value* y) {
  if (a.real()) return extremum(a, true, x, y);
  if (a.boolean()) return a.b.CreateOr(x, y);
  return a.binary(a.is_signed() ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
}

Value* minimum(const Args& a, Value* x, Value* y) {
  if (a.real()) return extremum(a, false, x, y);
  if (a.boolean()) return a.b.CreateAnd(x, y);
  return a.binary(a.is_signed() ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
}

Value* real_or_same(const Args& a, ID id) { return a.real() ? a.unary(id) : a[0]; }

// ---- one operand -------------------------------------------------------------------------------------------------
Value* emit(Tag<Op::neg>, const Args& a) { return a.real() ? a.b.CreateFNeg(a[0]) : a.b.CreateNeg(a[0]); }
Value* emit(Tag<Op::abs>, const Args& a) {
  if (a.real()) return a.unary(llvm::Intrinsic::fabs);
  return a.is_signed() ? a.binary(llvm::Intrinsic::abs, a[0], a.b.getFalse()) : a[0];
}
Value* emit(Tag<Op::sign>, const Args& a) {
  if (a.real()) {
    Value* below = a.b.CreateSelect(a.b.CreateFCmpOLT(a[0], a.zero()), a.number(-1), a[0]);
    return a.b.CreateSelect(a.b.CreateFCmpOGT(a[0], a.zero()), a.number(1), below);
  }
  Value* positive = a.b.CreateZExt(a.b.CreateICmpNE(a[0], a.zero()), a.type());
  if (!a.is_signed()) return positive;
  return a.b.CreateOr(positive, a.b.CreateAShr(a[0], a.type()->getScalarSizeInBits() - 1));
}
Value* emit(Tag<Op::floor>, const Args& a) { return real_or_same(a, llvm::Intrinsic::floor); }
Value* emit(Tag<Op::ceil>, const Args& a) { return real_or_same(a, llvm::Intrinsic::ceil); }
Value* emit(Tag<Op::trunc>, const Args& a) { return real_or_same(a, llvm::Intrinsic::trunc); }
Value* emit(Tag<Op::round_even>, const Args& a) { return real_or_same(a, llvm::Intrinsic::roundeven); }
Value* emit(Tag<Op::round_away>, const Args& a) { return real_or_same(a, llvm::Intrinsic::round); }
Value* emit(Tag<Op::sqrt>, const Args& a) { return a.unary(llvm::Intrinsic::sqrt); }
Value* emit(Tag<Op::is_finite>, const Args& a) {
  if (!a.real()) return llvm::ConstantInt::getTrue(llvm::CmpInst::makeCmpResultType(a.type()));
  return a.b.CreateFCmpOLT(a.unary(llvm::Intrinsic::fabs), llvm::ConstantFP::getInfinity(a.type()));
}
Value* emit(Tag<Op::bit_not>, const Args& a) { return a.b.CreateNot(a[0]); }
Value* emit(Tag<Op::popcount>, const Args& a) { return a.unary(llvm::Intrinsic::ctpop); }
Value* emit(Tag<Op::count_leading_zeros>, const Args& a) {
  return a.binary(llvm::Intrinsic::ctlz, a[0], a.b.getFalse());
}
Value* emit(Tag<Op::stop_gradient>, const Args& a) { return a[0]; }
Value* emit(Tag<Op::convert>, const Args& a) { return emit_convert(a.b, a[0], a.dtype, a.result); }
Value* emit(Tag<Op::bitcast>, const Args& a) {
  if (a.dtype == a.result) return a[0];
  if (a.boolean()) return a.b.CreateZExt(a[0], a.type()->getWithNewType(a.b.getInt8Ty()));
  if (a.result == bool_) return a.b.CreateICmpNE(a[0], a.zero());
  llvm::Type* to = a.result == f32   ? a.b.getFloatTy()
                   : a.result == f64 ? a.b.getDoubleTy()
                                     : static_cast<llvm::Type*>(a.b.getIntNTy(static_cast<unsigned>(8 * size_of(a.result))));
  return a.b.CreateBitCast(a[0], a.type()->getWithNewType(to));
}

// ---- two operands ------------------------------------------------------------------------------------------------
Value* emit(Tag<Op::add>, const Args& a) {
  if (a.boolean()) return a.b.CreateOr(a[0], a[1]);
  return a.real() ? a.b.CreateFAdd(a[0], a[1]) : a.b.CreateAdd(a[0], a[1]);
}
Value* emit(Tag<Op::sub>, const Args& a) {
  return a.real() ? a.b.CreateFSub(a[0], a[1]) : a.b.CreateSub(a[0], a[1]);
}
Value* emit(Tag<Op::mul>, const Args& a) {
  if (a.boolean()) return a.b.CreateAnd(a[0], a[1]);
  return a.real() ? a.b.CreateFMul(a[0], a[1]) : a.b.CreateMul(a[0], a[1]);
}
Value* emit(Tag<Op::div>, const Args& a) {
  return a.real() ? a.b.CreateFDiv(a[0], a[1]) : emit_int_div(a.b, a[0], a[1], a.is_signed());
}
Value* emit(Tag<Op::rem>, const Args& a) {
  return a.real() ? emit_float_rem(a.b, a[0], a[1]) : emit_int_rem(a.b, a[0], a[1], a.is_signed());
}
Value* emit(Tag<Op::max>, const Args& a) { return maximum(a, a[0], a[1]); }
Value* emit(Tag<Op::min>, const Args& a) { return minimum(a, a[0], a[1]); }
Value* emit(Tag<Op::bit_and>, const Args& a) { return a.b.CreateAnd(a[0], a[1]); }
Value* emit(Tag<Op::bit_or>, const Args& a) { return a.b.CreateOr(a[0], a[1]); }
Value* emit(Tag<Op::bit_xor>, const Args& a) { return a.b.CreateXor(a[0], a[1]); }
Value* emit(Tag<Op::shift_left>, const Args& a) { return emit_shift(a.b, Shift::left, a[0], a[1]); }
Value* emit(Tag<Op::shift_right_logical>, const Args& a) { return emit_shift(a.b, Shift::right_logical, a[0], a[1]); }
Value* emit(Tag<Op::shift_right_arithmetic>, const Args& a) {
  return emit_shift(a.b, Shift::right_arithmetic, a[0], a[1]);
}
Value* emit(Tag<Op::threefry2x32>, const Args& a) { return emit_threefry2x32(a.b, a[0], a[1]); }

// ---- three operands ------------------------------------------------------------------------------------------------
Value* emit(Tag<Op::select>, const Args& a) { return a.b.CreateSelect(a[0], a[1], a[2]); }
Value* emit(Tag<Op::clamp>, const Args& a) { return minimum(a, maximum(a, a[1], a[0]), a[2]); }

// ---- compare ---------------------------------------------------------------------------------------------------------
Value* compare(const Args& a, llvm::CmpInst::Predicate real, llvm::CmpInst::Predicate with_sign,
               llvm::CmpInst::Predicate without) {
  return a.b.CreateCmp(a.real() ? real : a.is_signed() ? with_sign : without, a[0], a[1]);
}
Value* emit(Tag<Op::eq>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_OEQ, llvm::CmpInst::ICMP_EQ, llvm::CmpInst::ICMP_EQ);
}
Value* emit(Tag<Op::ne>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_UNE, llvm::CmpInst::ICMP_NE, llvm::CmpInst::ICMP_NE);
}
Value* emit(Tag<Op::lt>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_OLT, llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT);
}
Value* emit(Tag<Op::le>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_OLE, llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE);
}
Value* emit(Tag<Op::gt>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_OGT, llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT);
}
Value* emit(Tag<Op::ge>, const Args& a) {
  return compare(a, llvm::CmpInst::FCMP_OGE, llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE);
}

// ---- functions that are approximated -----------------------------------------------------------------------------------
Value* emit(Tag<Op::pow>, const Args& a) {
  return a.real() ? emit_math(a.b, MathFn::pow, a[0], a[1]) : emit_int_pow(a.b, a[0], a[1], a.is_signed());
}
#define BURIN_ONE(op) \
  Value* emit(Tag<Op::op>, const Args& a) { return emit_math(a.b, MathFn::op, a[0]); }
#define BURIN_TWO(op)                                                                    \
  template <std::same_as<Tag<Op::op>> T>                                                  \
    requires(Op::op != Op::pow)                                                           \
  Value* emit(T, const Args& a) {                                                         \
    return emit_math(a.b, MathFn::op, a[0], a[1]);                                        \
  }
BURIN_MATH_FUNCTIONS(BURIN_ONE, BURIN_TWO)
#undef BURIN_ONE
#undef BURIN_TWO

/// Ops whose result, computed in f32 from half operands, the half type holds already.
constexpr bool stays_exact(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_away:
    case Op::rem:
    case Op::max:
    case Op::min:
    case Op::clamp:
    case Op::select:
    case Op::convert: return true;  // convert rounds by itself
    default: return false;
  }
}

}  // namespace

Value* emit_elementwise(llvm::IRBuilderBase& b, Op op, DType operand, DType result, std::span<Value* const> args) {
  const Args a{b, op != Op::convert && is_half(operand) ? f32 : operand, result, args};
  Value* value = ir::with_tag(op, [&]<Op known>(Tag<known> tag) -> Value* {
    if constexpr (ir::family_of(known) == ir::Family::elementwise || ir::family_of(known) == ir::Family::compare) {
      return emit(tag, a);
    } else {
      return no_rule(a, known);
    }
  });
  return is_half(result) && !stays_exact(op) ? round_to_half(b, value, result) : value;
}

}  // namespace burin::codegen
