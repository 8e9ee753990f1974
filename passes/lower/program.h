// From a function of fusions to a Program, in three steps that each leave a printable Program: lower (every value its own buffer, every step its own
// phase), schedule (phases), plan_memory (buffers share the arena).
#pragma once
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::passes {

/// Lowers each fusion; equal kernels are kept once. The plan holds a row for each output, then one for each value of the arena,
/// which is BufferRef{arena, its row in plan, 0} until plan_memory. `donated`: by argument; an output may take over the memory of such an argument.
ir::Program lower_program(const ir::Function& fused, const ir::Target& target, const std::vector<bool>& donated);
/// Steps that do not read one another's results share a phase. Before memory is planned: values that share bytes rest on the phases.
void schedule(ir::Program& program);
/// Gives every arena value of a program that is not planned its offset: values whose lives (in phases) do not meet may share bytes.
void plan_memory(ir::Program& program);

}  // namespace burin::passes
