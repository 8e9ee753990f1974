#include "codegen/vector_math/probe.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <sstream>
#include <utility>

#include "base/check.h"
#include "codegen/vector_math/emit_math.h"

namespace burin::codegen {
namespace {

using Entry = void (*)(const void* x, const void* y, void* out, std::int64_t n);

template <class T>
T or_abort(llvm::Expected<T> value) {
  if (!value) BURIN_CHECK(false, llvm::toString(value.takeError()));
  return std::move(*value);
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const std::string& features) {
  static const bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  BURIN_CHECK(initialised);
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  BURIN_CHECK(target != nullptr, error);
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, "x86-64", features, llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
                                  llvm::CodeGenOptLevel::Default));
}

std::string entry_name(MathFn fn, int width) {
  return "probe_" + std::string(math_name(fn)) + (width == 32 ? "_f32" : "_f64");
}

std::string entry_name(HalfConversion c) { return "probe_convert_" + std::to_string(static_cast<int>(c)); }

/// Lanes of a vector, and bits of the registers that may hold it.
struct Vectors {
  Vectors(int lanes, const std::string& features) : lanes(lanes), bits(features.find("+avx512f") == std::string::npos ? 256 : 512) {}
  int lanes, bits;
};

/// void name(x, y, out, n): a loop over such vectors; body maps the loaded values to the stored one.
template <class Body>
void add_loop(llvm::Module& module, const std::string& name, llvm::Type* in, Vectors vectors, bool has_second, Body body) {
  const int lanes = vectors.lanes;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* pointer = b.getPtrTy();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function->addFnAttr("prefer-vector-width", std::to_string(vectors.bits));
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* loop = llvm::BasicBlock::Create(context, "loop", function);
  auto* done = llvm::BasicBlock::Create(context, "done", function);
  b.SetInsertPoint(entry);
  b.CreateCondBr(b.CreateICmpSGT(function->getArg(3), b.getInt64(0)), loop, done);
  b.SetInsertPoint(loop);
  llvm::PHINode* k = b.CreatePHI(b.getInt64Ty(), 2);
  k->addIncoming(b.getInt64(0), entry);
  llvm::Type* in_type = lanes == 1 ? in : llvm::FixedVectorType::get(in, lanes);
  auto load = [&](unsigned argument) {
    return b.CreateAlignedLoad(in_type, b.CreateGEP(in, function->getArg(argument), k), llvm::Align(1));
  };
  llvm::Value* x = load(0);
  llvm::Value* result = body(b, x, has_second ? load(1) : nullptr);
  llvm::Type* out = result->getType()->getScalarType();
  b.CreateAlignedStore(result, b.CreateGEP(out, function->getArg(2), k), llvm::Align(1));
  llvm::Value* next = b.CreateAdd(k, b.getInt64(lanes));
  k->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, function->getArg(3)), loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

void add_function(llvm::Module& module, MathFn fn, int width, Vectors vectors) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* in = width == 32 ? llvm::Type::getFloatTy(context) : llvm::Type::getDoubleTy(context);
  add_loop(module, entry_name(fn, width), in, vectors, math_arity(fn) == 2,
           [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) { return emit_math(b, fn, x, y); });
}

void add_conversion(llvm::Module& module, HalfConversion conversion, Vectors vectors) {
  llvm::LLVMContext& context = module.getContext();
  auto add = [&](llvm::Type* in, llvm::Value* (*emit)(llvm::IRBuilderBase&, llvm::Value*)) {
    add_loop(module, entry_name(conversion), in, vectors, false,
             [&](llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value*) { return emit(b, x); });
  };
  switch (conversion) {
    case HalfConversion::f32_to_bf16:
      return add(llvm::Type::getFloatTy(context), emit_to_bf16);
    case HalfConversion::f64_to_bf16:
      return add(llvm::Type::getDoubleTy(context), emit_to_bf16);
    case HalfConversion::bf16_to_f32:
      return add(llvm::Type::getInt16Ty(context), emit_from_bf16);
    case HalfConversion::f32_to_f16:
      return add(llvm::Type::getFloatTy(context), emit_to_f16);
    case HalfConversion::f64_to_f16:
      return add(llvm::Type::getDoubleTy(context), emit_to_f16);
    case HalfConversion::f16_to_f32:
      return add(llvm::Type::getInt16Ty(context), emit_from_f16);
  }
}

