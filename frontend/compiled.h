// A compiled function with its buffers: one call, and the views of Lowered and Compiled. Inside the frontend only.
#pragma once
#include <memory>
#include <vector>

#include <burin/jit.h>

#include "frontend/compile.h"
#include "runtime/executable.h"

namespace burin {

struct Lowered::State {
  std::shared_ptr<const ir::Function> function;
  detail::CompileOptions options;
};
struct Compiled::State {
  std::shared_ptr<const detail::CompiledFunction> compiled;
};

namespace detail {

/// What a call lists. Used for call after call, the lists' memory is allocated once.
struct CallLists {
  std::vector<Tensor*> arguments;  // the leaves that are passed
  std::vector<bool> donated;       // by argument
  std::vector<Tensor> results;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<std::size_t> taken;  // arguments whose bytes become a result's
  std::vector<runtime::KeptPlace> kept;
  std::vector<std::shared_ptr<runtime::Buffer>> kept_buffers;
  /// Lets go of all, but for the memory.
  void clear();
};

/// Runs over `lists.arguments`, then `captures`, and leaves lists.results. An argument that is donated, held by nobody else (nor passed
/// twice), and whose place a result takes, is written in place and given up; after an exception all arguments are as they
/// were. `where` is the call, `jitted_at` what is said of arguments that were given up.
void run_compiled(const CompiledFunction& f, CallLists& lists, const std::vector<Tensor>& captures, const std::source_location& where,
                  const std::source_location& jitted_at);

/// The memory plan for people: what a call holds (`call`, when it is known), the line of each value, and the scratch of the
/// kernels.
std::string memory_text(const ir::Program& program, const CallMemory* call = nullptr);

}  // namespace detail
}  // namespace burin
