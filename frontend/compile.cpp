// The story in one screen: a traced Function -> key -> cache -> passes -> code generation -> executable.
#include "frontend/compile.h"

#include <algorithm>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/code_files.h"
#include "frontend/dump.h"
#include "frontend/perf.h"
#include "frontend/profile.h"
#include "frontend/timeline.h"
#include "frontend/trace_stack.h"
#include "ir/eval/eval.h"
#include "passes/lower/program.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "runtime/cache.h"
#include "runtime/executable.h"
#include "runtime/peaks.h"
#include "runtime/profile.h"
#include "runtime/thread_pool.h"
#include "runtime/timeline.h"
#if BURIN_WITH_LLVM
#include "codegen/codegen.h"
#endif

namespace burin::detail {
namespace {

std::atomic<std::int64_t> num_compiles{0};

runtime::Cache<std::shared_ptr<const CompiledFunction>>& cache() {
  // Each has two mappings of memory or more, of which a process may have 65530.
  static auto* const all = new runtime::Cache<std::shared_ptr<const CompiledFunction>>(4096);
  return *all;
}

std::vector<ir::Literal> literals(const std::vector<ir::Type>& types, std::span<const void* const> inputs) {
  std::vector<ir::Literal> all;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(types[i].bytes());
    all.emplace_back(types[i], std::span(static_cast<const std::byte*>(inputs[i]), bytes));
  }
  return all;
}

void store(std::vector<ir::Literal> results, std::span<void* const> outputs) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].expand();
    if (!results[i].raw().empty()) std::memcpy(outputs[i], results[i].raw().data(), results[i].raw().size());
  }
}

class Evaluated final : public CompiledFunction {
 public:
  Evaluated(ir::Function f, CompileOptions options) : CompiledFunction(std::move(f), std::move(options)) {
    passes::check_opened_size(traced_);  // each call is evaluated anew
    aliases_.assign(traced_.results().size(), -1);
  }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<const runtime::KeptPlace>) const override {
    store(ir::evaluate(traced_, literals(traced_.arg_types(), inputs)), outputs);
  }
};

#if !BURIN_WITH_LLVM
[[noreturn]] void no_machine() { fail(Msg::unknown_backend, "machine", "interpreter, evaluator"); }
#endif

// For a timeline.
std::string name_of(const ir::Function& f, const CompileOptions& options) { return options.label.empty() ? f.name() : options.label; }

passes::Options pass_options(const ir::Function& f, const CompileOptions& options, Dump* dump) {
  passes::Options result;
  result.observer = record_passes(name_of(f, options), dump ? dump->observer() : PassObserver());
  result.excess_precision = options.excess_precision;
  result.donated = options.donated;
  result.keep_packed = options.keep_packed;
  return result;
}

class Planned : public CompiledFunction {
 protected:
  using CompiledFunction::CompiledFunction;
  /// Sets program_, then `make`s of it what runs; over the budget, both once more without packed copies that are kept, then with values
  /// computed again instead of kept.
  template <class Make>
  void build_within_budget(Dump* dump, const Make& make) {
    passes::Options options = pass_options(traced_, options_, dump);
    const auto build = [&] {
      program_ = std::make_shared<ir::Program>(passes::build_program(traced_, target_, options));
      make();
    };
    build();
    const auto fits = [&] { return options_.memory_budget < 0 || memory().total() <= options_.memory_budget; };
    if (fits()) return;
    if (!program_->kept.empty()) {
      options.keep_packed = false;
      build();
      if (fits()) return;
    }
    const std::int64_t total = memory().total();
    // What the threads need, and results that need memory of their own after all, stay.
    options.memory_budget = std::max<std::int64_t>(options_.memory_budget - (total - passes::held_bytes(*program_)), 0);
    build();
  }
};

class Interpreted final : public Planned {
 public:
  Interpreted(ir::Function f, CompileOptions options, Dump* dump) : Planned(std::move(f), std::move(options)) {
    target_ = ir::host_target(options_.max_isa);
    aliases_.assign(traced_.results().size(), -1);  // interpret() returns its results apart from its inputs
    options_.keep_packed = false;
    build_within_budget(dump, [&] {});
  }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<const runtime::KeptPlace>) const override {
    store(ir::interpret(*program_, literals(program_->inputs, inputs)), outputs);
  }
};

