#include <algorithm>

#include "ir/kernel/kernel.h"

namespace burin::ir {
namespace {

std::int64_t multiply_add(std::int64_t a, std::int64_t factor, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(b));
}

// a + factor * b, terms merged in order. Sums wrap as machine integers do; no kernel has buffers that large.
Affine combine(const Affine& a, const Affine& b, std::int64_t factor) {
  Affine sum(multiply_add(a.constant, factor, b.constant));
  sum.terms.reserve(a.terms.size() + b.terms.size());
  auto i = a.terms.begin(), j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    const bool take_a = j == b.terms.end() || (i != a.terms.end() && i->first <= j->first);
    const bool take_b = i == a.terms.end() || (j != b.terms.end() && j->first <= i->first);
    const VarId var = take_a ? i->first : j->first;
    std::int64_t coefficient = 0;
    if (take_a) coefficient += (i++)->second;
    if (take_b) coefficient = multiply_add(coefficient, factor, (j++)->second);
    if (coefficient != 0) sum.terms.emplace_back(var, coefficient);
  }
  return sum;
}

}  // namespace

Affine::Affine(VarId var, std::int64_t coefficient) {
  if (coefficient != 0) terms.emplace_back(var, coefficient);
}

std::int64_t Affine::coefficient(VarId var) const {
  const auto found = std::ranges::lower_bound(terms, var, {}, &std::pair<VarId, std::int64_t>::first);
  return found != terms.end() && found->first == var ? found->second : 0;
}

Affine operator+(const Affine& a, const Affine& b) { return combine(a, b, 1); }
Affine operator-(const Affine& a, const Affine& b) { return combine(a, b, -1); }
Affine operator*(const Affine& a, std::int64_t factor) { return combine(Affine(0), a, factor); }

Affine substitute(const Affine& a, VarId var, const Affine& replacement) {
  const std::int64_t coefficient = a.coefficient(var);
  if (coefficient == 0) return a;
  return combine(a - Affine(var, coefficient), replacement, coefficient);
}

}  // namespace burin::ir
