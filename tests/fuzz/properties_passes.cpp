// Properties of passes and texts: nothing here makes machine code.
#include "base/error.h"
#include "ir/kernel/program.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/fuzz/properties.h"

namespace burin::fuzz {

using namespace ir;

namespace {

PrintOptions in_full() {
  PrintOptions options;
  options.max_elements = -1;
  return options;
}

std::string text_trip(const std::string& when, const Function& f, const std::string& text) {
  Function parsed;
  try {
    parsed = parse(text);
  } catch (const Error& error) {
    return when + ": the text does not parse: " + error.what();
  }
  if (!same_program(parsed, f)) return when + ": parsed text is another program";
  return print(parsed, in_full()) == text ? "" : when + ": parsed text prints differently";
}

std::vector<Enclosure> exact_args(const std::vector<Literal>& inputs) {
  std::vector<Enclosure> args;
  for (const Literal& input : inputs) args.push_back(exactly(input));
  return args;
}

}  // namespace

std::string check_verifier(Case& c) {
  if (std::string broken = verify(c.f()); !broken.empty()) return "as drawn: " + broken;
  for (const Case::Stage& stage : c.stages())
    if (std::string broken = verify(stage.function); !broken.empty()) return "after " + stage.pass + ": " + broken;
  const std::string broken = verify(c.program());
  return broken.empty() ? "" : "after plan_memory: " + broken;
}

std::string check_text(Case& c) {
  std::string last = print(c.f(), in_full());
  if (std::string broken = text_trip("as drawn", c.f(), last); !broken.empty()) return broken;
  const Function parsed = parse(last);
  Outcome from_text = evaluated(parsed, c.inputs());
  if (!from_text.error.empty()) from_text.error.resize(from_text.error.rfind(" ("));  // it knows its line
  if (std::string d = wrong(from_text, c.by_evaluator()); !d.empty()) return "parsed text: " + d;
  for (const Case::Stage& stage : c.stages()) {
    std::string text = print(stage.function, in_full());
    if (!stage.changed && text == last) continue;
    last = std::move(text);
    if (std::string broken = text_trip("after " + stage.pass, stage.function, last); !broken.empty()) return broken;
  }
  return "";
}

std::string check_program_text(Case& c) {
  const std::string text = print(c.program());
  try {
    const Program parsed = parse_program(text);
    if (print(parsed) != text) return "a parsed program prints differently";
    if (std::string broken = verify(parsed); !broken.empty()) return "a parsed program: " + broken;
  } catch (const Error& error) {
    return std::string("the text of a program does not parse: ") + error.what();
  }
  return "";
}

std::string check_idempotence(Case& c) {
  for (const Case::Stage& stage : c.stages()) {
    // A pass that changed nothing has just been run on what it leaves.
    if (!stage.changed || stage.pass == "inline_calls" || stage.pass == "decompose" || stage.pass == "split_reductions" ||
        stage.pass == "fuse")
      continue;
    if (!same_program(passes::run_pass(stage.pass, stage.function, c.options()), stage.function))
      return "a second " + stage.pass + " changes what the first left";
  }
  return "";
}

std::string check_passes(Case& c) {
  Outcome before = c.by_evaluator();
  const Function* last = &c.f();
  for (const Case::Stage& stage : c.stages()) {
    if (!stage.changed) continue;
    const Outcome after = evaluated(stage.function, c.inputs());
    // An index that nothing depends on any more is not looked at.
    const bool dropped = !before.error.empty() && after.error.empty() &&
                         (stage.pass == "simplify" || stage.pass == "remove_dead" || stage.pass == "decompose");
    std::string d;
    if (!stage.keeps_bits && before.error.empty() && after.error.empty()) {
      Model model;
      model.excess_precision = stage.pass == "widen_half";
      const std::vector<Enclosure> may_be = enclose(*last, exact_args(c.inputs()), model);
      d = model.unsure.empty() ? outside(after.results, may_be) : "";
    } else if (!dropped && (before.error.empty() || after.error.empty())) {
      d = wrong(after, before);
    }
    if (!d.empty()) return "after " + stage.pass + ": " + d;
    before = after;
    last = &stage.function;
  }
  return "";
}

}  // namespace burin::fuzz
