#include "codegen/module.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "codegen/emitter.h"
#include "ir/kernel/printer.h"

namespace burin::codegen {

namespace {

std::string plain_symbol(const std::string& name) {
  std::string symbol;
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    symbol += plain ? c : '_';
  }
  constexpr std::array<std::string_view, 5> taken = {"", "burin_report_index", "memcpy", "memmove", "memset"};
  if (std::ranges::find(taken, symbol) != taken.end() || (symbol[0] >= '0' && symbol[0] <= '9')) symbol = "kernel_" + symbol;
  return symbol;
}

// For a check that fails: the kernel, and the command that repeats it.
std::string describe_kernel(const void* data) {
  const auto& kernel = *static_cast<const ir::Kernel*>(data);
  const std::string path = save_crash_input(ir::print(kernel));
  return "  in code generation of kernel @" + kernel.name + "\n  which is in " + path + "; repeat with: burin-opt " + path + " --emit=llvm";
}

}  // namespace

std::unique_ptr<llvm::Module> build_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                           std::span<const ir::Kernel* const> kernels, const ir::Target& target,
                                           std::vector<std::string>* symbols) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  llvm::IRBuilder<> builder(context);
  for (const ir::Kernel* kernel : kernels) {
    std::string symbol = plain_symbol(kernel->name);
    for (int i = 1; module->getNamedValue(symbol) != nullptr; ++i) symbol = plain_symbol(kernel->name) + "_" + std::to_string(i);
    const CrashContext context(&describe_kernel, kernel);
    KernelEmitter(builder, *module, *kernel, target, symbol).emit();
    if (symbols != nullptr) symbols->push_back(symbol);
  }
  return module;
}

}  // namespace burin::codegen
