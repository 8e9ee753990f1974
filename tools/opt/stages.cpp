#include "tools/opt/stages.h"

#include <fmt/format.h>

#include <chrono>

#include "frontend/compiled.h"
#include "frontend/dump.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/program.h"
#include "tools/execute/backends.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;
namespace passes = burin::passes;

constexpr std::string_view infer_shapes = "infer_shapes";  // what parsing does, under a name

bool is_lowering(std::string_view pass) { return pass == "lower" || pass == "schedule" || pass == "plan_memory"; }

passes::Options pass_options(const Request& request) {
  passes::Options options;
  options.verify = request.verify_each;
  options.observer = request.observer;
  options.excess_precision = request.excess_precision;
  options.disabled = request.disabled;
  options.stop_after = request.stop_after;
  options.memory_budget = request.memory_budget;
  options.split_elements = request.split_elements;
  return options;
}

const Function& function_for(const tools::Unit& unit, std::string_view pass) {
  if (!unit.function) throw burin::Error(fmt::format("{} takes a function, found a program", pass));
  return *unit.function;
}

bool has_fusion(const Function& f) {
  bool any = false;
  f.for_each_op([&](OpId op) { any = any || f.kind(op) == Op::fusion; });
  return any;
}

void run_lowering_pass(const std::string& pass, tools::Unit& unit, const Request& request) {
  if (pass == "lower") {
    const Function& f = function_for(unit, pass);
    if (!passes::is_fused(f) && f.num_ops() > 0) throw burin::Error("lower takes a fused function: run fuse before it");
    unit.program = passes::lower_program(f, request.target, {});
    unit.function.reset();
    return;
  }
  if (!unit.program) throw burin::Error(fmt::format("{} takes a program, found a function: run lower before it", pass));
  if (unit.program->planned) throw burin::Error(fmt::format("{} takes a program whose memory is not planned; this one's is", pass));
  pass == "schedule" ? passes::schedule(*unit.program) : passes::plan_memory(*unit.program);
}

void run_one(const std::string& pass, tools::Unit& unit, const Request& request) {
  if (pass == infer_shapes) {
    function_for(unit, pass);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  bool changed = true;
  if (is_lowering(pass)) {
    run_lowering_pass(pass, unit, request);
    if (request.verify_each) check_valid(*unit.program, pass.c_str());
  } else {
    const Function& f = function_for(unit, pass);
    if (pass == "fuse" && !passes::is_fused(f) && has_fusion(f))
      throw burin::Error("fuse takes a function without fusions, or of nothing else: run inline_calls before it");
    Function next = passes::run_pass(pass, f, pass_options(request));
    if (request.verify_each) check_valid(next, pass.c_str());
    changed = !same_program(f, next);
    unit.function = std::move(next);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (request.observer)
    request.observer(
        {pass, unit.function ? &*unit.function : nullptr, unit.program ? &*unit.program : nullptr, changed, seconds});
}

}  // namespace

std::vector<std::string> pipeline_passes() {
  std::vector<std::string> names;
  for (const passes::PassInfo& pass : passes::pass_table()) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> known_passes() {
  std::vector<std::string> names = pipeline_passes();
  names.insert(names.begin(), std::string(infer_shapes));
  return names;
}

std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const passes::PassInfo& pass : passes::pass_table())
    if (pass.optional) names.emplace_back(pass.name);
  return names;
}

bool shows_program(std::string_view emit) {
  return emit == "kernel" || emit == "llvm" || emit == "asm" || emit == "memory";
}

tools::Unit run_passes(const tools::Unit& input, const Request& request) {
  tools::Unit unit = input;
  for (const std::string& pass : request.passes) run_one(pass, unit, request);
  const bool stops_early = !request.stop_after.empty() && !is_lowering(request.stop_after);
  if (stops_early && shows_program(request.emit))
    throw burin::Error(fmt::format("--emit={} shows a program, but nothing is lowered when {} is the last pass", request.emit, request.stop_after));
  if (request.pipeline || stops_early) {
    if (!unit.function) throw burin::Error("the pipeline takes a function, found a program");
    if (!passes::is_fused(*unit.function))
      unit.function = passes::run_function_passes(*unit.function, pass_options(request));
  }
  if (request.explain_fusion) {
    if (!unit.function) throw burin::Error("--explain-fusion takes a function, found a program");
    if (!passes::is_fused(*unit.function))
      unit.function = passes::run_function_passes(*unit.function, pass_options(request));
    return unit;
  }
  if ((shows_program(request.emit) || (!stops_early && !request.stop_after.empty())) && unit.function) {
    const Function& f = *unit.function;
    const passes::Options options = pass_options(request);
    unit.program = passes::is_fused(f) ? passes::run_lowering(f, request.target, options)
                                      : passes::build_program(f, request.target, options);
    unit.function.reset();
  }
  return unit;
}

std::string text_of(const tools::Unit& unit, const Request& request) {
  if (request.explain_fusion) return passes::explain_fusion(*unit.function);
  if (request.emit == "dot" || request.emit == "ir") {
    if (!unit.function) throw burin::Error(fmt::format("--emit={} shows a function, found a program", request.emit));
    if (request.emit == "dot") return burin::detail::graph_of(*unit.function);
  }
  if (unit.function) {
    PrintOptions options;
    options.locations = request.locations;
    if (request.full_constants) options.max_elements = -1;
    return print(*unit.function, options);
  }
  if (request.emit == "llvm" || request.emit == "asm") {
    const auto start = std::chrono::steady_clock::now();
    const std::string text = request.emit == "llvm" ? burin::detail::program_llvm(*unit.program, request.target)
                                                    : burin::detail::program_assembly(*unit.program, request.target);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (request.observer) request.observer({"codegen", nullptr, &*unit.program, true, seconds});
    return text;
  }
  if (request.emit == "memory" && !unit.program->planned)
    throw burin::Error("--emit=memory shows a planned program: run plan_memory before it");
  if (request.emit == "memory") return burin::detail::memory_text(*unit.program);
  return print(*unit.program);
}

}  // namespace opt
