// Kernel -> machine code. Nothing here decides what to compute or in which order; that is in the Kernel.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/target.h"
#include "runtime/abi.h"

namespace burin {
class FileCache;
}

namespace burin::codegen {

/// Machine code of some kernels; keeps it alive.
class Module {
 public:
  virtual ~Module() = default;
  /// Entry points in the order of the kernels given to compile.
  virtual std::span<const BurinKernel> entries() const = 0;
  /// LLVM modules that were compiled for it: 0 when all code was in the process or in the files of the cache.
  virtual std::size_t num_compiled() const = 0;
};

/// The file that has print(kernel).
using TextOf = std::function<std::string(const ir::Kernel&)>;

/// Compiles kernels, many per LLVM module, `num_threads` (at least 1) modules at a time. A kernel whose code for the target some Module
/// keeps alive is not compiled again: both share it. The others' objects are taken from `files`, or put there. Thread-safe.
/// With `text_of`, gdb and perf know the code by the kernels' names and the lines of their texts; it is called by this thread for
/// each kernel that is compiled, and gives absolute paths. What perf reads is put beside the first; throws Error when it cannot.
/// The instructions are the same, but `files` is not used, nor code that was compiled without it.
std::shared_ptr<Module> compile(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads = 1,
                                FileCache* files = nullptr, const TextOf& text_of = {});

/// The LLVM IR as it is emitted, before any pass of LLVM's.
std::string emit_raw_llvm(std::span<const ir::Kernel* const> kernels, const ir::Target& target);
/// The LLVM IR after optimisation, and the assembly: what compile turns into bytes.
std::string emit_llvm(std::span<const ir::Kernel* const> kernels, const ir::Target& target);
std::string emit_assembly(std::span<const ir::Kernel* const> kernels, const ir::Target& target, const TextOf& text_of = {});
/// The relocatable object, for the test of undefined symbols.
std::string emit_object(std::span<const ir::Kernel* const> kernels, const ir::Target& target);

}  // namespace burin::codegen
