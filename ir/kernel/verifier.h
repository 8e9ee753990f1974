// What the kernel verifier knows of one access to memory. verify() itself is declared in kernel.h.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "ir/kernel/constraints.h"
#include "ir/kernel/kernel.h"

namespace burin::ir {

struct Access {
  BufferId buffer;
  std::vector<Affine> indices;
  bool is_store = false;
  std::size_t statement = 0;       // in text order, from 1
  std::vector<Affine> facts;       // each >= 0 there
  std::vector<VarId> vars;         // in scope there, outermost first
};

/// Whether two executions never touch the same element, one doing `a` and the other `b`, that agree in the first
/// `shared` variables in scope and differ in at least one of `differing`. False when that cannot be proven.
bool disjoint(const Kernel& kernel, const Access& a, const Access& b, std::size_t shared, std::span<const VarId> differing);

}  // namespace burin::ir
