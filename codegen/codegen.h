// Kernel -> machine code. Nothing here decides what to compute or in which order; that is in the Kernel.
#pragma once
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
  /// Whether LLVM had nothing to do, as all code was in the process or in the files of the cache.
  virtual bool is_recalled() const = 0;
};

/// Compiles kernels, many per LLVM module, `num_threads` modules at a time. A kernel whose code for the target some Module
/// keeps alive is not compiled again: both share it. The others' objects are taken from `files`, or put there. Thread-safe.
std::shared_ptr<Module> compile(std::span<const ir::Kernel* const> kernels, const ir::Target& target, int num_threads = 1,
                                FileCache* files = nullptr);

/// The LLVM IR after optimisation, and the assembly: what compile turns into bytes.
std::string emit_llvm(std::span<const ir::Kernel* const> kernels, const ir::Target& target);
std::string emit_assembly(std::span<const ir::Kernel* const> kernels, const ir::Target& target);
/// The relocatable object, for the test of undefined symbols.
std::string emit_object(std::span<const ir::Kernel* const> kernels, const ir::Target& target);

}  // namespace burin::codegen
