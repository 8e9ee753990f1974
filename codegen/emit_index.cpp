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
Index KernelEmitter::evaluate(const ir::Affine& affine, bool with_constant) {
  std::vector<std::pair<ir::VarId, std::int64_t>> terms = affine.terms;
  std::ranges::sort(terms, {}, [&](const auto& term) { return variables_[term.first.index].depth; });
  Index result;
  std::int64_t constant = with_constant ? affine.constant : 0;
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

void KernelEmitter::emit_bind(const Stmt& s) {
  const Register r = get(s.args[0]);
  llvm::Type* wide = b_.getInt64Ty();
  if (r.varying) wide = vector_type(wide, lanes_);
  llvm::Value* index = is_signed_int(r.dtype) ? b_.CreateSExt(r.value, wide) : b_.CreateZExt(r.value, wide);
  llvm::Value* zero = llvm::Constant::getNullValue(wide);
  llvm::Value* extent = llvm::ConstantInt::getSigned(wide, s.extent);
  if (r.dtype == DType::u64) {  // beyond any extent, not below zero
    llvm::Value* largest = llvm::ConstantInt::get(wide, static_cast<std::uint64_t>(INT64_MAX));
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, largest);
  }
  if (s.mode == ir::IndexMode::error) {
    llvm::Value* bad = b_.CreateICmpUGE(index, extent);
    if (r.varying && mask_ != nullptr) bad = b_.CreateAnd(bad, mask_);
    if (r.varying) {
      report_lanes(s, index, bad);
    } else {
      report_uniform(s, index, bad);
    }
    index = b_.CreateSelect(b_.CreateICmpUGE(index, extent), zero, index);
  } else {
    llvm::Value* last = llvm::ConstantInt::getSigned(wide, s.extent - 1);
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, index, zero);
    index = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, index, last);
  }
  Index& target = variables_[s.var.index].index;
  target = r.varying ? Index{i64(0), 0, index} : Index{index, 0, nullptr};
  variables_[s.var.index].depth = next_depth_++;
}

void KernelEmitter::call_report(const Stmt& s, llvm::Value* index) {
  llvm::Type* long_type = b_.getInt64Ty();
  llvm::Type* params[] = {b_.getPtrTy(), long_type, b_.getInt32Ty(), long_type, long_type};
  llvm::FunctionCallee report =
      module_.getOrInsertFunction("burin_report_index", llvm::FunctionType::get(b_.getVoidTy(), params, false));
  llvm::CallInst* call = b_.CreateCall(
      report, {status_, task_, b_.getInt32(static_cast<std::uint32_t>(s.site)), index, i64(s.extent)});
  call->addFnAttr(llvm::Attribute::Cold);
  call->setDoesNotThrow();
}

void KernelEmitter::report_uniform(const Stmt& s, llvm::Value* index, llvm::Value* bad) {
  if (mask_ != nullptr) bad = b_.CreateAnd(bad, b_.CreateOrReduce(mask_));
  llvm::LLVMContext& context = module_.getContext();
  auto* report = llvm::BasicBlock::Create(context, "report", function_);
  auto* resume = llvm::BasicBlock::Create(context, "resume", function_);
  b_.CreateCondBr(bad, report, resume, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b_.SetInsertPoint(report);
  call_report(s, index);
  b_.CreateBr(resume);
  b_.SetInsertPoint(resume);
}

// The first bad lane is the one that a run in order meets first.
void KernelEmitter::report_lanes(const Stmt& s, llvm::Value* index, llvm::Value* bad) {
  llvm::LLVMContext& context = module_.getContext();
  auto* report = llvm::BasicBlock::Create(context, "report", function_);
  auto* resume = llvm::BasicBlock::Create(context, "resume", function_);
  b_.CreateCondBr(b_.CreateOrReduce(bad), report, resume, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b_.SetInsertPoint(report);
  llvm::Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(static_cast<unsigned>(lanes_)));
  llvm::Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
  call_report(s, b_.CreateExtractElement(index, lane));
  b_.CreateBr(resume);
  b_.SetInsertPoint(resume);
}

}  // namespace burin::codegen