#if BURIN_WITH_LLVM
std::vector<const ir::Kernel*> kernels_of(const ir::Program& program) {
  std::vector<const ir::Kernel*> kernels;
  for (const ir::Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  return kernels;
}

runtime::StepTable step_table(const ir::Program& program, std::shared_ptr<codegen::Module> module) {
  BURIN_CHECK(program.planned, "a program is compiled before its memory is planned");
  runtime::StepTable table;
  for (const ir::Step& step : program.steps) {
    const ir::Kernel& kernel = program.kernels[step.kernel];
    runtime::Step row;
    row.entry = module->entries()[step.kernel];
    row.first_arg = static_cast<std::uint32_t>(table.args.size());
    row.num_args = static_cast<std::uint32_t>(step.args.size());
    row.tasks = step.tasks;
    row.after = step.after;
    row.cost_ns = kernel.cost;
    row.scratch_bytes = kernel.scratch_bytes();
    for (const ir::Site& site : step.sites) row.sites.push_back(site.message);
    row.unless = step.unless;
    row.label = step.label;
    row.kernel = kernel.name;
    for (const ir::BufferRef& ref : step.args)
      table.args.push_back({static_cast<runtime::Storage>(ref.storage), ref.index, ref.offset});
    table.steps.push_back(std::move(row));
  }
  for (const ir::Type& type : program.inputs) table.input_bytes.push_back(type.bytes());
  for (const ir::Type& type : program.outputs) table.output_bytes.push_back(type.bytes());
  for (ir::Literal constant : program.constants) {
    constant.expand();
    table.constants.emplace_back(constant.raw().begin(), constant.raw().end());
  }
  for (const ir::KeptValue& kept : program.kept) table.kept_bytes.push_back(kept.type.bytes());
  table.arena_bytes = program.arena_bytes;
  table.code = std::move(module);
  return table;
}

std::vector<bool> outputs_written_after_checks(const ir::Program& program) {
  std::vector<std::uint32_t> written_after(program.outputs.size(), ~0u);  // so many steps
  std::vector<std::int64_t> output_of_donor(program.inputs.size(), -1);
  for (std::size_t i = 0; i < program.aliases.size(); ++i)
    if (program.aliases[i] >= 0) output_of_donor[static_cast<std::size_t>(program.aliases[i])] = static_cast<std::int64_t>(i);
  std::uint32_t checks = 0;  // so many steps hold all that look for indices out of range
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    const ir::Step& step = program.steps[s];
    const ir::Kernel& kernel = program.kernels[step.kernel];
    for (std::size_t i = 0; i < step.args.size(); ++i) {
      const ir::BufferRef& ref = step.args[i];
      if (kernel.buffers[i].space == ir::Space::in) continue;
      // Updated in place, a donated argument is named as the input that it is.
      const std::int64_t output = ref.storage == ir::Storage::output  ? ref.index
                                  : ref.storage == ir::Storage::input ? output_of_donor[ref.index]
                                                                      : -1;
      if (output < 0) continue;
      std::uint32_t& first = written_after[static_cast<std::size_t>(output)];
      first = std::min(first, step.after);
    }
    if (!step.sites.empty()) checks = s + 1;
  }
  std::vector<bool> all;
  for (std::uint32_t after : written_after) all.push_back(after >= checks);
  return all;
}

// By the kernels that make it, of an input of one type.
std::vector<CompiledFunction::Kept> kept_values(const ir::Program& program) {
  std::vector<CompiledFunction::Kept> all;
  for (std::uint32_t k = 0; k < program.kept.size(); ++k) {
    Hasher hasher;
    hasher.add(to_string(program.outputs[program.kept[k].output]));
    for (const ir::Step& step : program.steps)
      if (std::ranges::find(step.unless, k) != step.unless.end()) program.kernels[step.kernel].hash(hasher);
    all.push_back({program.kept[k].output, program.kept[k].type.bytes(), hasher.finish()});
  }
  return all;
}

class Machine final : public Planned {
 public:
  Machine(ir::Function f, CompileOptions options, Dump* dump) : Planned(std::move(f), std::move(options)) {
    target_ = ir::host_target(options_.max_isa);
    build_within_budget(dump, [&] {
      const auto start = std::chrono::steady_clock::now();
      executable_ = make_executable(*program_, target_, options_.num_threads, code_files().get(), &num_compiled_, name_of(traced_, options_));
      if (dump) dump->timed("codegen", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      aliases_ = program_->aliases;
      in_place_ = outputs_written_after_checks(*program_);
      kept_ = kept_values(*program_);
    });
  }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<const runtime::KeptPlace> kept) const override {
    runtime::RunOptions run_options;
    run_options.kept = kept;
    run_options.num_threads = options_.num_threads;
    executable_->run(inputs, outputs, run_options);
  }
  Profile profile(int runs) const override {
    std::vector<std::shared_ptr<runtime::Buffer>> buffers;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    const auto zeros = [&](const ir::Type& type) {
      buffers.push_back(runtime::Buffer::allocate(type.bytes()));
      if (type.bytes() > 0) std::memset(buffers.back()->data(), 0, static_cast<std::size_t>(type.bytes()));
      return buffers.back()->data();
    };
    for (const ir::Type& type : program_->inputs) inputs.push_back(zeros(type));
    std::vector<runtime::KeptPlace> kept;
    for (const ir::KeptValue& value : program_->kept) kept.push_back({zeros(value.type)});
    for (std::size_t i = 0; i < aliases_.size(); ++i)
      outputs.push_back(aliases_[i] >= 0 ? buffers[static_cast<std::size_t>(aliases_[i])]->data() : zeros(program_->outputs[i]));
    const runtime::Peaks& peaks = runtime::machine_peaks(executable_->held(options_.num_threads).threads);
    runtime::Profile times;
    runtime::RunOptions run_options;
    run_options.num_threads = options_.num_threads;
    run_options.kept = kept;
    executable_->run(inputs, outputs, run_options);
    for (runtime::KeptPlace& place : kept) place.given = true;
    run_options.profile = &times;
    for (int i = 0; i < runs; ++i) executable_->run(inputs, outputs, run_options);
    return by_kernel(*program_, times, peaks);
  }

