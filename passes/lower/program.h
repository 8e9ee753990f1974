// From a function of fusions to a Program, in three steps that each leave a printable Program: lower (every value its own buffer, every step
// behind all before it), schedule (which steps wait for which), plan_memory (buffers share the arena).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::passes {

/// Lowers each fusion; equal kernels are kept once. The plan holds a row for each output, then one for each value of the arena,
/// which is BufferRef{arena, its row in plan, 0} until plan_memory. `donated`: by argument; an output may take over the memory of such an argument.
/// `keep_packed`: where it takes over one that is packed for products, and its kernel can, that lays out the packed copies of the output, which
/// become kept values.
ir::Program lower_program(const ir::Function& fused, const ir::Target& target, const std::vector<bool>& donated, bool keep_packed = false);
/// A step waits for those whose results it reads or whose arguments it overwrites, and, where it overwrites a donated argument, for all that look for
/// indices out of range: an argument survives a call that fails. Before memory is planned: values that share bytes rest on who waits for whom.
void schedule(ir::Program& program);
/// Gives every arena value of a program that is not planned its offset: values may share bytes when the steps of the one wait for those of the other.
void plan_memory(ir::Program& program);
/// What a value takes of the arena.
std::int64_t planned_bytes(const ir::Type& type);

/// What a call holds beside its arguments and what its threads need: the arena, kept values, and results that take over no argument.
std::int64_t held_bytes(const ir::Program& program);
/// Fusions run again where their results are read late, so that these need not wait in memory, until held_bytes are at most
/// `budget`, or as near as it gets. First those that free most bytes for their work. A copy runs the
/// same kernel on the same values: every bit stays. `plan` lowers, schedules and plans a function.
ir::Function rematerialise(const ir::Function& fused, std::int64_t budget, const std::function<ir::Program(const ir::Function&)>& plan);

}  // namespace burin::passes
