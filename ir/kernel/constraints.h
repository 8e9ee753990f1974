// A small decision procedure for index arithmetic: what follows from bounds of loops and from conditions.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"

namespace burin::ir {

/// True when no integers satisfy every `inequality >= 0` and every `equality = 0`. Eliminates variables one by one
/// (Fourier and Motzkin), rounding bounds to integers on the way; false when that finds no contradiction or grows too large.
bool infeasible(std::vector<Affine> inequalities, std::vector<Affine> equalities = {});

/// What is known to be >= 0 at a place of a kernel. Facts are added entering a scope and dropped leaving it.
class Facts {
 public:
  void add(const Affine& nonnegative) { facts_.push_back(nonnegative); }
  std::size_t size() const { return facts_.size(); }
  void truncate(std::size_t size) { facts_.resize(size); }
  const std::vector<Affine>& all() const { return facts_; }

  /// Whether `e >= 0` follows.
  bool prove(const Affine& e) const;
  /// The least number known to be >= e, if there is one below 2^40 in size.
  std::optional<std::int64_t> highest(const Affine& e) const;
  std::optional<std::int64_t> lowest(const Affine& e) const;

 private:
  std::vector<Affine> facts_;
};

}  // namespace burin::ir
