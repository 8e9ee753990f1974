// Many programs, several processes, a count and what failed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/function.h"
#include "tests/fuzz/generate.h"

namespace burin::fuzz {

struct Settings {
  std::uint64_t seed = 1;   // of the first program; the others count up
  std::uint64_t count = 0;  // 0: until the time is over
  double seconds = 0;       // 0: until the count is reached
  double progress = 0;      // seconds between two lines that say how far it is; 0: none
  int processes = 2;
  std::vector<std::string> only;  // properties, on every program; empty: all, each on its share
  Recipe recipe;
  double shrink_seconds = 60;
  std::size_t max_kinds = 20;  // stops after so many different failures
  std::string save;            // a folder for the texts of failures
};

struct Failure {
  std::uint64_t seed = 0;
  std::string property, text;
  std::string program;  // shrunk, as IR text
  std::uint64_t times = 1;
};

struct Summary {
  std::uint64_t programs = 0;
  std::uint64_t next_seed = 0;        // all before it are checked: a run from here goes on
  std::vector<std::uint64_t> checks;  // by property
  std::uint64_t exact = 0, erring = 0;            // programs compared bit for bit; programs that report an index
  std::uint64_t elements = 0, free_elements = 0;  // of results; those that rounding may change at will
  double seconds = 0;
  std::vector<Failure> failures;  // one of each kind
};

/// Prints each failure when it is found, shrunk. A signal to interrupt or end it stops it behind the programs at hand.
Summary run(const Settings& settings);
/// One program through the chosen properties in this process; the failure's text, "property: what", or "".
std::string check(const ir::Function& f, std::uint64_t seed, const std::vector<std::string>& only);
std::string to_string(const Summary& summary);

}  // namespace burin::fuzz
