// burin-run: computes IR text on tensors from files or from a seed; prints, writes or compares the results, and times
// them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>

#include "base/error.h"
#include "runtime/limits.h"
#include "tools/execute/backends.h"
#include "tools/execute/compare.h"
#include "tools/execute/crash.h"
#include "tools/execute/files.h"
#include "tools/execute/input_text.h"
#include "tools/execute/main.h"
#include "tools/execute/number_options.h"

namespace {

using namespace burin;
using namespace burin::ir;

using tools::failed;

struct CommandLine {
  std::string path = "-", inputs = "random", outputs, expect, backend = BURIN_WITH_LLVM ? "machine" : "interpreter",
              isa;
  double tolerance = 0;
  int threads = 0, reps = 1;
  bool quiet = false;
};

void parse(CLI::App& app, CommandLine& line, int argc, char** argv) {
  app.add_option("file", line.path, "IR or Program text; - is stdin")->capture_default_str();
  app.add_option("--inputs", line.inputs, "x.safetensors, a.npy,b.npy or random[:seed]")->capture_default_str();
  app.add_option("--outputs", line.outputs, "write the results to this .safetensors file (one result: or .npy)");
  auto* expect =
      app.add_option("--expect", line.expect, "compare the results with those of x.safetensors or a.npy,b.npy");
  app.add_option("--tolerance", line.tolerance, "times max(1, largest |expected|); 0: bitwise")
      ->check(tools::number_from_zero())
      ->needs(expect)
      ->capture_default_str();
  app.add_option("--backend", line.backend, "machine, interpreter or evaluator")
      ->check(CLI::IsMember({"machine", "interpreter", "evaluator"}))
      ->capture_default_str();
  app.add_option("--target", line.isa, "the widest instructions to use: avx2, avx512, avx512_bf16 or amx")
      ->check(CLI::IsMember({"avx2", "avx512", "avx512_bf16", "amx"}));
  app.add_option("--threads", line.threads, "worker threads; 0: one per core")
      ->check(tools::whole_number(0, burin::runtime::max_threads))
      ->capture_default_str();
  app.add_option("--reps", line.reps, "run so often and print the times to stderr")
      ->check(tools::whole_number(1, 1'000'000'000))
      ->capture_default_str();
  app.add_flag("--quiet", line.quiet, "do not print the results");
  app.parse(argc, argv);
}

tools::Run prepare(const tools::Unit& unit, const CommandLine& line) {
  if (line.backend == "evaluator") {
    if (!unit.function)
      throw Error("the evaluator computes functions, found a program: use --backend=interpreter or machine");
    return tools::evaluator(*unit.function);
  }
  const Target target = host_target(line.isa);
  Program program = unit.program ? tools::planned(*unit.program) : tools::program_of(*unit.function, target, true);
  if (line.backend == "interpreter") return tools::interpreter(std::move(program));
  return tools::machine(std::move(program), target, line.threads);
}

int run_all(const CommandLine& line) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  const tools::Unit unit = tools::parse_unit(tools::read_text(line.path), line.path);
  const std::vector<tools::Slot> outputs = tools::output_slots(unit);
  if (!line.outputs.empty()) tools::check_writable(line.outputs, outputs.size());
  const std::vector<Literal> inputs = tools::read_inputs(line.inputs, tools::input_slots(unit));
  std::vector<Literal> expected;
  if (!line.expect.empty()) expected = tools::read_tensors(line.expect, outputs);
  const auto start = Clock::now();
  const tools::Run compute = prepare(unit, line);
  const double compile_ms = milliseconds(start);
  tools::Results results;
  std::vector<double> times;
  for (int i = 0; i < line.reps; ++i) {
    const auto before = Clock::now();
    results = compute(inputs);
    times.push_back(milliseconds(before));
  }
  if (line.reps > 1) {
    const double first = times.front();
    std::sort(times.begin(), times.end());
    // Nanoseconds are what the clock has.
    fmt::print(stderr, "compiled in {:.3f} ms; {} runs: first {:.6f} ms, median {:.6f} ms, least {:.6f} ms\n", compile_ms,
               times.size(), first, times[times.size() / 2], times.front());
  }
  if (!line.quiet)
    for (std::size_t i = 0; i < results.size(); ++i)
      std::cout << outputs[i].name << " : " << to_string(outputs[i].type) << '\n'
                << tools::text_of(results[i]) << std::endl;
  if (!std::cout) throw Error("cannot write to stdout");
  if (!line.outputs.empty()) tools::write_tensors(line.outputs, outputs, results);
  if (line.expect.empty()) return 0;
  if (const std::string wrong = tools::first_difference(results, expected, line.tolerance); !wrong.empty()) {
    std::cerr << "burin-run: " << line.expect << ": " << wrong << '\n';
    return failed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tools::report_crashes();
  CLI::App app{
      "Computes IR text on tensors.\nExit status: 0 done, 1 bad input or results that differ from --expect, 2 wrong "
      "usage."};
  CommandLine line;
  const auto body = [&] {
    parse(app, line, argc, argv);
    return run_all(line);
  };
  return tools::run_main("burin-run", app, body, [&] { return line.path + ": its tensors do not fit into memory"; });
}
