#include "tools/execute/files.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/error.h"
#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "frontend/node.h"
#include "tools/execute/seeded_data.h"

namespace tools {
namespace {

using namespace burin;
using namespace burin::ir;

bool ends_with(const std::string& text, std::string_view end) { return std::string_view(text).ends_with(end); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

Literal literal_of(const io::HostTensor& tensor, const Slot& slot, const std::string& path) {
  const std::string found = io::describe(tensor.dtype, tensor.shape), expected = to_string(slot.type);
  if (found != expected) throw Error(fmt::format("{}: `{}`: expected {}, found {}", path, slot.name, expected, found));
  return Literal(slot.type, tensor.data);
}

std::vector<Literal> from_safetensors(const std::string& path, const std::vector<Slot>& slots) {
  const io::Safetensors file = io::read_safetensors(path);
  std::vector<Literal> values;
  std::string missing, present;
  for (const auto& [name, tensor] : file.tensors) present += (present.empty() ? "" : ", ") + name;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto found = file.tensors.find(slots[i].name);
    if (found == file.tensors.end()) found = file.tensors.find(std::to_string(i));
    if (found == file.tensors.end())
      missing += (missing.empty() ? "" : ", ") + slots[i].name;
    else
      values.push_back(literal_of(found->second, slots[i], path));
  }
  if (!missing.empty())
    throw Error(
        fmt::format("{}: no tensor named {}; the file has {}", path, missing, present.empty() ? "none" : present));
  return values;
}

io::HostTensor host_tensor(const Literal& value) {
  Literal expanded = value;
  expanded.expand();
  io::HostTensor tensor;
  tensor.dtype = name(value.dtype());
  for (std::int64_t extent : value.shape()) tensor.shape.push_back(extent);
  tensor.data.assign(expanded.raw().begin(), expanded.raw().end());
  return tensor;
}

std::vector<Slot> slots_of(const std::vector<std::pair<std::string, Type>>& named) {
  std::vector<Slot> slots;
  std::set<std::string> taken;
  for (const auto& [name, type] : named) {
    const bool usable = !name.empty() && taken.insert(name).second;
    slots.push_back({usable ? name : std::to_string(slots.size()), type});
  }
  return slots;
}

}  // namespace

std::vector<Slot> input_slots(const Unit& unit) {
  std::vector<std::pair<std::string, Type>> named;
  if (unit.function)
    for (ValueId arg : unit.function->args())
      named.emplace_back(unit.function->value_name(arg), unit.function->type(arg));
  else
    for (const Type& type : unit.program->inputs) named.emplace_back("", type);
  return slots_of(named);
}

std::vector<Slot> output_slots(const Unit& unit) {
  std::vector<std::pair<std::string, Type>> named;
  if (unit.function)
    for (ValueId result : unit.function->results())
      named.emplace_back(unit.function->value_name(result), unit.function->type(result));
  else
    for (const Type& type : unit.program->outputs) named.emplace_back("", type);
  return slots_of(named);
}

std::vector<Literal> read_tensors(const std::string& what, const std::vector<Slot>& slots) {
  if (ends_with(what, ".safetensors")) return from_safetensors(what, slots);
  const std::vector<std::string> paths = split(what);
  for (const std::string& path : paths)
    if (!ends_with(path, ".npy")) throw Error(fmt::format("{}: expected a .safetensors file or .npy files", path));
  if (paths.size() != slots.size())
    throw Error(
        fmt::format("expected {}, found {}", counted(slots.size(), ".npy file"), paths.size()));
  std::vector<Literal> values;
  for (std::size_t i = 0; i < paths.size(); ++i)
    values.push_back(literal_of(io::read_npy(paths[i]), slots[i], paths[i]));
  return values;
}

std::vector<Literal> read_inputs(const std::string& what, const std::vector<Slot>& slots) {
  if (what != "random" && !what.starts_with("random:")) return read_tensors(what, slots);
  std::uint64_t seed = 0;
  if (what != "random") {
    const char *begin = what.data() + 7, *end = what.data() + what.size();
    const auto [stop, error] = std::from_chars(begin, end, seed);
    if (error != std::errc() || stop != end || begin == end)
      throw Error(fmt::format("{}: expected a seed, a whole number, behind `random:`", what));
  }
  std::vector<Type> types;
  for (const Slot& slot : slots) types.push_back(slot.type);
  return tools::seeded_data(types, seed, tools::Draw::plain);
}

void check_writable(const std::string& path, std::size_t num_results) {
  if (ends_with(path, ".npy")) {
    if (num_results != 1)
      throw Error(fmt::format("{}: a .npy file holds one result, found {}: name a .safetensors file", path, num_results));
  } else if (!ends_with(path, ".safetensors")) {
    throw Error(fmt::format("{}: expected the name of a .safetensors or .npy file", path));
  }
}

void write_tensors(const std::string& path, const std::vector<Slot>& slots, const std::vector<Literal>& values) {
  check_writable(path, values.size());
  if (ends_with(path, ".npy")) {
    io::write_npy(path, host_tensor(values[0]));
    return;
  }
  io::Safetensors file;
  for (std::size_t i = 0; i < values.size(); ++i) file.tensors[slots[i].name] = host_tensor(values[i]);
  io::write_safetensors(path, file);
}

std::string text_of(const Literal& value) {
  std::ostringstream out;
  out << detail::make_concrete(value);
  return out.str();
}

}  // namespace tools
