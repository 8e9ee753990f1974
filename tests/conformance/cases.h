// Small programs that broke other systems, or on which systems disagree, with the right values. One table, so that
// evaluator and machine code are put to the same test. Numbers in comments are those of the public reports they stand
// for.
#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace burin::conformance {

struct Case {
  std::string name;                   // the kind of fault
  std::string program;                // IR text; an argument and a constant are different cases
  std::vector<std::string> inputs;    // elements of each argument, as words of tests/support/values.h
  std::vector<std::string> expected;  // of each result
  int ulps = 0;                       // how far machine code may be off; the evaluator never is
  std::string error = {};             // the message, when the program must fail
};

const std::vector<Case>& cases();
/// What GoogleTest shows of a case.
inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name << ":\n" << c.program; }

}  // namespace burin::conformance
