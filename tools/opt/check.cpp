#include "tools/opt/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "tools/execute/backends.h"
#include "tools/execute/compare.h"
#include "tools/execute/seeded_data.h"

namespace opt {
namespace {

using namespace burin;
using namespace burin::ir;

struct Way {
  std::string when, how;  // "before", "machine code"
  tools::Run run;

  std::string name() const { return when + ", " + how; }
};

// "before and after, each by evaluator, interpreter"; "before by interpreter; after by evaluator, interpreter".
std::string list(const std::vector<Way>& ways) {
  std::string before, after;
  for (const Way& way : ways) {
    std::string& names = way.when == "before" ? before : after;
    names += (names.empty() ? "" : ", ") + way.how;
  }
  return before == after ? "before and after, each by " + before : "before by " + before + "; after by " + after;
}

void add_ways(const std::string& when, const tools::Unit& unit, const Target& target, bool excess_precision,
              std::vector<Way>& ways) {
  if (unit.function) ways.push_back({when, "evaluator", tools::evaluator(*unit.function)});
  const Program program =
      unit.function ? tools::program_of(*unit.function, target, excess_precision) : tools::planned(*unit.program);
  ways.push_back({when, "interpreter", tools::interpreter(program)});
  if (tools::can_run(target)) ways.push_back({when, "machine code", tools::machine(program, target, 2, true)});
}

struct Outcome {
  tools::Results results;
  std::string error;
};

Outcome outcome(const Way& way, const std::vector<Literal>& inputs) {
  try {
    return {way.run(inputs), ""};
  } catch (const burin::Error& error) {
    return {{}, error.what()};
  }
}

std::vector<Type> input_types(const tools::Unit& unit) {
  return unit.function ? unit.function->arg_types() : unit.program->inputs;
}

void check_arguments(const std::vector<Type>& found, const std::vector<Type>& expected, const std::string& file) {
  if (found.size() != expected.size())
    throw burin::Error(fmt::format("--check: {}: expected {}, found {}", file, counted(expected.size(), "argument"), found.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected[i])
      throw burin::Error(fmt::format("--check: {}: argument {}: expected {}, found {}", file, i, to_string(expected[i]), to_string(found[i])));
}

}  // namespace

CheckReport check(const tools::Unit& before, const std::string& file, const tools::Unit& after, const Target& target,
                  std::uint64_t seed, bool excess_precision) {
  tools::Agreement agreement;
  if (before.function)
    agreement = tools::agreement_of(*before.function, excess_precision);
  else
    agreement = {64 * 0x1p-23, "a program says in which order it sums, not from what"};
  check_arguments(input_types(before), input_types(after), file);
  std::vector<Way> ways;
  add_ways("before", before, target, excess_precision, ways);
  add_ways("after", after, target, excess_precision, ways);
  std::vector<std::pair<std::string, tools::Draw>> rounds = {{"plain", tools::Draw::plain}};
  // Where sums may be ordered differently, infinities and NaN would only hide what they meet.
  if (agreement.tolerance == 0) rounds.emplace_back("special", tools::Draw::special);
  for (const auto& [name, draw] : rounds) {
    const std::vector<Literal> inputs = tools::seeded_data(input_types(before), seed, draw);
    const Outcome expected = outcome(ways[0], inputs);
    for (std::size_t i = 1; i < ways.size(); ++i) {
      const Outcome found = outcome(ways[i], inputs);
      std::string wrong;
      if (expected.error.empty() != found.error.empty())
        wrong = fmt::format("{} instead of {}", found.error.empty() ? "no error" : found.error,
                            expected.error.empty() ? "no error" : expected.error);
      else
        wrong = tools::first_difference(found.results, expected.results, agreement.tolerance);
      if (!wrong.empty())
        return {false,
                fmt::format("check failed: {}, on {} data: {}; expected: {}", ways[i].name(), name, wrong, ways[0].name())};
    }
  }
  if (agreement.tolerance == 0)
    return {true, fmt::format("check: bitwise equal on plain and special data: {}", list(ways))};
  return {true, fmt::format("check: equal within {:.2g} on plain data (not bitwise: {}): {}", agreement.tolerance,
                            agreement.reason, list(ways))};
}

}  // namespace opt
