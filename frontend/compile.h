// From a traced Function to something that runs. Inside the frontend only.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <burin/profile.h>

#include "frontend/node.h"
#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin {
class FileCache;
}
namespace burin::runtime {
class Executable;
struct KeptPlace;
struct RunOptions;
}  // namespace burin::runtime

namespace burin::detail {

/// Machine code for `target`, which this machine must have, and the table of the program's steps. `num_threads` (0: the process
/// default) modules are compiled at a time, unless `files` has their code; *num_compiled says how many were. `name`: for tables. An error in a build without LLVM.
std::unique_ptr<runtime::Executable> make_executable(const ir::Program& program, const ir::Target& target, int num_threads,
                                                     FileCache* files = nullptr, std::size_t* num_compiled = nullptr,
                                                     const std::string& name = "program");
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
  bool keep_packed = true;
  std::string max_isa;
  std::string label;  // for BURIN_LOG_COMPILES and BURIN_TRACE: "step (main.cpp:12)"
  std::string place;  // of the call, for errors
};

/// What executes a program. BURIN_BACKEND chooses: `machine` code (the default with LLVM), the kernel `interpreter`, or the
/// reference `evaluator` (the default without LLVM), which runs the traced Function as it is.
enum class Backend : std::uint8_t { machine, interpreter, evaluator };
Backend chosen_backend();

/// What one call holds besides its arguments, in bytes: exactly what it asks of the allocator. Not counted: what the program owns
/// between calls (constants, code), and lists of pointers.
struct CallMemory {
  std::int64_t arena = 0;
  std::int64_t scratch = 0;  // of all threads: packing panels, spilled rows, partial sums of a task
  int threads = 1;
  std::int64_t results = 0;  // but those in the memory of donated arguments
  std::int64_t kept = 0;     // packed copies of results, which stay with them
  std::int64_t total() const { return arena + scratch + results + kept; }
};

/// A compiled program. Immutable; run concurrently as you like.
class CompiledFunction {
 public:
  virtual ~CompiledFunction() = default;
  const ir::Function& traced() const { return traced_; }
  /// Fails under the evaluator, which has no program.
  const ir::Program& program() const;
  bool has_program() const { return program_ != nullptr; }
  const ir::Target& target() const { return target_; }
  /// Whether its machine code was there already, in the process or in files of an earlier one.
  bool is_recalled() const { return num_compiled_ == 0; }
  const CompileOptions& options() const { return options_; }
  const std::vector<ir::Type>& result_types() const { return result_types_; }
  /// Output i may be written over input aliases()[i]; -1: none.
  const std::vector<std::int32_t>& aliases() const { return aliases_; }
  /// Whether output i is written over its input if nobody else holds that. Not when a call may still fail then: when an index
  /// can be found out of range by a step for which the first write does not wait.
  bool writes_in_place(std::size_t i) const { return aliases_[i] >= 0 && in_place_[i]; }
  /// What is made of an output and kept beside it: wherever `key` is the same, it is made of the same bytes in the same way.
  struct Kept {
    std::size_t output = 0;
    std::int64_t bytes = 0;
    Hash128 key;
  };
  const std::vector<Kept>& kept() const { return kept_; }
  /// Inputs, outputs, and kept values by pointer, as in runtime::Executable.
  virtual void run(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<const runtime::KeptPlace> kept = {}) const = 0;
  /// Times of the kernels over so many runs on inputs of zeros; an error unless it is machine code.
  virtual Profile profile(int runs) const;
  /// Of a call as things stand (the number of threads may have no limit but the process's), donated arguments held by
  /// nobody else. Fails under the evaluator, which allocates as it goes.
  CallMemory memory() const;
  /// Optimised LLVM IR and assembly of the kernels; an error in a build without LLVM.
  std::string llvm() const;
  std::string assembly() const;

 protected:
  /// Arena, scratch and threads.
  virtual CallMemory working_memory() const;

  CompiledFunction(ir::Function traced, CompileOptions options)
      : traced_(std::move(traced)), options_(std::move(options)), result_types_(traced_.result_types()) {}
  ir::Function traced_;
  CompileOptions options_;
  std::vector<ir::Type> result_types_;
  ir::Target target_;
  std::size_t num_compiled_ = 1;  // LLVM modules
  std::shared_ptr<const ir::Program> program_;
  std::vector<std::int32_t> aliases_;
  std::vector<bool> in_place_;
  std::vector<Kept> kept_;
};

/// The compiled form of f, from the cache that the whole process shares when it was compiled before.
std::shared_ptr<const CompiledFunction> compile(ir::Function f, const CompileOptions& options);
/// Identity of a compile: program, target, options; and the locations of ops that report indices.
Hash128 compile_key(const ir::Function& f, const CompileOptions& options);

/// Compiles and runs once over concrete tensors.
std::vector<Tensor> run_unjitted(ir::Function f, std::span<const Tensor> inputs, const std::source_location& where);

/// A line for the log sink.
void log_line(const std::string& line);
/// Whether the environment variable is set to something but "0"; `otherwise` when it is not set, or "".
bool environment_flag(const char* name, bool otherwise = false);

struct CompileStatistics {
  std::int64_t compiles = 0;
};
CompileStatistics compile_statistics();

}  // namespace burin::detail
