#include <numeric>

#include "base/check.h"
#include "passes/lower/element.h"

namespace burin::passes::lower {

void IndexSpace::set_loop(VarId var, std::size_t loop) {
  if (entries_.size() <= var.index) entries_.resize(var.index + 1);
  entries_[var.index].loop = loop;
}

VarId IndexSpace::stand_for(const Affine& expression, std::int64_t extent, std::size_t loop) {
  const VarId var = b_.new_var("", extent);
  set_loop(var, loop);
  entries_[var.index].stands_for = expression;
  return var;
}

const IndexSpace::Entry& IndexSpace::entry(VarId var) const {
  static const Entry none;
  return var.index < entries_.size() ? entries_[var.index] : none;
}

std::int64_t IndexSpace::extent(VarId var) const {
  const std::int64_t extent = b_.extent(var);
  BURIN_CHECK(extent >= 0, "a variable of unknown range");
  return extent;
}

std::pair<std::int64_t, std::int64_t> IndexSpace::range(const Affine& a) const {
  std::int64_t low = a.constant, high = a.constant;
  for (const auto& [var, coefficient] : a.terms) {
    const std::int64_t reach = coefficient * std::max<std::int64_t>(extent(var) - 1, 0);
    (coefficient > 0 ? high : low) += reach;
  }
  return {low, high};
}

std::optional<std::pair<Affine, Affine>> IndexSpace::divide(const Affine& e, std::int64_t divisor) const {
  if (divisor == 1) return std::pair{e, Affine(0)};
  if (divisor == 0) return std::pair{Affine(0), Affine(0)};  // an empty value: no element will be asked for
  const auto floor_div = [&](std::int64_t x) { return x >= 0 ? x / divisor : -((-x + divisor - 1) / divisor); };
  Affine quotient(floor_div(e.constant)), remainder(e.constant - divisor * floor_div(e.constant));
  for (const auto& [var, coefficient] : e.terms) {
    const std::int64_t whole = floor_div(coefficient);
    if (coefficient % divisor == 0)
      quotient = quotient + Affine(var, whole);
    else
      remainder = remainder + Affine(var, coefficient);
  }
  const auto [low, high] = range(remainder);
  if (low >= 0 && high < divisor) return std::pair{quotient, remainder};
  if (low >= 0)
    for (const auto& [var, coefficient] : remainder.terms) {
      // In steps of `factor` the variable moves the index by a multiple of the divisor.
      const std::int64_t factor = divisor / std::gcd(divisor, coefficient);
      const std::size_t loop = entry(var).loop;
      if (loop != fixed && extent(var) > factor && extent(var) % factor == 0) throw NeedSplit{loop, factor};
    }
  return std::nullopt;
}

Affine IndexSpace::resolve(Affine a) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [var, coefficient] : a.terms)
      if (const auto& real = entry(var).stands_for) {
        a = substitute(a, var, *real);
        changed = true;
        break;
      }
  }
  return a;
}

}  // namespace burin::passes::lower
