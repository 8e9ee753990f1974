#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "ir/kernel/interpreter.h"
#include "ir/kernel/program.h"

namespace burin::ir {

std::uint32_t Program::first_behind(std::uint32_t last) const {
  return static_cast<std::uint32_t>(std::ranges::partition_point(steps, [&](const Step& step) { return step.after <= last; }) - steps.begin());
}

std::int64_t Program::scratch_bytes() const {
  std::int64_t most = 0;
  for (const Kernel& kernel : kernels) most = std::max(most, kernel.scratch_bytes());
  return most;
}

namespace {

// Where each storage of a running program begins.
struct Places {
  std::vector<std::byte*> inputs, outputs, constants, kept;
  std::byte* arena = nullptr;

  std::byte* operator[](const BufferRef& ref) const {
    switch (ref.storage) {
      case Storage::input:
        return inputs[ref.index] + ref.offset;
      case Storage::output:
        return outputs[ref.index] + ref.offset;
      case Storage::constant:
        return constants[ref.index] + ref.offset;
      case Storage::kept:
        return kept[ref.index] + ref.offset;
      case Storage::arena:
        break;
    }
    return arena + ref.offset;
  }
};

}  // namespace

std::vector<Literal> interpret(const Program& program, std::span<const Literal> inputs) {
  BURIN_CHECK(program.planned, "a program is interpreted before its memory is planned");
  BURIN_CHECK(inputs.size() == program.inputs.size(), "a program is interpreted with a wrong number of inputs");
  // Copies: an input that an output takes over is written to, and its bytes belong to the caller.
  std::vector<Literal> in(inputs.begin(), inputs.end()), constants = program.constants, out;
  Places places;
  for (std::size_t i = 0; i < in.size(); ++i) {
    BURIN_CHECK(in[i].type() == program.inputs[i], "input " + std::to_string(i) + " is " + to_string(in[i].type()) +
                                                       ", expected " + to_string(program.inputs[i]));
    in[i].expand();
    places.inputs.push_back(in[i].mutable_raw().data());
  }
  for (Literal& constant : constants) {
    constant.expand();
    places.constants.push_back(constant.mutable_raw().data());
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    out.emplace_back(program.outputs[i]);
    places.outputs.push_back(out[i].mutable_raw().data());
  }
  // A donated input lives in the output's bytes from the start.
  for (std::size_t i = 0; i < program.aliases.size(); ++i) {
    if (program.aliases[i] < 0) continue;
    const auto from = static_cast<std::size_t>(program.aliases[i]);
    BURIN_CHECK(in[from].raw().size() == out[i].raw().size(), "an output aliases an input of another size");
    out[i] = Literal(program.outputs[i], in[from].raw());
    places.outputs[i] = places.inputs[from] = out[i].mutable_raw().data();
  }
  std::vector<std::uint64_t> arena = uninitialised_words("the arena", program.arena_bytes);
  places.arena = reinterpret_cast<std::byte*>(arena.data());

  std::vector<std::vector<std::uint64_t>> kept;
  for (const KeptValue& value : program.kept) {
    kept.push_back(uninitialised_words("a kept value", value.type.bytes()));
    places.kept.push_back(reinterpret_cast<std::byte*>(kept.back().data()));
  }

  std::unordered_map<std::uint32_t, KernelRunner> runners;
  for (const Step& step : program.steps) {
    const auto runner = runners.try_emplace(step.kernel, program.kernels[step.kernel]).first;
    std::vector<std::byte*> args;
    for (const BufferRef& ref : step.args) args.push_back(places[ref]);
    if (const auto report = runner->second.run(args)) {
      const auto site = static_cast<std::size_t>(report->site);
      const auto& sites = site < step.sites.size() ? step.sites : program.kernels[step.kernel].sites;
      BURIN_CHECK(site < sites.size(), "a kernel reports an index at a site that its step does not have");
      throw Error(report_text(sites[site], *report));
    }
  }
  return out;
}

}  // namespace burin::ir
