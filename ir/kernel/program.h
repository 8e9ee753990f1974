// Program: everything the runtime needs but the machine code. Distinct kernels, a table of steps, and where each byte lives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/literal.h"

namespace burin::ir {

enum class Storage : std::uint8_t { input, output, arena, constant, kept };

/// A place: byte `offset` inside input or output number `index`, inside the arena, inside a constant, or inside a kept value. In a program that is not
/// planned, `index` of the arena is a row of the plan, which has no bytes yet.
struct BufferRef {
  Storage storage = Storage::arena;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
  friend bool operator==(const BufferRef&, const BufferRef&) = default;
};

struct Step {
  std::uint32_t kernel = 0;      // row of Program::kernels
  std::vector<BufferRef> args;   // one per parameter of the kernel
  std::int64_t tasks = 1;
  std::uint32_t after = 0;       // so many steps at the start of the list must be done before this one begins; never fewer than for the step before
  std::string label;             // the fusion's name and source lines, for tables
  std::vector<Site> sites;       // this step's index messages, row by row those of its kernel
  std::vector<std::uint32_t> unless;  // kept values: where a call is given all of them (and they are some), the step is not needed
};

/// Something that is made of an output alone, by steps that have an `unless` from the input that the output takes over, and by others
/// from what they make of that. It is given to the next call along with that input, or made anew.
struct KeptValue {
  Type type;
  std::uint32_t output = 0;
};

/// One line of the memory plan, for people.
struct PlannedValue {
  std::string name;      // value name or source line
  Type type;
  BufferRef place;
  std::uint32_t first_step = 0, last_step = 0;
};

struct Program {
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<Type> inputs, outputs;
  /// Output i is input aliases[i] in place (a donated argument), or -1.
  std::vector<std::int32_t> aliases;
  std::vector<Literal> constants;
  std::vector<KeptValue> kept;
  /// False from lowering until memory is planned: values of the arena have no bytes, and the program does not run.
  bool planned = true;
  std::int64_t arena_bytes = 0;
  std::vector<PlannedValue> plan;

  /// Above it, sums of the bytes that a run needs might overflow.
  static constexpr std::int64_t max_arena_bytes = std::int64_t{1} << 60;

  /// The first step that begins when step `last` is done, or how many steps there are: from there on, bytes that `last` was the last to use are free.
  std::uint32_t first_behind(std::uint32_t last) const;
  /// What one thread needs: the most that any kernel does.
  std::int64_t scratch_bytes() const;
};

/// Kernels that share a name print under different ones; otherwise parse_program(print(p)) is p.
std::string print(const Program& program);
/// Throws Error ("file:line:column: ...") for text that is no program. What it returns is not verified.
Program parse_program(std::string_view text, std::string_view file = "<text>");
/// "", or the first broken invariant:
///   P1  every kernel satisfies its own
///   P2  an output takes over an input of the same bytes, each input at most once
///   P3  steps name a kernel and have its number of arguments, tasks and (or none) sites; steps wait for steps before them, and for no fewer than the step before
///   P4  the bytes of an argument lie inside its place, aligned to its dtype; what is stored to is no constant and no
///       input but one that an output takes over
///   P5  what a step stores to shares no byte with its other arguments (an in-place argument is `inout`)
///   P6  what a step stores to shares no byte with the arguments of steps that may run at the same time
///   P7  an output that has elements is stored to or takes over an input
///   P8  the arena has at most max_arena_bytes, and none before memory is planned
///   P9  rows of the plan name places that exist; before memory is planned, those of the arena themselves
///   P10 a kept value belongs to an output that takes over an input; a step with `unless` names kept values and stores to no output
std::string verify(const Program& program);
/// Aborts through BURIN_CHECK when an invariant is broken.
void check_valid(const Program& program, const char* after);

/// Runs every kernel of a planned program with the interpreter, step by step, kept values made anew. The same results as machine code, bit for bit, but for
/// transcendental functions (rounded once from f64 here). Throws Error for an index reported by a kernel.
std::vector<Literal> interpret(const Program& program, std::span<const Literal> inputs);
/// Runs one kernel over raw buffers (one pointer per parameter). Returns the message of the first reported index, or "".
std::string interpret(const Kernel& kernel, std::span<std::byte* const> buffers);

}  // namespace burin::ir
