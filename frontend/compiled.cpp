#include "frontend/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/message_ids.h"
#include "base/place.h"
#include "frontend/trace_stack.h"
#include "ir/printer.h"
#include "passes/fuse/fuse.h"
#include "passes/pipeline.h"

namespace burin {
namespace detail {
void CallLists::clear() {
  arguments.clear();
  donated.clear();
  results.clear();
  inputs.clear();
  outputs.clear();
  taken.clear();
  kept.clear();
  kept_buffers.clear();
}

void run_compiled(const CompiledFunction& f, CallLists& lists, const std::vector<Tensor>& captures, const std::source_location& where,
                  const std::source_location& jitted_at) try {
  auto& [arguments, donated, results, inputs, outputs, taken, kept, kept_buffers] = lists;
  const auto add_input = [&](const Tensor& t) {
    const Node& node = used_node(t, where);
    if (node.kind == Node::Kind::abstract) fail_at(where_text(where), Msg::abstract_value_read, to_string(node.type));
    lists.inputs.push_back(node.bytes());
  };
  for (const Tensor* t : arguments) add_input(*t);
  for (const Tensor& t : captures) add_input(t);

  const std::vector<ir::Type>& types = f.result_types();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::int32_t alias = f.aliases()[i];
    std::shared_ptr<runtime::Buffer> buffer;
    if (alias >= 0) {
      const auto j = static_cast<std::size_t>(alias);
      BURIN_CHECK(j < arguments.size() && donated[j], "only a donated argument is written in place");
      const auto& node = Access::node(*arguments[j]);
      const bool sole_owner = node.use_count() == 1 && node->buffer && node->buffer.use_count() == 1 &&
                              std::ranges::count(inputs, inputs[j]) == 1;  // one Tensor may be two arguments
      if (sole_owner && f.writes_in_place(i)) {
        buffer = node->buffer;
        taken.push_back(j);
      } else {
        buffer = runtime::Buffer::allocate(types[i].bytes());
        if (types[i].bytes() > 0) std::memcpy(buffer->data(), inputs[j], static_cast<std::size_t>(types[i].bytes()));
        inputs[j] = buffer->data();
      }
    } else {
      buffer = runtime::Buffer::allocate(types[i].bytes());
    }
    outputs.push_back(buffer->data());
    results.push_back(make_concrete(types[i], std::move(buffer)));
  }
  // What is kept beside an argument goes on to its successor, also where that is a copy because somebody else holds the argument: it
  // is about to be written to, and who holds many old weights does not hold their packed copies.
  for (const CompiledFunction::Kept& value : f.kept()) {
    const Node& donor = *Access::node(*arguments[static_cast<std::size_t>(f.aliases()[value.output])]);
    std::shared_ptr<runtime::Buffer> made = donor.buffer ? donor.buffer->take_kept(value.key) : nullptr;
    const bool given = made != nullptr;
    if (!given) made = runtime::Buffer::allocate(value.bytes);
    kept.push_back({made->data(), given});
    kept_buffers.push_back(std::move(made));
  }
  for (std::size_t j : taken) Access::node(*arguments[j])->buffer->drop_kept();
  f.run(inputs, outputs, kept);
  for (std::size_t k = 0; k < kept_buffers.size(); ++k) {
    const CompiledFunction::Kept& value = f.kept()[k];
    Access::node(results[value.output])->buffer->keep(value.key, std::move(kept_buffers[k]));
  }
  for (std::size_t j : taken) {
    Node& node = *Access::node(*arguments[j]);
    node.kind = Node::Kind::donated;
    node.buffer.reset();
    node.made_at = jitted_at;
  }
} catch (const runtime::OutOfMemory& error) {
  fail_memory(error, where);
}

}  // namespace detail

std::int64_t Lowered::num_ops() const { return static_cast<std::int64_t>(state_->function->num_ops()); }
std::string Lowered::text() const { return print(*state_->function); }

Compiled Lowered::compile() const {
  auto compiled = std::make_shared<Compiled::State>();
  compiled->compiled = detail::compile(*state_->function, state_->options);
  return Compiled(std::move(compiled));
}

std::string Compiled::text() const {
  const detail::CompiledFunction& f = *state_->compiled;
  return f.has_program() ? print(f.program()) : print(f.traced());
}

std::string Compiled::kernels() const {
  std::string text = fmt::format("{:>5} {:>6} {:>8}  {}\n", "step", "after", "tasks", "kernel");
  const ir::Program& program = state_->compiled->program();
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const ir::Step& step = program.steps[i];
    // "@rows_0 (model.cpp:3)"; "@rows_0: rows_1 (model.cpp:7)" where equal kernels share machine code.
    const std::string& name = program.kernels[step.kernel].name;
    const bool own = step.label == name || step.label.starts_with(name + " ");
    text += fmt::format("{:>5} {:>6} {:>8}  @{}{}{}\n", i, step.after, step.tasks, name, own || step.label.empty() ? "" : ": ",
                        std::string_view(step.label).substr(own ? name.size() : 0));
  }
  return text;
}

std::string Compiled::memory() const {
  const detail::CallMemory memory = state_->compiled->memory();
  return detail::memory_text(state_->compiled->program(), &memory);
}

std::int64_t Compiled::num_kernels() const { return static_cast<std::int64_t>(state_->compiled->program().kernels.size()); }
std::int64_t Compiled::num_steps() const { return static_cast<std::int64_t>(state_->compiled->program().steps.size()); }
std::int64_t Compiled::peak_bytes() const { return state_->compiled->memory().total(); }
Profile Compiled::profile(int runs) const {
  if (runs < 1) fail(Msg::profile_runs, runs);
  return state_->compiled->profile(runs);
}
std::string Compiled::llvm() const { return state_->compiled->llvm(); }
std::string Compiled::assembly() const { return state_->compiled->assembly(); }

std::string Compiled::explain_fusion() const {
  const detail::CompiledFunction& f = *state_->compiled;
  passes::Options options;
  options.excess_precision = f.options().excess_precision;
  options.donated = f.options().donated;
  return passes::explain_fusion(passes::run_function_passes(f.traced(), options));
}

}  // namespace burin
