// What the rules of the error model share.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "tests/fuzz/enclosure.h"

namespace burin::fuzz {

using namespace ir;

/// One op with its operands as enclosures.
struct Site {
  Op op;
  std::span<const Enclosure> operands;
  std::span<const AttrValue> attributes;
  std::span<const Type> types;  // of the results
  Model& model;

  const Type& type() const { return types[0]; }
  bool all_exact() const;
  bool any_free() const;
  template <Op op>
  attrs_of<op> attrs() const {
    attrs_of<op> result;
    [[maybe_unused]] std::size_t i = 0;
    visit_attrs(result, [&]<class T>(std::string_view, T& field) { field = std::get<T>(attributes[i++]); });
    return result;
  }
  /// The op on other operands, its first result; of another dtype when the first operand has one.
  Literal apply(std::span<const Literal> with) const;
  Literal apply(std::span<const Literal> with, std::span<const AttrValue> attributes, const Type& type) const;
  Literal value() const;
};

/// Element i moved by n representable values, away from zero crossing included; infinities stay, NaN too.
void step_up(Literal& x, std::int64_t i, int n);
void step_down(Literal& x, std::int64_t i, int n);
/// Stores a bound, rounded outwards.
void set_low(Literal& x, std::int64_t i, double bound);
void set_high(Literal& x, std::int64_t i, double bound);
double largest_finite(DType dtype);
/// The unit roundoff: half the distance from 1 to the next value.
double unit_roundoff(DType dtype);

/// Sets `exact` from the rest; drops `free` when nothing is.
void settle(Enclosure& e);
void free_element(Enclosure& e, std::int64_t i);
void free_all(Enclosure& e);

Enclosure enclose_elementwise(const Site& s);
Enclosure enclose_reduce(const Site& s);
Enclosure enclose_dot(const Site& s);
Enclosure enclose_scatter(const Site& s);
/// Elements that change place, chosen by operands that are known exactly from `first_index` on.
Enclosure enclose_movement(const Site& s, std::size_t first_index);

}  // namespace burin::fuzz
