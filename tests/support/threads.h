// The same bits for any number of threads.
#pragma once
#include <span>
#include <vector>

#include "ir/kernel/program.h"
#include "ir/target.h"

namespace burin::test {

/// Runs the program with 1, 2 and 8 threads, each of which does its share of every step, however small; expects equal bits, and
/// that several workers took part. Returns the results.
std::vector<ir::Literal> expect_same_for_any_threads(const ir::Program& program, std::span<const ir::Literal> inputs,
                                                     const ir::Target& target);

}  // namespace burin::test
