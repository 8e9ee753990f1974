// The table of passes: the whole middle of the compiler on one screen.
#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/message_ids.h"
#include "ir/verifier.h"
#include "passes/crash_note.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/program.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

bool disabled(const Options& options, std::string_view pass) {
  return std::find(options.disabled.begin(), options.disabled.end(), pass) != options.disabled.end();
}

struct FunctionPass {
  PassInfo info;
  Function (*run)(const Function&, const Options&);
};

const std::vector<FunctionPass>& function_passes() {
  static const std::vector<FunctionPass> table = {
      {{"inline_calls", "canonicalise", "bodies are seen by everything below", false},
       [](const Function& f, const Options&) { return inline_calls(f); }},
      {{"simplify", "canonicalise", "one spelling for one meaning, before equal ops are looked for"},
       [](const Function& f, const Options&) { return simplify(f); }},
      {{"widen_half", "canonicalise", "before kernels are formed: what they hold between ops is settled by the text", true, false},
       [](const Function& f, const Options& options) { return options.excess_precision ? widen_half(f) : f; }},
      {{"fold_constants", "canonicalise", "after simplify has gathered constants, before equal ones are merged"},
       [](const Function& f, const Options&) { return fold_constants(f); }},
      {{"eliminate_common", "canonicalise", "needs canonical operands"},
       [](const Function& f, const Options&) { return eliminate_common(f); }},
      {{"decompose", "canonicalise", "what has no lowering becomes what has one, before kernels are formed", false},
       [](const Function& f, const Options&) { return decompose(f); }},
      {{"remove_dead", "canonicalise", "what the passes above left without users must not become kernels"},
       [](const Function& f, const Options&) { return remove_dead(f); }},
      {{"split_reductions", "fuse", "what is reduced in parts must be known before kernels are formed", true, false},
       [](const Function& f, const Options& options) { return split_reductions(f, options.split_elements); }},
      {{"fuse", "fuse", "settles what each kernel computes; nothing moves between kernels afterwards"},
       [](const Function& f, const Options& options) {
         return fuse(f, {.enabled = !disabled(options, "fuse"), .small_attention = options.small_attention});
       }},
      {{"drop_repeated_checks", "fuse", "fusion computes gathers again where they are cheaper than memory; one check is enough"},
       [](const Function& f, const Options&) { return drop_repeated_checks(f); }},
  };
  return table;
}

const std::vector<PassInfo>& lowering_passes() {
  static const std::vector<PassInfo> table = {
      {"lower", "lower", "loops and tiles, each kernel on its own; equal kernels once", false},
      {"schedule", "lower", "which steps wait for which, from what the kernels read and write"},
      {"plan_memory", "lower", "needs the schedule: values share bytes only where steps wait", false},
  };
  return table;
}

class Timer {
 public:
  std::chrono::steady_clock::time_point start() const { return start_; }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <class Chosen>
std::string names(const Chosen& chosen) {
  std::string list;
  for (const PassInfo& pass : pass_table())
    if (chosen(pass)) list += (list.empty() ? "" : ", ") + std::string(pass.name);
  return list;
}

// Names that a caller passed, against the table.
void check_names(const Options& options) {
  const std::vector<PassInfo>& table = pass_table();
  const auto find = [&](std::string_view name) -> const PassInfo& {
    const auto found = std::find_if(table.begin(), table.end(), [&](const PassInfo& pass) { return pass.name == name; });
    if (found == table.end()) fail(Msg::unknown_pass, name, names([](const PassInfo&) { return true; }));
    return *found;
  };
  if (!options.stop_after.empty()) find(options.stop_after);
  for (const std::string& name : options.disabled)
    if (!find(name).optional) fail(Msg::needed_pass, name, names([](const PassInfo& pass) { return pass.optional; }));
}

// Not in the table: it runs after the last pass, and only when that found too much, and has the passes of lowering run again. Steps that
// run at the same time need their memory at the same time, so here each waits for all before it.
Program within_budget(const Function& fused, const Target& target, const Options& options) {
  Options plain = options;
  plain.memory_budget = -1;
  plain.keep_packed = false;  // costs memory, and saves a small part of the time
  plain.disabled.emplace_back("schedule");
  Options quiet = plain;
  quiet.observer = nullptr;
  const CrashNote note("rematerialise", fused, "--pipeline --memory-budget=" + std::to_string(options.memory_budget) + target_option(target));
  const Timer timer;
  // A check that runs again as well would keep updates before it out of their arguments' memory.
  const auto checked_once = [&](const Function& f) { return disabled(options, "drop_repeated_checks") ? f : drop_repeated_checks(f); };
  const Function again = checked_once(
      rematerialise(fused, options.memory_budget, [&](const Function& now) { return run_lowering(checked_once(now), target, quiet); }));
  if (options.verify) check_valid(again, "rematerialise");
  if (options.observer) options.observer({"rematerialise", &again, nullptr, !same_program(fused, again), timer.seconds(), timer.start()});
  return run_lowering(again, target, plain);
}

}  // namespace

