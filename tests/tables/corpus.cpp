#include "tests/tables/corpus.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "ir/parser.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "tests/support/transforms.h"

namespace burin::tables {

using namespace ir;

namespace {

constexpr std::int64_t batch_size = 3;

Function transformed(const std::string& name, const Function& f) {
  const std::vector<bool> floats = test::float_args(f);
  if (name == "gradient") return test::gradient(f, floats);
  if (name == "tangent") return passes::jvp(f, floats).function;
  // Every third argument is what all share.
  std::vector<bool> batched;
  while (batched.size() < f.args().size()) batched.push_back(batched.size() % 3 != 2);
  return passes::batch(f, batched, batch_size).function;
}

// Caches as usual, whatever this machine has; or so small that nothing fits.
Target target(Isa isa, bool small) {
  Target t{.isa = isa};
  if (small) t.l1_bytes = 2 << 10, t.l2_bytes = 8 << 10, t.l3_bytes = 32 << 10;
  return t;
}

// "PATH WORD..."
Program program_of(const std::string& line) {
  std::istringstream words(line);
  Program program;
  words >> program.path;
  const std::filesystem::path path = program.path;
  program.name = path.parent_path().stem().string() + "_" + path.stem().string();
  bool small = false;
  std::vector<Isa> isas;
  for (std::string word; words >> word;) {
    program.name += "__" + word;
    if (Isa isa; isa_from_name(word, &isa))
      isas.push_back(isa);
    else if (word == "gradient" || word == "tangent" || word == "batch")
      program.transforms.push_back(word);
    else if (word == "donated")
      program.donated = true;
    else if (word == "kept")
      program.kept = true;
    else if (word == "rounded")
      program.excess_precision = false;
    else if (word == "unfused")
      program.fused = false;
    else if (word.starts_with("budget"))
      program.memory_budget = std::stoll(word.substr(6));
    else if (word == "small_caches")
      small = true;
    else
      throw std::runtime_error("tests/tables/corpus.txt: `" + word + "` in `" + line + "`");
  }
  if (isas.empty()) isas = {Isa::avx2, Isa::avx512_bf16};
  for (const Isa isa : isas) {
    program.targets.push_back(target(isa, false));
    if (small) program.targets.push_back(target(isa, true));
  }
  return program;
}

}  // namespace

std::string Program::text() const {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::pair<std::string, Function>> Program::functions() const {
  std::vector<std::pair<std::string, Function>> all;
  all.emplace_back("read", parse(text(), "x"));
  for (const std::string& name : transforms) all.emplace_back(name, transformed(name, all.back().second));
  return all;
}

passes::Options Program::options(const Function& f) const {
  passes::Options options;
  options.excess_precision = excess_precision;
  if (!fused) options.disabled = {"fuse"};
  if (donated) options.donated.assign(f.args().size(), true);
  options.memory_budget = memory_budget;
  options.keep_packed = kept;
  options.verify = false;  // other tests do; a table sees each difference anyway
  return options;
}

std::vector<Program> corpus() {
  std::ifstream file("tests/tables/corpus.txt");
  std::vector<Program> programs;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') programs.push_back(program_of(line));
  return programs;
}

}  // namespace burin::tables
