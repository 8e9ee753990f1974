// From a traced Function to something that runs. Inside the frontend only.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/node.h"
#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::runtime {
class Executable;
struct RunOptions;
}  // namespace burin::runtime

namespace burin::detail {

/// Machine code for `target`, which this machine must have, and the table of the program's steps. `num_threads` modules are
/// compiled at a time. An error in a build without LLVM.
std::unique_ptr<runtime::Executable> make_executable(const ir::Program& program, const ir::Target& target, int num_threads);
/// One run over literals. The memory of a donated input is taken from a copy.
std::vector<ir::Literal> run_literals(const ir::Program& program, const runtime::Executable& executable,
                                      std::span<const ir::Literal> inputs, const runtime::RunOptions& options);
/// Optimised LLVM IR and assembly of a program's kernels; an error in a build without LLVM.
std::string program_llvm(const ir::Program& program, const ir::Target& target);
std::string program_assembly(const ir::Program& program, const ir::Target& target);

struct CompileOptions {
  std::vector<bool> donated;  // by argument
  int num_threads = 0;
  std::int64_t memory_budget = -1;
  bool excess_precision = true;
  std::string max_isa;
  std::string label;  // for BURIN_LOG_COMPILES: "step (main.cpp:12)"
};

/// What executes a program. BURIN_BACKEND chooses: `machine` code (the default with LLVM), the kernel `interpreter`, or the
/// reference `evaluator` (the default without LLVM), which runs the traced Function as it is.
enum class Backend : std::uint8_t { machine, interpreter, evaluator };
Backend chosen_backend();

/// A compiled program. Immutable; run concurrently as you like.
class CompiledFunction {
 public:
  virtual ~CompiledFunction() = default;
  const ir::Function& traced() const { return traced_; }
  /// Fails under the evaluator, which has no program.
  const ir::Program& program() const;
  bool has_program() const { return program_ != nullptr; }
  const ir::Target& target() const { return target_; }
  const CompileOptions& options() const { return options_; }
  /// Output i may be written over input aliases()[i]; -1: none.
  const std::vector<std::int32_t>& aliases() const { return aliases_; }
  /// Whether output i may be written over its input although a call may fail: only when no index can be found out of range
  /// in the phase of the first write or later.
  bool may_write_in_place(std::size_t i) const { return in_place_[i]; }
  /// Inputs and outputs by pointer, as in runtime::Executable.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs) const = 0;
  /// A table of the steps' times; an error unless it is machine code.
  virtual std::string profile(int runs) const;
  /// Arena, scratch and results of one call.
  std::int64_t peak_bytes() const;
  /// Optimised LLVM IR and assembly of the kernels; an error in a build without LLVM.
  std::string llvm() const;
  std::string assembly() const;

 protected:
  CompiledFunction(ir::Function traced, CompileOptions options)
      : traced_(std::move(traced)), options_(std::move(options)) {}
  ir::Function traced_;
  CompileOptions options_;
  ir::Target target_;
  std::shared_ptr<const ir::Program> program_;
  std::vector<std::int32_t> aliases_;
  std::vector<bool> in_place_;
  std::int64_t held_bytes_ = 0;
};

/// The compiled form of f, from the cache that the whole process shares when it was compiled before.
std::shared_ptr<const CompiledFunction> compile(ir::Function f, const CompileOptions& options);
/// Identity of a compile: program, target, options; and the locations of ops that report indices.
Hash128 compile_key(const ir::Function& f, const CompileOptions& options);

/// Compiles and runs once over concrete tensors.
std::vector<Tensor> run_unjitted(ir::Function f, std::span<const Tensor> inputs, const std::source_location& where);

/// A line for the log sink.
void log_line(const std::string& line);
/// True when the environment variable is set to something but "" and "0".
bool environment_flag(const char* name);

struct CompileStatistics {
  std::int64_t compiles = 0;
};
CompileStatistics compile_statistics();

}  // namespace burin::detail
