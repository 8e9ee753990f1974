#include "ir/kernel/constraints.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>

namespace burin::ir {
namespace {

constexpr std::size_t max_rows = 2000;

using Terms = std::vector<std::pair<VarId, std::int64_t>>;

std::int64_t floor_div(std::int64_t a, std::int64_t positive) {
  const std::int64_t quotient = a / positive;
  return quotient - (a % positive < 0 ? 1 : 0);
}

// Inequalities by their terms; of several with equal terms the tightest (least constant) is kept.
class System {
 public:
  /// Divides by the common divisor of the coefficients, rounding the constant down: the same integers satisfy it.
  void add(Affine row) {
    if (row.is_constant()) {
      contradiction_ |= row.constant < 0;
      return;
    }
    std::int64_t divisor = 0;
    for (const auto& [var, coefficient] : row.terms) divisor = std::gcd(divisor, coefficient);
    for (auto& term : row.terms) term.second /= divisor;
    row.constant = floor_div(row.constant, divisor);
    const auto [found, fresh] = rows_.emplace(std::move(row.terms), row.constant);
    if (!fresh) found->second = std::min(found->second, row.constant);
  }

  enum class Order : std::uint8_t { cheapest, innermost, outermost };
  bool infeasible(Order order) {
    while (!contradiction_ && !rows_.empty() && !overflow_ && rows_.size() <= max_rows) eliminate(next(order));
    return contradiction_;
  }

 private:
  struct Sides {
    std::size_t below = 0, above = 0;
  };

  // Cheapest: the variable whose elimination adds the fewest rows.
  VarId next(Order order) const {
    std::map<VarId, Sides> sides;
    for (const auto& [terms, constant] : rows_)
      for (const auto& [var, coefficient] : terms) ++(coefficient > 0 ? sides[var].below : sides[var].above);
    const auto cost = [](const Sides& s) {
      return static_cast<std::int64_t>(s.below * s.above) - static_cast<std::int64_t>(s.below + s.above);
    };
    if (order == Order::innermost) return sides.rbegin()->first;
    if (order == Order::outermost) return sides.begin()->first;
    return std::ranges::min_element(sides, {}, [&](const auto& entry) { return cost(entry.second); })->first;
  }

  void eliminate(VarId var) {
    std::vector<Affine> below, above;
    for (auto row = rows_.begin(); row != rows_.end();) {
      Affine a;
      a.terms = row->first;
      a.constant = row->second;
      const std::int64_t coefficient = a.coefficient(var);
      if (coefficient == 0) {
        ++row;
        continue;
      }
      (coefficient > 0 ? below : above).push_back(std::move(a));
      row = rows_.erase(row);
    }
    for (const Affine& low : below)
      for (const Affine& high : above) {
        add(combine(low, -high.coefficient(var), high, low.coefficient(var)));
        if (contradiction_ || overflow_) return;
      }
  }

  // a * factor_a + b * factor_b with both factors positive.
  Affine combine(const Affine& a, std::int64_t factor_a, const Affine& b, std::int64_t factor_b) {
    const std::int64_t divisor = std::gcd(factor_a, factor_b);
    return scaled(a, factor_a / divisor) + scaled(b, factor_b / divisor);
  }
  // Sums of two numbers below 2^62 in size do not overflow.
  Affine scaled(Affine a, std::int64_t factor) {
    const auto scale = [&](std::int64_t& number) {
      overflow_ |= __builtin_mul_overflow(number, factor, &number);
      if (number > INT64_MAX / 2 || number < INT64_MIN / 2) {
        overflow_ = true;
        number = 1;
      }
    };
    scale(a.constant);
    for (auto& term : a.terms) scale(term.second);
    return a;
  }

