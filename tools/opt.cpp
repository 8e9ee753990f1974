// burin-opt: reads a Function or a Program as text, runs passes on it, and prints what comes out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>

#include "base/check.h"
#include "base/error.h"
#include "tools/execute/crash.h"
#include "tools/execute/files.h"
#include "tools/execute/input_text.h"
#include "tools/execute/main.h"
#include "tools/execute/number_options.h"
#include "tools/opt/bisect.h"
#include "tools/opt/check.h"
#include "tools/opt/stages.h"

namespace {

using namespace burin;
using namespace burin::ir;

using tools::failed;

struct CommandLine {
  std::string path = "-", target, passes, against;
  opt::Request request;
  std::string inputs = "random";
  bool time_passes = false, check = false, bisect = false, no_excess_precision = false;
  std::uint64_t seed = 1;
};

std::string list(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

void split_passes(CommandLine& line) {
  const std::vector<std::string> known = opt::known_passes();
  for (const std::string& pass : CLI::detail::split(line.passes, ',')) {
    if (std::find(known.begin(), known.end(), pass) == known.end())
      throw CLI::ValidationError("--passes", fmt::format("unknown pass `{}`, expected one of {}", pass, list(known)));
    line.request.passes.push_back(pass);
  }
}

// Without --target, this machine. With it, default caches: the same text everywhere.
Target target_of(const std::string& name) {
  if (name.empty()) return host_target();
  Target target;
  if (!isa_from_name(name, &target.isa))
    throw CLI::ValidationError(
        "--target", fmt::format("unknown target `{}`, expected one of avx2, avx512, avx512_bf16, amx", name));
  return target;
}

void parse(CLI::App& app, CommandLine& line, int argc, char** argv) {
  const std::vector<std::string> artefacts = {"ir", "kernel", "llvm", "asm", "dot", "memory"};
  opt::Request& request = line.request;
  app.add_option("file", line.path, "IR or Program text; - is stdin")->capture_default_str();
  auto* passes = app.add_option("--passes", line.passes, "passes to run, in this order: " + list(opt::known_passes()));
  app.add_flag("--pipeline", request.pipeline, "run the whole pipeline, up to what --emit shows")->excludes(passes);
  app.add_option("--disable", request.disabled, "passes that the pipeline leaves out, separated by commas: " + list(opt::optional_passes()))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(opt::optional_passes()))
      ->excludes(passes);
  app.add_option("--stop-after", request.stop_after, "run the pipeline up to this pass, and print what it leaves")
      ->check(CLI::IsMember(opt::pipeline_passes()))
      ->excludes(passes);
  app.add_option("--emit", request.emit,
                 "what to print: " + list(artefacts) +
                     "; a function that is not lowered yet runs through the pipeline for kernel, llvm, asm and memory; llvm is after "
                     "LLVM's optimisation, what asm is made of")
      ->check(CLI::IsMember(artefacts));
  app.add_option("--memory-budget", request.memory_budget,
                 "bytes that arena and results of a program are to fit into: what does not is computed again where it is read late")
      ->check(tools::whole_number(0, INT64_MAX))
      ->excludes(passes);
  app.add_option("--split-elements", request.split_elements, "from how many elements on split_reductions reduces in parts")
      ->check(tools::whole_number(1, INT64_MAX));
  app.add_flag("--explain-fusion", request.explain_fusion,
               "print which op is in which kernel, and why one stands alone");
  app.add_flag("--time-passes", line.time_passes, "print the milliseconds of each pass, and of code generation, to stderr");
  app.add_option("--target", line.target,
                 "avx2, avx512, avx512_bf16 or amx, with default caches; without it this machine");
  app.add_flag("--verify-each", request.verify_each, "check the invariants after every pass (builds with assertions always do)");
  auto* check = app.add_flag("--check", line.check,
                             "execute what goes in and what comes out on seeded data, by evaluator, kernel interpreter "
                             "and machine code, and compare");
  app.add_option("--against", line.against,
                 "with --check: what comes out must compute what this text does, not what went in")
      ->needs(check);
  auto* bisect =
      app.add_flag(
             "--bisect", line.bisect,
             "run the pipeline on the inputs and name the pass, and within it the rewrite or the kernel, after which "
             "the result is wrong or an invariant is broken; prints no text")
          ->excludes(passes)
          ->excludes(check);
  app.add_option("--inputs", line.inputs,
                 "of --bisect: a .safetensors file, .npy files separated by commas, or random:SEED")
      ->capture_default_str()
      ->needs(bisect);
  app.add_option("--seed", line.seed, "of the data of --check")
      ->check(tools::whole_number(0, INT64_MAX))
      ->capture_default_str();
  app.add_flag("--no-excess-precision", line.no_excess_precision, "round 16-bit floats after every op");
  app.add_flag("--full-constants", request.full_constants, "print constants of any size, so that the text parses");
  app.add_flag("--locations", request.locations, "print where each op comes from");
  app.parse(argc, argv);
  if (passes->count() > 0) split_passes(line);
  request.excess_precision = !line.no_excess_precision;
  request.target = target_of(line.target);
}

std::string repeat_bisect(const void* data) {
  const auto& line = *static_cast<const CommandLine*>(data);
  return fmt::format("  while bisecting; repeat with: burin-opt {} --bisect --inputs={}{}{}", line.path, line.inputs,
                     line.target.empty() ? "" : " --target=" + line.target, line.no_excess_precision ? " --no-excess-precision" : "");
}

int bisect(const CommandLine& line, const tools::Unit& unit) {
  if (!unit.function) throw burin::Error("--bisect takes a function, found a program");
  const burin::CrashContext context(&repeat_bisect, &line);
  const Function& f = *unit.function;
  const opt::Request& request = line.request;
  const auto culprit = opt::bisect(f, tools::read_inputs(line.inputs, tools::input_slots(unit)), request.target,
                                   opt::pipeline(request.excess_precision));
  fmt::print("{}\n", culprit ? opt::to_string(*culprit) : "no pass changes the result");
  return culprit ? failed : 0;
}

int run(CommandLine& line) {
  if (line.time_passes)
    line.request.observer = [](const burin::passes::Options::Event& event) {
      fmt::print(stderr, "{:>10.3f} ms  {}{}\n", event.seconds * 1e3, event.pass, event.changed ? "" : " (unchanged)");
    };
  const tools::Unit before = tools::parse_unit(tools::read_text(line.path), line.path);
  if (line.bisect) return bisect(line, before);
  const tools::Unit after = opt::run_passes(before, line.request);
  std::cout << opt::text_of(after, line.request) << std::flush;
  if (!std::cout) throw burin::Error("cannot write to stdout");
  if (!line.check) return 0;
  const tools::Unit expected =
      line.against.empty() ? before : tools::parse_unit(tools::read_text(line.against), line.against);
  const opt::CheckReport report =
      opt::check(expected, line.against.empty() ? line.path : line.against, after, line.request.target, line.seed, line.request.excess_precision);
  std::cerr << "burin-opt: " << report.text << '\n';
  return report.agree ? 0 : failed;
}

}  // namespace

int main(int argc, char** argv) {
  tools::report_crashes();
  CLI::App app{
      "Runs passes over IR text and prints what comes out.\nExit status: 0 done, 1 bad input or a failed --check, 2 "
      "wrong usage."};
  CommandLine line;
  const auto body = [&] {
    parse(app, line, argc, argv);
    return run(line);
  };
  return tools::run_main("burin-opt", app, body, [&] { return line.path + ": its tensors do not fit into memory"; });
}
