// The memory plan as text.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/counted.h"
#include "frontend/compiled.h"

namespace burin::detail {
namespace {

struct Steps {
  std::uint32_t first, end;
};

// During which steps a value takes its bytes.
Steps life(const ir::Program& program, const ir::PlannedValue& value) {
  return {std::min(value.first_step, static_cast<std::uint32_t>(program.steps.size())), program.first_behind(value.last_step)};
}

// The first step at which most bytes of the arena are taken, and how many.
std::pair<std::uint32_t, std::int64_t> fullest_step(const ir::Program& program) {
  std::vector<std::int64_t> change(program.steps.size() + 1, 0);
  for (const ir::PlannedValue& value : program.plan) {
    if (value.place.storage != ir::Storage::arena) continue;
    const auto [first, end] = life(program, value);
    change[first] += value.type.bytes();
    change[end] -= value.type.bytes();
  }
  std::uint32_t fullest = 0;
  std::int64_t bytes = 0, most = 0;
  for (std::uint32_t step = 0; step < program.steps.size(); ++step) {
    bytes += change[step];
    if (bytes <= most) continue;
    most = bytes;
    fullest = step;
  }
  return {fullest, most};
}

std::string place_text(const ir::Program& program, const ir::PlannedValue& value) {
  const std::uint32_t index = value.place.index;
  if (value.place.storage == ir::Storage::kept) return fmt::format("keep{}", index);
  if (value.place.storage != ir::Storage::output) return fmt::format("arena + {}", value.place.offset);
  if (program.aliases[index] < 0) return fmt::format("out{}", index);
  return fmt::format("out{} = in{}", index, program.aliases[index]);
}

}  // namespace

std::string memory_text(const ir::Program& program, const CallMemory* call) {
  const auto [fullest, most] = fullest_step(program);

  std::string text;
  if (call) {
    text = fmt::format("a call holds {} besides its arguments: arena {}, scratch of {} {}, results {}{}\n", counted(call->total(), "byte"),
                       call->arena, counted(call->threads, "thread"), call->scratch, call->results,
                       call->kept > 0 ? fmt::format(", packed copies of results {}", call->kept) : "");
  } else {
    std::int64_t results = 0;
    for (std::size_t i = 0; i < program.outputs.size(); ++i)
      if (program.aliases[i] < 0) results += program.outputs[i].bytes();
    text = fmt::format("arena {}, results {}, scratch {} a thread\n", counted(program.arena_bytes, "byte"), counted(results, "byte"),
                       counted(program.scratch_bytes(), "byte"));
  }
  if (most > 0)
    text += fmt::format("the arena is fullest at step {}: {}, of the values marked *\n", fullest, counted(most, "byte"));
  std::size_t width = 5;
  for (const ir::PlannedValue& value : program.plan) width = std::max(width, place_text(program, value).size());
  text += fmt::format("{:>14}  {:>11}  {:{}}  value\n", "bytes", "steps", "place", width);
  for (const ir::PlannedValue& value : program.plan) {
    const auto [first, end] = life(program, value);
    const bool marked = value.place.storage == ir::Storage::arena && most > 0 && first <= fullest && fullest < end;
    text += fmt::format("{:>14}{} {:>5}..{:<4}  {:{}}  {}  {}\n", value.type.bytes(), marked ? '*' : ' ', value.first_step,
                        value.last_step, place_text(program, value), width, to_string(value.type), value.name);
  }
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const ir::Kernel& kernel = program.kernels[k];
    if (kernel.scratch_bytes() == 0) continue;
    const auto step = std::find_if(program.steps.begin(), program.steps.end(), [&](const ir::Step& s) { return s.kernel == k; });
    text += fmt::format("{:>14}  scratch of a thread in {}:", kernel.scratch_bytes(),
                        step == program.steps.end() || step->label.empty() ? kernel.name : step->label);
    for (const ir::Buffer& buffer : kernel.buffers)
      if (buffer.space == ir::Space::scratch) text += fmt::format(" {} {}[{}]", buffer.name, name(buffer.dtype), buffer.span());
    text += "\n";
  }
  return text;
}

}  // namespace burin::detail