  std::map<Terms, std::int64_t> rows_;
  bool contradiction_ = false, overflow_ = false;
};

}  // namespace

namespace {

/// Rows that share variables, directly or through others, together; the last row's group first. No integers satisfy all rows
/// when none satisfy those of one group, so that the limit on rows is not met by what has nothing to do with the question.
std::vector<std::vector<Affine>> independent_groups(std::vector<Affine> rows) {
  std::map<VarId, std::size_t> row_of;  // some row with the variable
  std::vector<std::size_t> parent(rows.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const auto& [var, coefficient] : rows[i].terms)
      if (const auto [found, fresh] = row_of.emplace(var, i); !fresh) parent[root(found->second)] = root(i);
  std::vector<std::vector<Affine>> groups;
  std::map<std::size_t, std::size_t> group_of;
  for (std::size_t i = rows.size(); i-- > 0;) {
    const auto [found, fresh] = group_of.emplace(root(i), groups.size());
    if (fresh) groups.emplace_back();
    groups[found->second].push_back(std::move(rows[i]));
  }
  return groups;
}

bool contradict(std::vector<Affine> inequalities, std::vector<Affine> equalities) {
  while (!equalities.empty()) {
    const Affine equality = std::move(equalities.back());
    equalities.pop_back();
    std::int64_t divisor = 0;
    const std::pair<VarId, std::int64_t>* unit = nullptr;
    for (const auto& term : equality.terms) {
      divisor = std::gcd(divisor, term.second);
      if (term.second == 1 || term.second == -1) unit = &term;
    }
    if (divisor == 0 ? equality.constant != 0 : equality.constant % divisor != 0) return true;
    if (unit != nullptr) {
      // The variable is what the rest says it is; nothing else needs this equality.
      const VarId var = unit->first;
      const Affine replacement = (equality - Affine(var, unit->second)) * -unit->second;
      for (Affine& row : inequalities) row = substitute(row, var, replacement);
      for (Affine& row : equalities) row = substitute(row, var, replacement);
    } else {
      inequalities.push_back(equality);
      inequalities.push_back(equality * -1);
    }
  }
  for (std::vector<Affine>& group : independent_groups(std::move(inequalities))) {
    System system;
    for (Affine& row : group) system.add(std::move(row));
    // What rounding to integers finds depends on the order in which variables go.
    for (const auto order : {System::Order::cheapest, System::Order::innermost, System::Order::outermost})
      if (System(system).infeasible(order)) return true;
  }
  return false;
}

// A number r such that the terms of `equality` which are no multiples of r always sum up to less than r in size.
std::optional<std::int64_t> separating_radix(const std::vector<Affine>& inequalities, const Affine& equality) {
  std::vector<std::int64_t> radices;
  for (const auto& [var, coefficient] : equality.terms) radices.push_back(std::abs(coefficient));
  std::ranges::sort(radices, std::greater());
  const auto repeated = std::ranges::unique(radices);
  radices.erase(repeated.begin(), repeated.end());
  for (const std::int64_t radix : radices) {
    Affine low(equality.constant);
    for (const auto& term : equality.terms)
      if (term.second % radix != 0) low.terms.push_back(term);
    if (low.terms.empty() || low.terms.size() == equality.terms.size()) continue;
    const auto reaches = [&](const Affine& bound) {
      std::vector<Affine> rows = inequalities;
      rows.push_back(bound);
      return !contradict(std::move(rows), {});
    };
    if (!reaches(low - Affine(radix)) && !reaches(low * -1 - Affine(radix))) return radix;
  }
  return std::nullopt;
}

// 33*i + (32*t + j) = 0 where the bracket stays between -32 and 32 says that i and the bracket are both 0: digits of a
// mixed radix. Splits every equality as far as its bounds allow; true when it split one.
bool split_digits(const std::vector<Affine>& inequalities, std::vector<Affine>& equalities) {
  const std::size_t before = equalities.size();
  for (std::size_t i = 0; i < equalities.size(); ++i)
    while (const std::optional<std::int64_t> radix = separating_radix(inequalities, equalities[i])) {
      Affine high, low(equalities[i].constant);
      for (const auto& [var, coefficient] : equalities[i].terms) {
        if (coefficient % *radix == 0)
          high.terms.emplace_back(var, coefficient / *radix);
        else
          low.terms.emplace_back(var, coefficient);
      }
      equalities[i] = low;
      equalities.push_back(high);
    }
  return equalities.size() > before;
}

}  // namespace

bool infeasible(std::vector<Affine> inequalities, std::vector<Affine> equalities) {
  if (contradict(inequalities, equalities)) return true;
  return split_digits(inequalities, equalities) && contradict(std::move(inequalities), std::move(equalities));
}

bool Facts::prove(const Affine& e) const {
  if (e.is_constant() && e.constant >= 0) return true;
  std::vector<Affine> rows = facts_;
  rows.push_back(Affine(-1) - e);
  return infeasible(std::move(rows));
}

std::optional<std::int64_t> Facts::highest(const Affine& e) const {
  std::int64_t low = -(std::int64_t{1} << 40), high = std::int64_t{1} << 40;
  if (!prove(Affine(high) - e)) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = floor_div(low + high, 2);
    if (prove(Affine(middle) - e))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

std::optional<std::int64_t> Facts::lowest(const Affine& e) const {
  const std::optional<std::int64_t> opposite = highest(e * -1);
  return opposite ? std::optional(-*opposite) : std::nullopt;
}

}  // namespace burin::ir
