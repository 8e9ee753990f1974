#include <algorithm>
#include <numeric>

#include "ir/kernel/verifier.h"

namespace burin::ir {
namespace {

// Different indices are different elements: each stride steps over everything that the smaller ones reach.
bool is_injective(const Buffer& b) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < b.shape.rank(); ++axis)
    if (b.shape[axis] > 1) axes.push_back(axis);
  std::ranges::sort(axes, {}, [&](std::size_t axis) { return b.strides[axis]; });
  std::int64_t reach = 0;
  for (std::size_t axis : axes) {
    if (b.strides[axis] <= reach) return false;
    reach += (b.shape[axis] - 1) * b.strides[axis];
  }
  return true;
}

}  // namespace

bool disjoint(const Kernel& kernel, const Access& a, const Access& b, std::size_t shared,
              std::span<const VarId> differing) {
  // Each execution has its own copy of the variables that the two do not share; copies are numbered behind all others.
  const std::size_t copies = kernel.var_names.size();
  const auto is_shared = [&](VarId var) {
    return std::find(b.vars.begin(), b.vars.begin() + static_cast<std::ptrdiff_t>(shared), var) !=
           b.vars.begin() + static_cast<std::ptrdiff_t>(shared);
  };
  const auto other = [&](VarId var) { return is_shared(var) ? var : VarId{copies + var.index}; };
  const auto renamed = [&](const Affine& e) {
    Affine sum(e.constant);
    for (const auto& [var, coefficient] : e.terms) sum = sum + Affine(other(var), coefficient);
    return sum;
  };

  std::vector<Affine> facts = a.facts, same_element;
  for (const Affine& fact : b.facts) facts.push_back(renamed(fact));
  const Buffer& buffer = kernel.buffers[a.buffer.index];
  Affine distance;
  for (std::size_t axis = 0; axis < a.indices.size(); ++axis) {
    const Affine difference = a.indices[axis] - renamed(b.indices[axis]);
    same_element.push_back(difference);
    distance = distance + difference * buffer.strides[axis];
  }
  if (!is_injective(buffer)) same_element = {distance};

  // The outermost variable in which they differ is smaller in one of the two.
  std::vector<Affine> equal = same_element;
  for (VarId var : differing) {
    const Affine gap = Affine(other(var)) - Affine(var);
    for (const int sign : {1, -1}) {
      std::vector<Affine> rows = facts;
      rows.push_back(gap * sign - Affine(1));
      if (!infeasible(std::move(rows), equal)) return false;
      if (&a == &b) break;  // the other sign only exchanges the two
    }
    equal.push_back(gap);
  }
  return true;
}

}  // namespace burin::ir
