// Runs kernels as machine code on literals, for the targets that this machine can run.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel/block_builder.h"
#include "ir/literal.h"
#include "runtime/status.h"
#include "tests/support/literals.h"
#include "tests/support/machine.h"

namespace burin::test {

ir::Target avx2_target();
ir::Target avx512_target();
/// "avx2", "avx512".
std::string label(const ir::Target& target);

/// One literal per parameter; those written are changed. Scratch is filled with garbage before the run.
void run(BurinKernel entry, const ir::Kernel& kernel, std::vector<ir::Literal>& params,
         runtime::StatusSlot* status = nullptr);
/// Compiles the kernel alone and runs it.
void run(const ir::Kernel& kernel, const ir::Target& target, std::vector<ir::Literal>& params,
         runtime::StatusSlot* status = nullptr);

/// Random bits, of which some are NaN and infinities for floats; bools are 0 or 1.
ir::Literal random_bits(const ir::Type& type, std::uint64_t seed);
/// Small whole numbers, exact in every dtype.
ir::Literal small_numbers(const ir::Type& type, std::uint64_t seed);

/// Parameters of dense layout.
ir::BufferId add_param(ir::Kernel& kernel, std::string name, const ir::Type& type, ir::Space space);
ir::BufferId add_tile(ir::Kernel& kernel, std::string name, const ir::Type& type);
ir::BufferId add_scratch(ir::Kernel& kernel, std::string name, const ir::Type& type);

/// Names of the symbols that an ELF object leaves undefined.
std::vector<std::string> undefined_symbols(const std::string& object);

}  // namespace burin::test
