// Inputs and results as files, and results as text.
#pragma once
#include <string>
#include <vector>

#include "ir/literal.h"
#include "tools/execute/input_text.h"

namespace tools {

/// A program's inputs or outputs: names where the text has them, "0", "1", ... by position where not.
struct Slot {
  std::string name;
  burin::ir::Type type;
};

std::vector<Slot> input_slots(const Unit& unit);
std::vector<Slot> output_slots(const Unit& unit);

/// `what` is `random` or `random:SEED`, one .safetensors file that has a tensor for each slot, by name or position, or
/// as many .npy files as slots, separated by commas. Throws burin::Error naming the file, what was expected and found.
std::vector<burin::ir::Literal> read_inputs(const std::string& what, const std::vector<Slot>& slots);
/// The tensors of one .safetensors file, or of .npy files, as read_inputs.
std::vector<burin::ir::Literal> read_tensors(const std::string& what, const std::vector<Slot>& slots);
/// Throws burin::Error unless `path` names a kind of file that can hold so many results.
void check_writable(const std::string& path, std::size_t num_results);
/// Written as a whole or not at all.
void write_tensors(const std::string& path, const std::vector<Slot>& slots,
                   const std::vector<burin::ir::Literal>& values);
/// As NumPy prints it, long axes abbreviated.
std::string text_of(const burin::ir::Literal& value);

}  // namespace tools
