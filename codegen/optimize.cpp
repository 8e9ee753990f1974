#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "base/check.h"
#include "codegen/module.h"

namespace burin::codegen {
namespace {

/// The only lane that a constant mask lets through; -1 for other masks.
int only_lane(const llvm::Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (constant == nullptr) return -1;
  int only = -1;
  const unsigned n = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  for (unsigned lane = 0; lane < n; ++lane) {
    const llvm::Constant* bit = constant->getAggregateElement(lane);
    if (bit == nullptr || !llvm::isa<llvm::ConstantInt>(bit)) return -1;
    if (bit->isNullValue()) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(lane);
  }
  return only;
}

/// Masked stores of one lane become plain ones. LLVM 22 does so itself, but writes all 32 bits of the lane when the 16 or 8 bits to
/// be stored were truncated from it.
void store_single_lanes(llvm::Function& function) {
  std::vector<llvm::IntrinsicInst*> stores;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::masked_store && only_lane(call->getArgOperand(2)) >= 0)
      stores.push_back(call);
  }
  for (llvm::IntrinsicInst* call : stores) {
    llvm::IRBuilder<> b(call);
    const int lane = only_lane(call->getArgOperand(2));
    llvm::Value* element = b.CreateExtractElement(call->getArgOperand(0), static_cast<std::uint64_t>(lane));
    llvm::Value* pointer = b.CreateConstGEP1_64(element->getType(), call->getArgOperand(1), static_cast<std::uint64_t>(lane));
    const llvm::Align align(element->getType()->getScalarSizeInBits() / 8);
    llvm::StoreInst* store = b.CreateAlignedStore(element, pointer, align);
    for (unsigned kind : {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias}) store->setMetadata(kind, call->getMetadata(kind));
    call->eraseFromParent();
  }
}

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
#if BURIN_ASSERTS
  std::string problem;
  llvm::raw_string_ostream text(problem);
  BURIN_CHECK(!llvm::verifyModule(module, &text), problem);
#endif
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    passes.run(function, functions);
    store_single_lanes(function);
  }
}

}  // namespace burin::codegen
