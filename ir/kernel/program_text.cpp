#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/message_ids.h"
#include "ir/constant_text.h"
#include "ir/kernel/parser.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/program.h"
#include "ir/printer.h"

namespace burin::ir {
namespace {

std::string place_text(const Program& program, const BufferRef& ref) {
  if (!program.planned && ref.storage == Storage::arena) return "value" + std::to_string(ref.index);
  static constexpr std::string_view names[] = {"in", "out", "arena", "const", "keep"};
  std::string text(names[static_cast<int>(ref.storage)]);
  if (ref.storage != Storage::arena) text += std::to_string(ref.index);
  return ref.offset == 0 ? text : text + " + " + std::to_string(ref.offset);
}

// Different kernels may have one name; as text each has its own.
std::vector<std::string> kernel_names(const Program& program) {
  std::vector<std::string> names;
  std::unordered_set<std::string> used;
  for (const Kernel& kernel : program.kernels) {
    const std::string base = identifier(kernel.name, "kernel");
    std::string name = base;
    for (int number = 2; !used.insert(name).second; ++number) name = base + "_" + std::to_string(number);
    names.push_back(std::move(name));
  }
  return names;
}

class ProgramParser {
 public:
  ProgramParser(std::string_view text, std::string_view file) : in_(text, file) {}

  Program run() {
    in_.expect("program");
    types("in", program_.inputs, false);
    in_.expect("->");
    types("out", program_.outputs, true);
    program_.planned = !in_.accept("unplanned");
    if (program_.planned && in_.accept("arena")) program_.arena_bytes = natural("a number of bytes");
    in_.expect("{");
    while (!in_.accept("}")) {
      if (in_.at("step")) {
        step();
      } else if (in_.at("plan")) {
        plan();
      } else if (in_.at(fmt::format("keep{}", program_.kept.size()))) {
        kept();
      } else {
        constant();
      }
    }
    std::unordered_map<std::string_view, std::uint32_t> kernels;
    while (in_.peek().kind != Token::end) {
      const Token name = in_.peek(1);
      if (!kernels.emplace(name.text, static_cast<std::uint32_t>(program_.kernels.size())).second)
        in_.fail(name, Msg::kernel_name_twice, "kernel", name.text);
      program_.kernels.push_back(parse_kernel(in_));
    }
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const auto found = kernels.find(kernel_of_[i].text);
      if (found == kernels.end()) in_.fail(kernel_of_[i], Msg::kernel_unknown_name, "kernel", kernel_of_[i].text);
      program_.steps[i].kernel = found->second;
    }
    return std::move(program_);
  }

 private:
  std::int64_t natural(std::string_view what) {
    if (in_.peek().text.starts_with('-')) in_.fail_expected(what);
    return in_.expect_int(what);
  }
  std::uint32_t small(std::string_view what) {
    const Token token = in_.peek();
    const std::int64_t value = natural(what);
    if (value > INT32_MAX) in_.fail(token, Msg::parse_expected, what, quoted(token));
    return static_cast<std::uint32_t>(value);
  }

  // (in0: f32[2], in1: f32[]) and (out0: f32[2] = in1)
  void types(std::string_view prefix, std::vector<Type>& list, bool aliases) {
    in_.expect("(");
    while (!in_.at(")")) {
      if (!list.empty()) in_.expect(",");
      in_.expect(fmt::format("{}{}", prefix, list.size()));
      in_.expect(":");
      list.push_back(parse_type(in_));
      if (aliases) program_.aliases.push_back(in_.accept("=") ? alias() : -1);
    }
    in_.expect(")");
  }
  std::int32_t alias() {
    const Token token = in_.peek();
    const BufferRef ref = place();
    if (ref.storage != Storage::input || ref.offset != 0)
      in_.fail(token, Msg::parse_expected, "an input", quoted(token));
    return static_cast<std::int32_t>(ref.index);
  }

  BufferRef place() {
    BufferRef ref;
    const Token token = in_.expect(Token::word, fmt::format("a place like in0, out0, const0 or {}", program_.planned ? "arena" : "value0"));
    bool known = program_.planned && token.text == "arena";
    const auto numbered = [&](std::string_view prefix, Storage storage) {
      if (known || !token.text.starts_with(prefix)) return;
      const std::string_view digits = token.text.substr(prefix.size());
      if (digits.empty() || digits.size() > 8 || digits.find_first_not_of("0123456789") != std::string_view::npos)
        return;
      ref.storage = storage;
      ref.index = static_cast<std::uint32_t>(std::stoul(std::string(digits)));
      known = true;
    };
    numbered("in", Storage::input);
    numbered("out", Storage::output);
    numbered("const", Storage::constant);
    numbered("keep", Storage::kept);
    if (!program_.planned) numbered("value", Storage::arena);
    if (!known) in_.fail(token, Msg::kernel_unknown_name, "place", token.text);
    if (in_.accept("+")) ref.offset = natural("a number of bytes");
    return ref;
  }