 private:
  CallMemory working_memory() const override {
    const runtime::Held held = executable_->held(options_.num_threads);
    return {.arena = held.arena, .scratch = held.scratch, .threads = held.threads};
  }
  std::unique_ptr<runtime::Executable> executable_;
};
#endif

void check_budget(const CompiledFunction& compiled, const CompileOptions& options) {
  const std::int64_t budget = options.memory_budget;
  if (budget < 0 || !compiled.has_program()) return;
  const CallMemory memory = compiled.memory();
  if (memory.total() <= budget) return;
  const std::vector<ir::PlannedValue>& plan = compiled.program().plan;
  const auto largest = std::max_element(plan.begin(), plan.end(), [](const auto& a, const auto& b) { return a.type.bytes() < b.type.bytes(); });
  fail_at(options.place, Msg::over_budget, memory.total(), budget, memory.arena, memory.scratch, memory.results,
       largest == plan.end() ? "" : fmt::format("; the largest value is {} of {}", to_string(largest->type), largest->name));
}

std::shared_ptr<const CompiledFunction> build(ir::Function f, const CompileOptions& options, Dump* dump) {
  switch (chosen_backend()) {
    case Backend::evaluator: return std::make_shared<Evaluated>(std::move(f), options);
    case Backend::interpreter: return std::make_shared<Interpreted>(std::move(f), options, dump);
    case Backend::machine: break;
  }
#if BURIN_WITH_LLVM
  return std::make_shared<Machine>(std::move(f), options, dump);
#else
  return std::make_shared<Evaluated>(std::move(f), options);
#endif
}

}  // namespace

Backend chosen_backend() {
  const char* text = std::getenv("BURIN_BACKEND");
  const std::string_view name = text ? text : "";
  if (name.empty()) return BURIN_WITH_LLVM ? Backend::machine : Backend::evaluator;
  if (name == "machine" && BURIN_WITH_LLVM) return Backend::machine;
  if (name == "interpreter") return Backend::interpreter;
  if (name == "evaluator") return Backend::evaluator;
  fail(Msg::unknown_backend, name, BURIN_WITH_LLVM ? "machine, interpreter, evaluator" : "interpreter, evaluator");
}

const ir::Program& CompiledFunction::program() const {
  if (!program_) fail(Msg::no_program);
  return *program_;
}

Profile CompiledFunction::profile(int) const { fail(Msg::not_machine_code); }

CallMemory CompiledFunction::working_memory() const {
  return {.arena = program().arena_bytes, .scratch = program().scratch_bytes()};
}

CallMemory CompiledFunction::memory() const {
  CallMemory memory = working_memory();
  for (std::size_t i = 0; i < aliases_.size(); ++i)
    if (!writes_in_place(i)) memory.results += program().outputs[i].bytes();
  for (const Kept& kept : kept_) memory.kept += kept.bytes;
  return memory;
}

std::string CompiledFunction::llvm() const { return program_llvm(program(), target_); }
std::string CompiledFunction::assembly() const { return program_assembly(program(), target_); }

#if BURIN_WITH_LLVM
std::unique_ptr<runtime::Executable> make_executable(const ir::Program& program, const ir::Target& target, int num_threads,
                                                     FileCache* files, std::size_t* num_compiled, const std::string& name) {
  const RecordedSpan span("codegen", name);
  if (num_threads == 0) num_threads = runtime::default_num_threads();
  std::shared_ptr<codegen::Module> module = codegen::compile(kernels_of(program), target, num_threads, files, kernel_texts());
  if (num_compiled != nullptr) *num_compiled = module->num_compiled();
  runtime::StepTable table = step_table(program, std::move(module));
  table.name = name;
  return std::make_unique<runtime::Executable>(std::move(table));
}
std::string program_llvm(const ir::Program& program, const ir::Target& target) {
  return codegen::emit_llvm(kernels_of(program), target);
}
std::string program_assembly(const ir::Program& program, const ir::Target& target) {
  return codegen::emit_assembly(kernels_of(program), target);
}
#else
std::unique_ptr<runtime::Executable> make_executable(const ir::Program&, const ir::Target&, int, FileCache*, std::size_t*, const std::string&) {
  no_machine();
}
std::string program_llvm(const ir::Program&, const ir::Target&) { no_machine(); }
std::string program_assembly(const ir::Program&, const ir::Target&) { no_machine(); }
#endif