const std::vector<PassInfo>& pass_table() {
  static const std::vector<PassInfo> table = [] {
    std::vector<PassInfo> all;
    for (const FunctionPass& pass : function_passes()) all.push_back(pass.info);
    for (const PassInfo& pass : lowering_passes()) all.push_back(pass);
    return all;
  }();
  return table;
}

Function run_function_passes(const Function& f, const Options& options) {
  check_names(options);
  Function now = f;
  for (const FunctionPass& pass : function_passes()) {
    if (disabled(options, pass.info.name) && pass.info.name != "fuse") continue;
    const CrashNote note(pass.info.name, now, "--passes=" + std::string(pass.info.name));
    const Timer timer;
    Function next = pass.run(now, options);
    const double seconds = timer.seconds();
    if (options.verify) check_valid(next, pass.info.name.data());
    if (options.observer) options.observer({pass.info.name, &next, nullptr, !same_program(now, next), seconds, timer.start()});
    now = std::move(next);
    if (options.stop_after == pass.info.name) break;
  }
  return now;
}

Program run_lowering(const Function& fused, const Target& target, const Options& options) {
  check_names(options);
  Program program;
  std::string passes;  // up to this one
  for (const PassInfo& pass : lowering_passes()) {
    if (disabled(options, pass.name)) continue;
    passes += (passes.empty() ? "" : ",") + std::string(pass.name);
    const CrashNote note(pass.name, fused, "--passes=" + passes + target_option(target));
    const Timer timer;
    if (pass.name == "lower") program = lower_program(fused, target, options.donated, options.keep_packed);
    if (pass.name == "schedule") schedule(program);
    if (pass.name == "plan_memory") plan_memory(program);
    const double seconds = timer.seconds();
    const bool last = pass.name == "plan_memory" || options.stop_after == pass.name;
    if (options.verify && last) check_valid(program, pass.name.data());
    if (options.observer) options.observer({pass.name, nullptr, &program, true, seconds, timer.start()});
    if (options.stop_after == pass.name) break;
  }
  const bool too_large = options.memory_budget >= 0 && program.planned && held_bytes(program) > options.memory_budget;
  return too_large ? within_budget(fused, target, options) : program;
}

Program build_program(const Function& f, const Target& target, const Options& options) {
  for (const FunctionPass& pass : function_passes())
    if (options.stop_after == pass.info.name) fail(Msg::stops_before_lowering, options.stop_after);
  return run_lowering(run_function_passes(f, options), target, options);
}

Function run_pass(std::string_view name, const Function& f, const Options& options) {
  for (const FunctionPass& pass : function_passes()) {
    if (pass.info.name != name) continue;
    const CrashNote note(pass.info.name, f, "--passes=" + std::string(name));
    return pass.run(f, options);
  }
  fail(Msg::unknown_pass, name, names([](const PassInfo& pass) { return pass.stage != "lower"; }));
}

}  // namespace burin::passes