void optimise(llvm::Module& module, llvm::TargetMachine& target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;  // one lane stays one lane
  tuning.SLPVectorization = false;
  llvm::PassBuilder passes(&target, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

std::string generate(llvm::Module& module, llvm::TargetMachine& target, llvm::CodeGenFileType kind) {
  module.setDataLayout(target.createDataLayout());
  module.setTargetTriple(target.getTargetTriple());
  optimise(module, target);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emission;
  BURIN_CHECK(!target.addPassesToEmitFile(emission, stream, nullptr, kind));
  emission.run(module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

struct MathProbe::State {
  int lanes;
  std::string features;
  std::string object;
  std::unique_ptr<llvm::orc::LLJIT> jit;

  Entry entry(const std::string& name, std::int64_t n) {
    BURIN_CHECK(n % lanes == 0);
    if (!jit) {
      BURIN_CHECK(host_has(features));
      jit = or_abort(llvm::orc::LLJITBuilder().create());
      llvm::Error error = jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, "probe"));
      BURIN_CHECK(!error, llvm::toString(std::move(error)));
    }
    return or_abort(jit->lookup(name)).toPtr<Entry>();
  }
};

MathProbe::MathProbe(int lanes, const std::string& features) : state_(new State{lanes, features, {}, nullptr}) {
  std::unique_ptr<llvm::TargetMachine> target = make_target_machine(features);
  llvm::LLVMContext context;
  llvm::Module module("probe", context);
  for (MathFn fn : all_math_functions) {
    for (int width : {32, 64}) add_function(module, fn, width, {lanes, features});
  }
  for (int c = 0; c <= static_cast<int>(HalfConversion::f16_to_f32); ++c) {
    add_conversion(module, static_cast<HalfConversion>(c), {lanes, features});
  }
  state_->object = generate(module, *target, llvm::CodeGenFileType::ObjectFile);
}

MathProbe::~MathProbe() = default;

std::vector<std::string> MathProbe::undefined_symbols() const {
  auto file = or_abort(llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(state_->object, "probe")));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : file->symbols()) {
    std::string name = or_abort(symbol.getName()).str();
    if (!name.empty() && (or_abort(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined) != 0)
      names.push_back(name);
  }
  return names;
}

std::string MathProbe::assembly(MathFn fn, int width) const {
  std::unique_ptr<llvm::TargetMachine> target = make_target_machine(state_->features);
  llvm::LLVMContext context;
  llvm::Module module("probe", context);
  add_function(module, fn, width, {state_->lanes, state_->features});
  return generate(module, *target, llvm::CodeGenFileType::AssemblyFile);
}

void MathProbe::run(MathFn fn, const float* x, const float* y, float* out, std::int64_t n) {
  state_->entry(entry_name(fn, 32), n)(x, y, out, n);
}

void MathProbe::run(MathFn fn, const double* x, const double* y, double* out, std::int64_t n) {
  state_->entry(entry_name(fn, 64), n)(x, y, out, n);
}

void MathProbe::run(HalfConversion conversion, const void* x, void* out, std::int64_t n) {
  state_->entry(entry_name(conversion), n)(x, nullptr, out, n);
}

const char* avx2_features() { return "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+movbe"; }

const char* avx512_features() {
  return "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+movbe,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512cd";
}

bool host_has(const std::string& features) {
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  std::stringstream names(features);
  for (std::string name; std::getline(names, name, ',');) {
    auto found = host.find(name.substr(1));
    if (found == host.end() || !found->second) return false;
  }
  return true;
}

}  // namespace burin::codegen
