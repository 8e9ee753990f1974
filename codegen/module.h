// Kernels -> LLVM module -> bytes: the stages that compile() and the emit_* views share. Private to codegen/.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace llvm {
class LLVMContext;
class Module;
class raw_pwrite_stream;
class TargetMachine;
}  // namespace llvm

namespace burin::codegen {

enum class FileKind { object, assembly };

/// For exactly the features that the target names, whatever the host is.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const ir::Target& target);

/// One function per kernel; symbols[i] is the name of kernels[i]: the kernel's own, made unique and plain. texts[i], when there are any,
/// is the file with its text, whose lines the code is to name.
std::unique_ptr<llvm::Module> build_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                           std::span<const ir::Kernel* const> kernels, const ir::Target& target,
                                           std::vector<std::string>* symbols, std::span<const std::string> texts = {});
void emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out, FileKind kind);

/// Kernels of about equal total weight per part, the weight being the statements that are emitted; each part lists positions in `kernels`, in
/// order. No more parts than kernels.
std::vector<std::vector<std::size_t>> split(std::span<const ir::Kernel* const> kernels, std::size_t parts);

/// All of the above.
std::string compile_to_object(std::span<const ir::Kernel* const> kernels, const ir::Target& target,
                              std::vector<std::string>* symbols, std::span<const std::string> texts = {});

}  // namespace burin::codegen
