// Reductions, dots, scatters and movement. A sum of n terms in any order is off by at most n roundings of the sum of
// their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 4.2); where that sum may overflow, nothing
// is known.
#include <algorithm>
#include <cmath>

#include "ir/eval/eval.h"
#include "tests/fuzz/enclosure_rules.h"

namespace burin::fuzz {
namespace {

DType accumulator(DType dtype) { return dtype == f64 ? f64 : f32; }

// Elementwise over the operand's bounds, as f64 or bool literals of its shape.
template <class F>
Literal made(DType dtype, const Enclosure& e, F&& f) {
  Literal result(Type{dtype, e.value.shape()});
  for (std::int64_t i = 0; i < result.type().size(); ++i) {
    if (dtype == f64)
      result.set(i, static_cast<double>(f(i)));
    else
      result.set_int(i, static_cast<std::int64_t>(f(i)));
  }
  return result;
}

double finite(double x) { return std::isfinite(x) ? x : 0; }
double magnitude(const Enclosure& e, std::int64_t i) {
  return finite(std::max(std::abs(e.low.at(i)), std::abs(e.high.at(i))));
}
constexpr double tiny = 0x1p-126;  // the least normal number of f32 and bf16

bool is_special(const Enclosure& e, std::int64_t i) {
  return !std::isfinite(e.low.at(i)) || !std::isfinite(e.high.at(i));
}
bool moves(const Enclosure& e, std::int64_t i) {
  return e.is_free(i) || (is_float(e.value.dtype()) && e.low.at(i) != e.high.at(i) &&
                          !(std::isnan(e.low.at(i)) && std::isnan(e.high.at(i))));
}

Literal free_mask(const Enclosure& e) {
  return made(bool_, e, [&](std::int64_t i) { return e.is_free(i); });
}

// Where any element of a row has the property.
Literal any_in_row(const Site& s, const Literal& mask) {
  const Ints axes =
      s.op == Op::argmax || s.op == Op::argmin ? Ints{std::get<Int>(s.attributes[0])} : std::get<Ints>(s.attributes[0]);
  const Type type{bool_, s.type().shape};
  const AttrValue attribute = axes;
  Literal result = evaluate_op(Op::reduce_or, std::span(&mask, 1), std::span(&attribute, 1), std::span(&type, 1))[0];
  result.expand();
  return result;
}

Literal reduced(const Site& s, Op op, const Literal& x) {
  const Type type{f64, s.type().shape};
  Literal result = evaluate_op(op, std::span(&x, 1), s.attributes, std::span(&type, 1))[0];
  result.expand();
  return result;
}

void free_where(Enclosure& r, const Literal& mask) {
  for (std::int64_t i = 0; i < r.value.type().size(); ++i)
    if (mask.int_at(i) != 0) free_element(r, i);
}

/// An element of a sum: bounds of the exact sum, the sum of magnitudes, the number of terms, whether a term is special.
void bound_sum(Enclosure& r, std::int64_t i, double low, double high, double magnitudes, double terms, bool special,
               bool exact) {
  const DType dtype = r.value.dtype(), sums = accumulator(dtype);
  if (r.is_free(i)) return;
  if (!(magnitudes < largest_finite(sums) / 4) || (special && !exact)) return free_element(r, i);
  if (special) return;  // infinities and NaN do not depend on the order
  const double off = (terms + 2) * unit_roundoff(sums) * magnitudes * 1.01;
  set_low(r.low, i, low - off);
  set_high(r.high, i, high + off);
  if (dtype == f64) {
    step_down(r.low, i, 2);
    step_up(r.high, i, 2);
  }
}

Enclosure enclose_sum(const Site& s) {
  const Enclosure& x = s.operands[0];
  Enclosure r = exactly(s.value());
  const double terms = static_cast<double>(x.value.type().size()) /
                       static_cast<double>(std::max<std::int64_t>(r.value.type().size(), 1));
  if (x.exact && terms <= 1 && !s.model.real_numbers) return r;
  free_where(r, any_in_row(s, free_mask(x)));
  const Literal low = reduced(s, Op::reduce_sum, made(f64, x, [&](std::int64_t i) { return finite(x.low.at(i)); }));
  const Literal high = reduced(s, Op::reduce_sum, made(f64, x, [&](std::int64_t i) { return finite(x.high.at(i)); }));
  const Literal sum = reduced(s, Op::reduce_sum, made(f64, x, [&](std::int64_t i) { return magnitude(x, i); }));
  const Literal special = any_in_row(s, made(bool_, x, [&](std::int64_t i) { return is_special(x, i); }));
  const Literal moving = any_in_row(s, made(bool_, x, [&](std::int64_t i) { return moves(x, i); }));
  for (std::int64_t i = 0; i < r.value.type().size(); ++i)
    bound_sum(r, i, low.at(i), high.at(i), sum.at(i), terms, special.int_at(i) != 0, moving.int_at(i) == 0);
  return r;
}

Enclosure enclose_product(const Site& s) {
  const Enclosure& x = s.operands[0];
  Enclosure r = exactly(s.value());
  const DType sums = accumulator(r.value.dtype());
  const double terms = static_cast<double>(x.value.type().size()) /
                       static_cast<double>(std::max<std::int64_t>(r.value.type().size(), 1));
  if (x.exact && terms <= 1 && !s.model.real_numbers) return r;
  free_where(r, any_in_row(s, free_mask(x)));
  const auto smallest = [&](std::int64_t i) {
    return x.low.at(i) <= 0 && x.high.at(i) >= 0 ? 0.0
                                                 : finite(std::min(std::abs(x.low.at(i)), std::abs(x.high.at(i))));
  };
  const auto product = [&](auto&& f) { return reduced(s, Op::reduce_prod, made(f64, x, f)); };
  const Literal high = product([&](std::int64_t i) { return magnitude(x, i); }), low = product(smallest);
  const Literal growing = product([&](std::int64_t i) { return std::max(1.0, magnitude(x, i)); });
  const Literal shrinking = product([&](std::int64_t i) {
    return magnitude(x, i) == 0 ? 1.0 : std::min(1.0, smallest(i) == 0 ? magnitude(x, i) : smallest(i));
  });
  const Literal special = any_in_row(s, made(bool_, x, [&](std::int64_t i) { return is_special(x, i); }));
  const Literal moving = any_in_row(s, made(bool_, x, [&](std::int64_t i) { return moves(x, i); }));
  const Literal straddling =
      any_in_row(s, made(bool_, x, [&](std::int64_t i) { return x.low.at(i) < 0 && x.high.at(i) > 0; }));
  const double least = sums == f64 ? 0x1p-1000 : 0x1p-120, off = 1.01 * (terms + 2) * unit_roundoff(sums);
  for (std::int64_t i = 0; i < r.value.type().size(); ++i) {
    if (r.is_free(i)) continue;
    const bool order_matters = !(growing.at(i) < largest_finite(sums) / 4) || shrinking.at(i) < least;
    if (order_matters || (special.int_at(i) != 0 && moving.int_at(i) != 0)) {
      free_element(r, i);
    } else if (special.int_at(i) == 0) {
      const double most = high.at(i) * (1 + off), fewest = low.at(i) * (1 - off);
      const bool both = straddling.int_at(i) != 0, negative = std::signbit(r.value.at(i));
      set_low(r.low, i, both || negative ? -most : fewest);
      set_high(r.high, i, both || !negative ? most : -fewest);
      step_down(r.low, i, 1);
      step_up(r.high, i, 1);
    }
  }
  return r;
}

}  // namespace

Enclosure enclose_reduce(const Site& s) {
  const Enclosure& x = s.operands[0];
  if (is_float(x.value.dtype()) && s.op == Op::reduce_sum) return enclose_sum(s);
  if (is_float(x.value.dtype()) && s.op == Op::reduce_prod) return enclose_product(s);
  Enclosure r = exactly(s.value());
  if (x.exact) return r;
  if (is_float(s.type().dtype)) {
    r.low = s.apply(std::span(&x.low, 1));
    r.high = s.apply(std::span(&x.high, 1));
    free_where(r, any_in_row(s, free_mask(x)));
  } else {
    free_where(r, any_in_row(s, made(bool_, x, [&](std::int64_t i) { return moves(x, i); })));
  }
  return r;
}

Enclosure enclose_dot(const Site& s) {
  const Enclosure &a = s.operands[0], &b = s.operands[1];
  Enclosure r = exactly(s.value());
  const bool floats = is_float(a.value.dtype());
  const auto a_dot = s.attrs<Op::dot_general>();
  std::vector<AttrValue> attributes(s.attributes.begin(), s.attributes.end());
  attributes.back() = f64;
  const Type type{f64, s.type().shape};
  const auto dot = [&](const Literal& x, const Literal& y) {
    const Literal with[] = {x, y};
    return s.apply(with, attributes, type);
  };
  const auto one = [](std::int64_t) { return 1.0; };
  if (s.any_free()) {
    const auto mask = [&](const Enclosure& e) {
      return made(f64, e, [&](std::int64_t i) { return e.is_free(i) ? 1.0 : 0.0; });
    };
    const Literal from_a = dot(mask(a), made(f64, b, one)), from_b = dot(made(f64, a, one), mask(b));
    for (std::int64_t i = 0; i < type.size(); ++i)
      if (from_a.at(i) + from_b.at(i) > 0) free_element(r, i);
  }
  if (!floats) return r;
  double depth = 1;
  for (Int axis : a_dot.lhs_contract) depth *= static_cast<double>(a.value.shape()[static_cast<std::size_t>(axis)]);
  const auto size = [](const Enclosure& e) {
    return made(f64, e, [&](std::int64_t i) { return finite(std::abs(e.value.at(i))); });
  };
  const auto reach = [](const Enclosure& e) {
    return made(f64, e, [&](std::int64_t i) {
      const double v = e.value.at(i);
      return finite(std::abs(v)) + finite(std::max(e.high.at(i) - v, v - e.low.at(i)));
    });
  };
  const auto special = [](const Enclosure& e) {
    return made(f64, e, [&](std::int64_t i) { return is_special(e, i) ? 1.0 : 0.0; });
  };
  const auto moving = [](const Enclosure& e) {
    return made(f64, e, [&](std::int64_t i) { return moves(e, i) ? 1.0 : 0.0; });
  };
  const Literal least = dot(size(a), size(b)), most = dot(reach(a), reach(b));
  const Literal special_a = dot(special(a), made(f64, b, one)), special_b = dot(made(f64, a, one), special(b));
  const Literal moving_a = dot(moving(a), made(f64, b, one)), moving_b = dot(made(f64, a, one), moving(b));
  // Where attention multiplies an f32 with a bf16, the former is three of these, the least above 2^-40 of it.
  const auto holds_bf16 = [](const Enclosure& e) {
    Literal rounded(Type{bf16, {}});
    for (std::int64_t i = 0; i < e.value.type().size(); ++i) {
      rounded.set(0, e.value.at(i));
      if (std::isfinite(e.value.at(i)) && rounded.at(0) != e.value.at(i)) return false;
    }
    return true;
  };
  const bool splits = s.model.flushes_half_dots && a.value.dtype() == f32 && b.value.dtype() == f32 && (holds_bf16(a) || holds_bf16(b));
  const bool flushes = splits || (s.model.flushes_half_dots && a.value.dtype() == bf16);
  const double may_be_zero = splits ? tiny * 0x1p40 : tiny;
  const Literal flushed_a = dot(made(f64, a, one), size(b)), flushed_b = dot(size(a), made(f64, b, one));
  // Infinity times a denormal that is read as 0 is NaN.
  const auto may_flush = [&](const Enclosure& e) {
    return made(f64, e, [&](std::int64_t i) {
      return e.low.at(i) < may_be_zero && e.high.at(i) > -may_be_zero && (e.low.at(i) != 0 || e.high.at(i) != 0) ? 1.0 : 0.0;
    });
  };
  const Literal lost_a = dot(may_flush(a), special(b)), lost_b = dot(special(a), may_flush(b));
  const bool wide = s.type().dtype == f64 || a.value.dtype() == f64;
  for (std::int64_t i = 0; i < type.size(); ++i) {
    const double apart = most.at(i) - least.at(i) + depth * (wide ? 0x1p-1074 : 0x1p-149) + 0x1p-51 * most.at(i) +
                         (flushes ? tiny * (flushed_a.at(i) + flushed_b.at(i) + depth) : 0);
    const bool is_special = special_a.at(i) + special_b.at(i) > 0;
    if (depth == 0) continue;
    const double value = is_special ? 0 : r.value.at(i);
    const bool lost = flushes && lost_a.at(i) + lost_b.at(i) > 0;
    if (lost || (!wide && !(most.at(i) < largest_finite(f32) / 4)) || !std::isfinite(value)) {
      free_element(r, i);
      continue;
    }
    bound_sum(r, i, value - apart, value + apart, most.at(i), (splits ? 3 : 1) * depth + 1, is_special,
              moving_a.at(i) + moving_b.at(i) == 0);
  }
  return r;
}

Enclosure enclose_movement(const Site& s, std::size_t first_index) {
  Enclosure r = exactly(s.value());
  if (s.all_exact()) return r;
  for (std::size_t k = first_index; k < s.operands.size(); ++k)
    if (!s.operands[k].exact) {
      if (s.op == Op::gather && s.attrs<Op::gather>().mode == IndexMode::error) s.model.unsure = "an index of gather";
      free_all(r);
      return r;
    }
  std::vector<Literal> low, high, mask;
  for (std::size_t k = 0; k < s.operands.size(); ++k) {
    const Enclosure& e = s.operands[k];
    low.push_back(e.low);
    high.push_back(e.high);
    mask.push_back(k < first_index ? free_mask(e) : e.value);
  }
  r.low = s.apply(low);
  r.high = s.apply(high);
  if (s.any_free()) free_where(r, s.apply(mask, s.attributes, {bool_, s.type().shape}));
  return r;
}

Enclosure enclose_scatter(const Site& s) {
  const Enclosure &x = s.operands[0], &indices = s.operands[1], &updates = s.operands[2];
  Enclosure r = exactly(s.value());
  const auto a = s.attrs<Op::scatter>();
  if (!indices.exact) {
    if (a.mode == IndexMode::error) s.model.unsure = "an index of scatter";
    free_all(r);
    return r;
  }
  const bool sums = is_float(s.type().dtype) && (a.combine == Combine::add || a.combine == Combine::mul);
  if (s.all_exact() && !sums && !s.model.real_numbers) return r;
  std::vector<AttrValue> attributes(s.attributes.begin(), s.attributes.end());
  const auto scattered = [&](DType dtype, Combine combine, const Literal& to, const Literal& from) {
    for (std::size_t k = 0; k < attributes.size(); ++k)
      if (std::holds_alternative<Combine>(attributes[k])) attributes[k] = combine;
    const Literal with[] = {to, indices.value, from};
    return s.apply(with, attributes, {dtype, s.type().shape});
  };
  if (s.any_free()) {
    const auto mask = [](const Enclosure& e) { return made(i8, e, [&](std::int64_t i) { return e.is_free(i); }); };
    free_where(r, scattered(i8, a.combine == Combine::set ? Combine::set : Combine::max, mask(x), mask(updates)));
  }
  if (!is_float(s.type().dtype)) return r;
  if (!sums) {
    r.low = scattered(s.type().dtype, a.combine, x.low, updates.low);
    r.high = scattered(s.type().dtype, a.combine, x.high, updates.high);
    return r;
  }
  const auto zero = [](std::int64_t) { return 0.0; };
  const auto over = [&](auto&& f) {
    return scattered(f64, Combine::add, made(f64, x, [&](std::int64_t i) { return f(x, i); }),
                     made(f64, updates, [&](std::int64_t i) { return f(updates, i); }));
  };
  const Literal terms =
      scattered(f64, Combine::add, made(f64, x, zero), made(f64, updates, [](std::int64_t) { return 1.0; }));
  const Literal moving = over([](const Enclosure& e, std::int64_t i) { return moves(e, i) ? 1.0 : 0.0; });
  const Literal special = over([](const Enclosure& e, std::int64_t i) { return is_special(e, i) ? 1.0 : 0.0; });
  const Literal low = over([](const Enclosure& e, std::int64_t i) { return finite(e.low.at(i)); });
  const Literal high = over([](const Enclosure& e, std::int64_t i) { return finite(e.high.at(i)); });
  const Literal magnitudes = over([](const Enclosure& e, std::int64_t i) { return magnitude(e, i); });
  for (std::int64_t i = 0; i < s.type().size(); ++i) {
    const bool exact = moving.at(i) == 0;
    if (terms.at(i) == 0) {
      r.low.set(i, x.low.at(i));
      r.high.set(i, x.high.at(i));
      if (exact) r.low.set(i, r.value.at(i)), r.high.set(i, r.value.at(i));
    } else if (exact && terms.at(i) == 1 && !s.model.real_numbers) {
      continue;
    } else if (a.combine == Combine::add) {
      bound_sum(r, i, low.at(i), high.at(i), magnitudes.at(i), terms.at(i), special.at(i) > 0, exact);
    } else if (!r.is_free(i)) {
      free_element(r, i);  // a product of several, in an order of its own
    }
  }
  return r;
}

}  // namespace burin::fuzz
