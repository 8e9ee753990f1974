// A module becomes an object: target, passes, code.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/check.h"
#include "codegen/codegen.h"
#include "codegen/module.h"

namespace burin::codegen {

namespace {

// Features, never a CPU name: a hypervisor may report the wrong one, and a narrowed target must stay narrow.
std::string feature_string(const ir::Target& target) {
  std::string features =
      "+cx16,+sahf,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe";
  if (target.isa >= ir::Isa::avx512) features += ",+avx512f,+avx512cd,+avx512bw,+avx512dq,+avx512vl,+evex512";
  if (target.isa >= ir::Isa::avx512_bf16) features += ",+avx512bf16";
  if (target.isa >= ir::Isa::amx) features += ",+amx-tile,+amx-bf16";
  return features;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(const ir::Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Every PassBuilder takes this static object; the thread sanitizer sees the order of call_once, not that of its guard
    // inside LLVM's library.
    (void)llvm::vfs::getRealFileSystem();
  });
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string problem;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, problem);
  BURIN_CHECK(backend != nullptr, problem);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // no product and sum of the user's is ever fused
  options.NoTrappingFPMath = true;
  options.EmitAddrsig = false;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, "x86-64", feature_string(target), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default, true));
}

void emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out, FileKind kind) {
  llvm::legacy::PassManager passes;
  const bool failed =
      machine.addPassesToEmitFile(passes, out, nullptr,
                                  kind == FileKind::object ? llvm::CodeGenFileType::ObjectFile
                                                           : llvm::CodeGenFileType::AssemblyFile);
  BURIN_CHECK(!failed, "the backend does not write this kind of file");
  passes.run(module);
}

namespace {

/// Passes of the backend that are skipped. Strength reduction costs a third of its time and finds nothing to do: addresses are emitted
/// reduced. Hoisting out of loops stays away from matrix products: it moves the constants of an epilogue in front of all loops, where they
/// take registers from the accumulators, which are then spilled in the innermost one.
class PassGate final : public llvm::OptPassGate {
 public:
  void is_product(const std::string& function) { products_.insert("function (" + function + ")"); }
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef where) const override {
    if (pass == "Loop Strength Reduction") return false;
    return pass != "early-machinelicm" || !products_.contains(where.str());
  }

 private:
  std::set<std::string> products_;
};

bool has_tiles(const ir::Kernel& kernel) {
  return std::any_of(kernel.buffers.begin(), kernel.buffers.end(), [](const ir::Buffer& b) { return b.space == ir::Space::tile; });
}

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

/// A short list of passes: kernels are vectors and unrolled loops already. Never changes what is rounded when.
class Optimizer {
 public:
  explicit Optimizer(llvm::TargetMachine& machine) : builder_(&machine) {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(graphs_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, graphs_, modules_);
    passes_.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
    passes_.addPass(llvm::EarlyCSEPass(true));
    passes_.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  }
  void run(llvm::Module& module) {
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      passes_.run(function, functions_);
      store_single_lanes(function);
    }
    // What was found out is about functions that are gone before the next module comes.
    loops_.clear();
    functions_.clear();
    graphs_.clear();
    modules_.clear();
  }

 private:
  llvm::PassBuilder builder_;
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager graphs_;
  llvm::ModuleAnalysisManager modules_;
  llvm::FunctionPassManager passes_;
};

/// What one thread compiles with for one target, module after module; making it takes as long as compiling a small kernel.
struct Backend {
  explicit Backend(const ir::Target& target) : machine(make_target_machine(target)), optimizer(*machine) {}
  std::unique_ptr<llvm::TargetMachine> machine;
  Optimizer optimizer;
};

Backend& backend(const ir::Target& target) {
  thread_local std::map<std::string, Backend> all;
  return all.try_emplace(to_string(target), target).first->second;
}

/// Kernels as an optimised module, with all that it lives in.
struct Session {
  Session(std::span<const ir::Kernel* const> kernels, const ir::Target& target, std::vector<std::string>* symbols,
          std::span<const std::string> texts = {})
      : backend(codegen::backend(target)) {
    context.setOptPassGate(gate);
    std::vector<std::string> names;
    module = build_module(context, *backend.machine, kernels, target, &names, texts);
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if (has_tiles(*kernels[i])) gate.is_product(names[i]);
    if (symbols != nullptr) *symbols = std::move(names);
    backend.optimizer.run(*module);
  }
  std::string file(FileKind kind) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream out(bytes);
    emit_file(*module, *backend.machine, out, kind);
    return {bytes.data(), bytes.size()};
  }

  PassGate gate;
  llvm::LLVMContext context;
  Backend& backend;
  std::unique_ptr<llvm::Module> module;
};

}  // namespace

std::string compile_to_object(std::span<const ir::Kernel* const> kernels, const ir::Target& target,
                              std::vector<std::string>* symbols, std::span<const std::string> texts) {
  return Session(kernels, target, symbols, texts).file(FileKind::object);
}

namespace {

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace

std::string emit_raw_llvm(std::span<const ir::Kernel* const> kernels, const ir::Target& target) {
  llvm::LLVMContext context;
  return text_of(*build_module(context, *backend(target).machine, kernels, target, nullptr));
}

std::string emit_llvm(std::span<const ir::Kernel* const> kernels, const ir::Target& target) {
  return text_of(*Session(kernels, target, nullptr).module);
}

std::string emit_assembly(std::span<const ir::Kernel* const> kernels, const ir::Target& target, const TextOf& text_of) {
  std::vector<std::string> texts;
  if (text_of)
    for (const ir::Kernel* kernel : kernels) texts.push_back(text_of(*kernel));
  return Session(kernels, target, nullptr, texts).file(FileKind::assembly);
}

std::string emit_object(std::span<const ir::Kernel* const> kernels, const ir::Target& target) {
  return compile_to_object(kernels, target, nullptr);
}

}  // namespace burin::codegen
