// AMX's tile instructions on processors without them: machine code for Isa::amx runs anywhere that has the rest of its
// instructions, one signal per tile instruction.
#pragma once
#include <string>

#include "ir/target.h"

namespace burin::test {

/// Makes the tile instructions that LLVM emits work in this process: those of the processor where it has them and the system
/// grants them, else by catching the signal that an unknown instruction raises. "", or why not. Of the instructions caught, those
/// that a processor would refuse (shapes that do not fit one another, a tile that is not configured) end the process with a message.
/// Thread-safe; tiles belong to threads.
std::string enable_tiles();

/// The target of this machine with tiles, real or emulated; throws Error as host_target. Only where enable_tiles gives "" and the
/// machine has AVX512-BF16, which `tiles_missing` says ("", or the reason).
ir::Target tile_target();
std::string tiles_missing();

/// Tile instructions emulated so far, by all threads; 0 on a processor that has them.
long emulated_tile_instructions();

}  // namespace burin::test
