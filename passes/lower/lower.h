// Fusion bodies to Kernels. Each kind of fusion has one lowering; loops, tiles and task grids depend on shapes and Target alone.
#pragma once
#include <vector>

#include "ir/function.h"
#include "ir/kernel/kernel.h"
#include "ir/target.h"

namespace burin::passes::lower {

using namespace ir;

/// A parameter of a lowered kernel: an argument or result of the body, or a buffer between its kernels.
struct Param {
  enum Kind : std::uint8_t { arg, result, temp } kind = arg;
  std::uint32_t index = 0;
  friend bool operator==(const Param&, const Param&) = default;
};

struct LoweredKernel {
  Kernel kernel;
  std::vector<Param> params;  // one per parameter of the kernel
};

/// Kernels in the order they run.
struct Lowering {
  std::vector<LoweredKernel> kernels;
  std::vector<Type> temps;
};

/// Elementwise, compare, movement and index ops of one iteration space: the results have equal element counts.
Lowering lower_loop(const Function& body, const Target& target);
/// Reductions over the same axes of one domain, with what feeds them and what they feed.
Lowering lower_rows(const Function& body, const Target& target);
/// One dot_general with what its operands are made from and what is made of its result.
Lowering lower_matmul(const Function& body, const Target& target);
/// A scatter into its operand, and elementwise ops on the result.
Lowering lower_scatter(const Function& body, const Target& target);

/// By the kind of a fusion op.
Lowering lower_fusion(std::string_view kind, const Function& body, const Target& target);

}  // namespace burin::passes::lower
