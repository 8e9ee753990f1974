#include "tools/execute/input_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "ir/kernel/parser.h"
#include "ir/lexer.h"
#include "ir/parser.h"

namespace tools {
namespace {

using namespace burin;
using namespace burin::ir;

// Every `in` buffer an input, every `out` or `inout` one an output.
Program program_of(Kernel kernel) {
  Program program;
  Step step;
  step.label = kernel.name;
  step.tasks = kernel.num_tasks();
  step.sites = kernel.sites;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space == Space::scratch || buffer.space == Space::tile) continue;
    const Type type{buffer.dtype, buffer.shape};
    if (buffer.space != Space::out) program.inputs.push_back(type);
    if (buffer.space == Space::in) {
      step.args.push_back({Storage::input, static_cast<std::uint32_t>(program.inputs.size() - 1), 0});
      continue;
    }
    step.args.push_back({Storage::output, static_cast<std::uint32_t>(program.outputs.size()), 0});
    program.outputs.push_back(type);
    program.aliases.push_back(buffer.space == Space::inout ? static_cast<std::int32_t>(program.inputs.size() - 1) : -1);
  }
  program.kernels.push_back(std::move(kernel));
  program.steps.push_back(std::move(step));
  return program;
}

}  // namespace

std::string read_text(const std::string& path) {
  if (path == "-") {
    errno = 0;
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (std::ferror(stdin) != 0) throw burin::Error(std::string("cannot read stdin: ") + std::strerror(errno));
    return text;
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw burin::Error("cannot read " + path + ": it is a directory");
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::block)
    throw burin::Error("cannot read " + path + ": it is a device");  // which may never end
  std::ifstream file(path, std::ios::binary);
  if (!file) throw burin::Error("cannot read " + path + ": " + std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw burin::Error("cannot read " + path + ": " + std::strerror(errno));
  return text;
}

Unit parse_unit(const std::string& text, const std::string& path) {
  const std::string file = path == "-" ? "<stdin>" : path;
  Lexer first(text, file);
  Unit unit;
  if (first.at("program") || first.at("kernel")) {
    if (first.at("program")) {
      unit.program = parse_program(text, file);
    } else {
      unit.program = program_of(parse_kernel(first));
      if (first.peek().kind != Token::end) first.fail_expected("the end of the text");
    }
    if (const std::string broken = verify(*unit.program); !broken.empty()) throw burin::Error(file + ": " + broken);
  } else {
    unit.function = parse(text, file);
  }
  return unit;
}

}  // namespace tools
