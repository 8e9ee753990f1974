#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "codegen/emit/elementwise.h"
#include "codegen/emitter.h"

namespace burin::codegen {

// Terms of outer variables are added first: the sum so far is invariant in the inner loops.
Index KernelEmitter::evaluate(const ir::Affine& affine, std::int64_t* apart) {
  std::vector<std::pair<ir::VarId, std::int64_t>> terms = affine.terms;
  std::ranges::sort(terms, {}, [&](const auto& term) { return variables_[term.first.index].depth; });
  Index result;
  std::int64_t constant = affine.constant;
  llvm::Value* sum = nullptr;
  for (const auto& [var, coefficient] : terms) {
    const Index& index = variables_[var.index].index;
    BURIN_CHECK(index.uniform != nullptr, "a variable is used before it is defined");
    result.lane += coefficient * index.lane;
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(index.uniform)) {
      constant += coefficient * number->getSExtValue();
    } else {
      llvm::Value* term = coefficient == 1 ? index.uniform : b_.CreateMul(index.uniform, i64(coefficient), "", false, true);
      sum = sum == nullptr ? term : b_.CreateAdd(sum, term, "", false, true);
    }
    if (index.varying != nullptr) {
      llvm::Value* factor = llvm::ConstantInt::getSigned(index.varying->getType(), coefficient);
      llvm::Value* term = coefficient == 1 ? index.varying : b_.CreateMul(index.varying, factor, "", false, true);
      result.varying = result.varying == nullptr ? term : b_.CreateAdd(result.varying, term, "", false, true);
    }
  }
  if (apart != nullptr) {
    *apart += constant;
    constant = 0;
  }
  if (sum == nullptr) {
    result.uniform = i64(constant);
  } else {
    result.uniform = constant == 0 ? sum : b_.CreateAdd(sum, i64(constant), "", false, true);
  }
  return result;
}

llvm::Value* KernelEmitter::expand(const Index& index) {
  if (lanes_ == 1) return index.uniform;
  llvm::Value* result = spread(index.uniform);
  if (index.lane != 0) {
    std::vector<std::uint64_t> numbers;
    for (std::int64_t lane = 0; lane < lanes_; ++lane) numbers.push_back(static_cast<std::uint64_t>(lane * index.lane));
    result = b_.CreateAdd(result, llvm::ConstantDataVector::get(module_.getContext(), numbers));
  }
  return index.varying == nullptr ? result : b_.CreateAdd(result, index.varying);
}

llvm::Value* KernelEmitter::all_hold(std::span<const ir::Affine> conditions, bool* varying) {
  llvm::Value* uniform = nullptr;
  llvm::Value* per_lane = nullptr;
  for (const ir::Affine& condition : conditions) {
    const Index index = evaluate(condition);
    llvm::Value* value = index.is_uniform() ? index.uniform : expand(index);
    llvm::Value*& all = index.is_uniform() ? uniform : per_lane;
    llvm::Value* holds = b_.CreateICmpSGE(value, llvm::Constant::getNullValue(value->getType()));
    all = all == nullptr ? holds : b_.CreateAnd(all, holds);
  }
  *varying = per_lane != nullptr;
  if (per_lane != nullptr && uniform != nullptr) return b_.CreateAnd(per_lane, spread(uniform));
  return per_lane != nullptr ? per_lane : uniform;
}

void KernelEmitter::emit_index(const Stmt& s) {
  const Index index = evaluate(s.value);
  const bool varying = !index.is_uniform();
  llvm::Value* value = varying ? expand(index) : index.uniform;
  set(s.result, {emit_convert(b_, value, DType::i64, s.dtype), s.dtype, varying, is_half(s.dtype)});
}

// Compared in 32 bits where that decides it: read as unsigned, an index below zero is beyond any extent.
void KernelEmitter::emit_bind(const Stmt& s) {
  const Register r = get(s.args[0]);
  const bool is_signed = is_signed_int(r.dtype);
  const bool narrow = size_of(r.dtype) <= 4 && s.extent <= INT32_MAX;
  auto typed = [&](llvm::Type* element) { return r.varying ? vector_type(element, lanes_) : element; };
  auto extend = [&](llvm::Value* v, llvm::Type* type) { return is_signed ? b_.CreateSExt(v, type) : b_.CreateZExt(v, type); };
  llvm::Type* wide = typed(b_.getInt64Ty());
  llvm::Type* type = narrow ? typed(b_.getInt32Ty()) : wide;
  llvm::Value* index = extend(r.value, type);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  if (s.mode == ir::IndexMode::error) {
    llvm::Value* inside = b_.CreateICmpULT(index, llvm::ConstantInt::getSigned(type, s.extent));
    llvm::Value* bad = b_.CreateNot(inside);
    if (r.varying) {
      report_lanes(s, r, combine_masks(mask_, bad));
    } else {
      report_uniform(s, r, bad);
    }
    index = b_.CreateSelect(inside, index, zero);
  } else {
    llvm::Value* last = llvm::ConstantInt::getSigned(type, s.extent - 1);
    if (is_signed) index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, index, zero);
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, last);
  }
  index = b_.CreateZExt(index, wide, "", true);
  Index& target = variables_[s.var.index].index;
  target = r.varying ? Index{i64(0), 0, index} : Index{index, 0, nullptr};
  variables_[s.var.index].depth = next_depth_++;
}

/// An index of u64 beyond i64 is reported as the largest i64.
void KernelEmitter::call_report(const Stmt& s, llvm::Value* index, DType dtype) {
  llvm::Type* long_type = b_.getInt64Ty();
  index = is_signed_int(dtype) ? b_.CreateSExt(index, long_type) : b_.CreateZExt(index, long_type);
  if (dtype == DType::u64)
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, i64(INT64_MAX));
  llvm::Type* params[] = {b_.getPtrTy(), long_type, b_.getInt32Ty(), long_type, long_type};
  llvm::FunctionCallee report =
      module_.getOrInsertFunction("burin_report_index", llvm::FunctionType::get(b_.getVoidTy(), params, false));
  llvm::CallInst* call = b_.CreateCall(
      report, {status_, task_, b_.getInt32(static_cast<std::uint32_t>(s.site)), index, i64(s.extent)});
  call->addFnAttr(llvm::Attribute::Cold);
  call->setDoesNotThrow();
}

template <class F>
void KernelEmitter::unlikely(llvm::Value* condition, F&& f) {
  llvm::LLVMContext& context = module_.getContext();
  auto* rare = llvm::BasicBlock::Create(context, "report", function_);
  auto* resume = llvm::BasicBlock::Create(context, "resume", function_);
  b_.CreateCondBr(condition, rare, resume, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b_.SetInsertPoint(rare);
  f();
  b_.CreateBr(resume);
  b_.SetInsertPoint(resume);
}

// A block runs only where some lane does, so an index that all lanes share has been met.
void KernelEmitter::report_uniform(const Stmt& s, const Register& index, llvm::Value* bad) {
  unlikely(bad, [&] { call_report(s, index.value, index.dtype); });
}

// The first bad lane is the one that a run in order meets first.
void KernelEmitter::report_lanes(const Stmt& s, const Register& index, llvm::Value* bad) {
  unlikely(b_.CreateOrReduce(bad), [&] {
    llvm::Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(static_cast<unsigned>(lanes_)));
    llvm::Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    call_report(s, b_.CreateExtractElement(index.value, lane), index.dtype);
  });
}

}  // namespace burin::codegen
