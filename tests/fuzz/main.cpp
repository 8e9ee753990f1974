// burin-fuzz: random programs through every property.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "tests/fuzz/campaign.h"
#include "tests/fuzz/properties.h"
#include "tools/execute/main.h"

namespace {

using namespace burin;

using tools::failed;

struct CommandLine {
  fuzz::Settings settings;
  std::vector<std::string> families;
  std::vector<std::string> files;
  bool print = false, list = false;
};

std::vector<std::string> property_names() {
  std::vector<std::string> names;
  for (const fuzz::Property& property : fuzz::properties()) names.push_back(property.name);
  return names;
}

const std::vector<std::string> family_names = {"elementwise", "compare", "reduce",   "movement",
                                               "contract",    "index",   "structure"};

void parse(CLI::App& app, CommandLine& line, int argc, char** argv) {
  fuzz::Settings& s = line.settings;
  app.add_option("--seed", s.seed, "of the first program")->capture_default_str();
  app.add_option("--count", s.count, "programs to check");
  app.add_option("--seconds", s.seconds, "how long to go on");
  app.add_option("--progress", s.progress, "every so many seconds, say how many programs are checked and before which seed all are");
  app.add_option("--threads", s.processes, "programs checked at a time, each in a process of its own")
      ->capture_default_str();
  app.add_option("--only", s.only, "properties, separated by commas, on every program; without it all, each on its share")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(property_names()));
  app.add_option("--family", line.families, "draw ops of these families alone")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(family_names));
  app.add_option("--max-ops", s.recipe.max_ops, "the most ops of a program as drawn")->capture_default_str();
  app.add_option("--max-elements", s.recipe.max_elements, "the most elements of a value")->capture_default_str();
  app.add_flag("!--no-transforms", s.recipe.transform, "no gradients, tangents and batches of what is drawn");
  app.add_option("--shrink-seconds", s.shrink_seconds, "how long to shrink one failure")->capture_default_str();
  app.add_option("--save", s.save, "folder for the shrunk programs");
  app.add_option("--file", line.files, "check these IR texts, each on the data of --count seeds from --seed (default 1), and draw none");
  app.add_flag("--print", line.print, "print the program of --seed and check nothing");
  app.add_flag("--list", line.list, "list the properties");
  app.parse(argc, argv);
  for (const std::string& family : line.families)
    s.recipe.families.push_back(
        static_cast<ir::Family>(std::find(family_names.begin(), family_names.end(), family) - family_names.begin()));
  if (line.files.empty() && s.count == 0 && s.seconds == 0) s.count = 1000;
}

int check_files(const CommandLine& line) {
  const fuzz::Settings& s = line.settings;
  int status = 0;
  for (const std::string& path : line.files) {
    std::ifstream file(path);
    if (!file) throw Error("cannot read " + path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const ir::Function f = ir::parse(text, path);
    std::string failure;
    for (std::uint64_t seed = s.seed; failure.empty() && seed < s.seed + std::max<std::uint64_t>(s.count, 1); ++seed)
      failure = fuzz::check(f, seed, s.only);
    if (line.files.size() == 1) fmt::print("{}\n", failure.empty() ? "passed" : failure);
    else if (!failure.empty()) fmt::print("FAILED {}: {}\n", path, failure);
    if (!failure.empty()) status = failed;
  }
  if (line.files.size() > 1 && status == 0) fmt::print("{} files passed\n", line.files.size());
  return status;
}

int run(CommandLine& line) {
  if (line.list) {
    for (const fuzz::Property& property : fuzz::properties())
      fmt::print("{:<19} {:>3.0f} %{} {}\n", property.name, 100 * property.share, property.compiles ? " *" : "  ", property.meaning);
    fmt::print("\nThe shares are of a run's programs, without --only. *: less of programs of many kernels.\n");
    return 0;
  }
  if (line.print) {
    ir::PrintOptions options;
    options.max_elements = -1;
    std::cout << ir::print(fuzz::generate(line.settings.seed, line.settings.recipe), options);
    return 0;
  }
  if (!line.files.empty()) return check_files(line);
  const fuzz::Summary summary = fuzz::run(line.settings);
  fmt::print("{}\n", fuzz::to_string(summary));
  for (const fuzz::Failure& failure : summary.failures)
    fmt::print("  {} x {} at seed {}: {}\n", failure.times, failure.property, failure.seed,
               failure.text.substr(0, failure.text.find('\n')));
  return summary.failures.empty() ? 0 : failed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Draws programs, checks that they mean the same however they are executed, and shrinks what does not.\nExit "
      "status: 0 no "
      "failure, 1 a failure, 2 wrong usage."};
  CommandLine line;
  const auto body = [&] {
    parse(app, line, argc, argv);
    return run(line);
  };
  return tools::run_main("burin-fuzz", app, body, [] { return "the tensors of a program do not fit into memory"; });
}
