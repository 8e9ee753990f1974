// LLVM IR text, read without LLVM.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace burin::tables {

/// Instructions by opcode; calls of intrinsics by the intrinsic's name ("llvm.masked.load.v8f32.p0").
std::map<std::string, int, std::less<>> count_instructions(std::string_view text);

/// The text without what depends on the order in which independent instructions of a block were made, which is the C++ compiler's choice (in which
/// order it evaluates arguments): each operand is a hash of how it is computed, instructions without effect are sorted.
std::string normal_form(std::string_view text);

}  // namespace burin::tables