std::vector<ir::Literal> run_literals(const ir::Program& program, const runtime::Executable& executable,
                                      std::span<const ir::Literal> inputs, const runtime::RunOptions& options) {
  std::vector<ir::Literal> in(inputs.begin(), inputs.end()), out;
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  for (ir::Literal& literal : in) {
    literal.expand();
    in_data.push_back(literal.raw().data());
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    // A donated argument lives where its output does.
    const std::int32_t donor = program.aliases[i];
    out.push_back(donor >= 0 ? in[static_cast<std::size_t>(donor)] : ir::Literal(program.outputs[i]));
    out_data.push_back(out.back().mutable_raw().data());
    if (donor >= 0) in_data[static_cast<std::size_t>(donor)] = out_data.back();
  }
  executable.run(in_data, out_data, options);
  return out;
}

Hash128 compile_key(const ir::Function& f, const CompileOptions& options) {
  Hasher hasher;
  f.hash(hasher);
  // The message of an index out of range names a line: equal programs from different lines are compiled apart.
  f.for_each_op([&](ir::OpId op) {
    const bool reports = (f.kind(op) == ir::Op::gather && f.attrs<ir::Op::gather>(op).mode == ir::IndexMode::error) ||
                         (f.kind(op) == ir::Op::scatter && f.attrs<ir::Op::scatter>(op).mode == ir::IndexMode::error);
    if (reports) hasher.add(to_string(f.location(op)));
  });
  hasher.add(options.donated.size());
  for (bool donated : options.donated) hasher.add(donated);
  hasher.add(options.num_threads);
  hasher.add(options.memory_budget);
  hasher.add(options.excess_precision);
  hasher.add(options.keep_packed);
  hasher.add(options.max_isa);
  hasher.add(chosen_backend());
  if (const char* isa = std::getenv("BURIN_MAX_ISA")) hasher.add(std::string_view(isa));
  return hasher.finish();
}

std::shared_ptr<const CompiledFunction> compile(ir::Function f, const CompileOptions& options) {
  const Hash128 key = compile_key(f, options);
  return cache().get_or_make(key, [&] {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t num_ops = f.num_ops();
    const RecordedSpan span("compile", name_of(f, options));
    const auto dump = Dump::start(f);
    auto compiled = build(std::move(f), options, dump.get());
    if (dump) dump->finish(*compiled);
    check_budget(*compiled, options);
    ++num_compiles;
    if (environment_flag("BURIN_LOG_COMPILES")) {
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      const std::size_t kernels = chosen_backend() == Backend::evaluator ? 0 : compiled->program().kernels.size();
      log_line(fmt::format("burin: compiled {}: {}, {}, {:.1f} ms{}", options.label, counted(num_ops, "op"), counted(kernels, "kernel"),
                           took.count(), compiled->is_recalled() ? ", machine code at hand" : ""));
    }
    return compiled;
  });
}

std::vector<Tensor> run_unjitted(ir::Function f, std::span<const Tensor> inputs, const std::source_location& where) try {
  std::vector<const void*> in;
  for (const Tensor& t : inputs) {
    const Node& node = used_node(t, where);
    if (node.kind == Node::Kind::abstract)
      fail_at(where_text(where), Msg::abstract_value_read, to_string(node.type));
    in.push_back(node.bytes());
  }
  CompileOptions options;
  options.excess_precision = false;  // an option of jit: un-jitted, every op rounds to its dtype
  const bool named = environment_flag("BURIN_LOG_COMPILES") || runtime::recording() != nullptr;
  options.label = named ? fmt::format("un-jitted op ({})", where_text(where)) : "";
  const auto compiled = compile(std::move(f), options);
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (const ir::Type& type : compiled->result_types()) {
    auto buffer = runtime::Buffer::allocate(type.bytes());
    out.push_back(buffer->data());
    results.push_back(make_concrete(type, std::move(buffer)));
  }
  compiled->run(in, out);
  return results;
} catch (const runtime::OutOfMemory& error) {
  fail_memory(error, where);
}

CompileStatistics compile_statistics() { return {num_compiles.load()}; }

}  // namespace burin::detail