  void step() {
    in_.expect("step");
    Step s;
    kernel_of_.push_back(in_.expect(Token::symbol, "a kernel name like @add"));
    in_.expect("(");
    while (!in_.at(")")) {
      if (!s.args.empty()) in_.expect(",");
      s.args.push_back(place());
    }
    in_.expect(")");
    in_.expect("tasks");
    s.tasks = natural("a number of tasks");
    in_.expect("after");
    s.after = small("a number of steps");
    if (in_.accept("unless"))
      do {
        const Token token = in_.peek();
        const BufferRef ref = place();
        if (ref.storage != Storage::kept || ref.offset != 0) in_.fail(token, Msg::parse_expected, "a kept value", quoted(token));
        s.unless.push_back(ref.index);
      } while (in_.accept(","));
    if (in_.peek().kind == Token::string) s.label = in_.expect_string("a label");
    while (in_.accept("site")) s.sites.push_back({in_.expect_string("a message in quotes")});
    program_.steps.push_back(std::move(s));
  }

  void plan() {
    in_.expect("plan");
    PlannedValue value;
    value.name = in_.expect_string("the name of a value in quotes");
    in_.expect(":");
    value.type = parse_type(in_);
    in_.expect("at");
    value.place = place();
    if (program_.planned) {
      in_.expect("steps");
      value.first_step = small("the number of a step");
      in_.expect("..");
      value.last_step = small("the number of a step");
    }
    program_.plan.push_back(std::move(value));
  }

  // keep0: u32[64] of out1
  void kept() {
    in_.take();
    in_.expect(":");
    KeptValue value;
    value.type = parse_type(in_);
    in_.expect("of");
    const Token token = in_.peek();
    const BufferRef ref = place();
    if (ref.storage != Storage::output || ref.offset != 0) in_.fail(token, Msg::parse_expected, "an output", quoted(token));
    value.output = ref.index;
    program_.kept.push_back(std::move(value));
  }

  void constant() {
    if (!in_.at(fmt::format("const{}", program_.constants.size())))
      in_.fail_expected(fmt::format("`const{}`, `step`, `plan` or `}}`", program_.constants.size()));
    in_.take();
    in_.expect(":");
    const Type type = parse_type(in_);
    in_.expect("=");
    program_.constants.push_back(make_constant(in_, read_constant(in_), type));
  }

  Lexer in_;
  Program program_;
  std::vector<Token> kernel_of_;
};

}  // namespace

std::string print(const Program& program) {
  std::string text = "program (";
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    text += fmt::format("{}in{}: {}", i > 0 ? ", " : "", i, to_string(program.inputs[i]));
  text += ") -> (";
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    text += fmt::format("{}out{}: {}", i > 0 ? ", " : "", i, to_string(program.outputs[i]));
    if (i < program.aliases.size() && program.aliases[i] >= 0) text += fmt::format(" = in{}", program.aliases[i]);
  }
  text += ")";
  if (!program.planned) text += " unplanned";
  if (program.arena_bytes != 0) text += fmt::format(" arena {}", program.arena_bytes);
  text += " {\n";
  for (std::size_t i = 0; i < program.constants.size(); ++i)
    text +=
        fmt::format("  const{}: {} = {}\n", i, to_string(program.constants[i].type()), print(program.constants[i], -1));
  for (std::size_t i = 0; i < program.kept.size(); ++i)
    text += fmt::format("  keep{}: {} of out{}\n", i, to_string(program.kept[i].type), program.kept[i].output);
  const std::vector<std::string> names = kernel_names(program);
  for (const Step& step : program.steps) {
    text += fmt::format("  step @{}(", step.kernel < names.size() ? names[step.kernel] : "undefined");
    for (std::size_t i = 0; i < step.args.size(); ++i) text += (i > 0 ? ", " : "") + place_text(program, step.args[i]);
    text += fmt::format(") tasks {} after {}", step.tasks, step.after);
    for (std::size_t i = 0; i < step.unless.size(); ++i) text += fmt::format("{}keep{}", i == 0 ? " unless " : ", ", step.unless[i]);
    if (!step.label.empty()) text += " " + quoted_string(step.label);
    text += "\n";
    for (const Site& site : step.sites) text += "    site " + quoted_string(site.message) + "\n";
  }
  for (const PlannedValue& value : program.plan) {
    text += fmt::format("  plan {}: {} at {}", quoted_string(value.name), to_string(value.type), place_text(program, value.place));
    if (program.planned) text += fmt::format(" steps {}..{}", value.first_step, value.last_step);
    text += "\n";
  }
  text += "}\n";
  for (std::size_t i = 0; i < program.kernels.size(); ++i) text += "\n" + print_kernel(program.kernels[i], names[i]);
  return text;
}

Program parse_program(std::string_view text, std::string_view file) { return ProgramParser(text, file).run(); }

}  // namespace burin::ir
