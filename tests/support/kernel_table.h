// A lowered program as a table of its steps: what a person counts.
#pragma once
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/kernel/program.h"

namespace burin::test {

struct KernelRow {
  std::string step;      // "after 3  @matmul_0  4 tasks"; empty in the table of a function
  std::string text;      // "matmul  dot_general f32[2,16,64] + 9 elementwise -> f32[2,16,64]"
  std::size_t anchors = 0, elementwise = 0;
  std::vector<ir::Type> dots;  // what its dot_generals give
  bool helps = false;          // packs a side for a matmul, or adds up what tasks left of column sums
  /// An elementwise op that no other work is fused with.
  bool alone() const { return anchors == 0 && elementwise == 1; }
  bool only_moves() const { return anchors + elementwise == 0 && !helps; }
};

/// A row per fusion of a fused function, in program order.
std::vector<KernelRow> kernel_rows(const ir::Function& fused);
/// A row per step of the program that the function was lowered to.
std::vector<KernelRow> step_rows(const ir::Function& fused, const ir::Program& program);
/// How many steps wait for more than the step before them does.
std::size_t waits(const ir::Program& program);
/// The rows, then how many steps, distinct kernels and waits there are.
std::string step_table(const ir::Function& fused, const ir::Program& program);

}  // namespace burin::test
