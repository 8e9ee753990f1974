// The table as a test of whatever executes functions: hand in the kernel interpreter, machine code, a saved executable.
#pragma once
#include <string>
#include <vector>

#include "tests/op_cases/op_cases.h"
#include "tests/support/transforms.h"

namespace burin::op_cases {

/// How far results of `f` may be from the evaluator's, by the promises of docs/numerics.md: exactly rounded ops not at all,
/// functions 2 ulp in f32, 4 in f64, 1 in half types, added up over the ops; sums and products in any order.
struct Accuracy {
  double ulps = 0;
  bool any_order = false;  // and then within some eps of the accumulator, relative to 1 + |expected|
  bool cancels = false;    // such a function's value meets a sum or difference: the ulps count relative to 1 + |expected|
};
Accuracy accuracy_of(const Function& f);

/// "" when `found` is `expected` within `accuracy`; any NaN equals any other.
std::string inaccuracy(const Literal& found, const Literal& expected, const Accuracy& accuracy);

/// Runs every case of the op through `execute`, its gradient and its batched form with it, all side by side in one function
/// so that it compiles once. Compares with the evaluator; one line per result that differs.
std::vector<std::string> check_executions(Op op, const test::Execute& execute);

}  // namespace burin::op_cases
