// Elementwise and compare ops: every legal dtype on odd, single, empty and rank-0 shapes, and every pair of extremes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

/// The inverse of erf by Newton's method, on erf below 1/2 and on erfc above, where 1 - x keeps its digits.
Real inverse_of_erf(Real x) {
  const Real size = std::fabs(x), slope = 2 / std::sqrt(std::numbers::pi_v<Real>);
  if (!(size <= 1)) return std::numeric_limits<Real>::quiet_NaN();
  if (size == 1) return std::copysign(std::numeric_limits<Real>::infinity(), x);
  Real y = size < Real(0.5) ? size / slope : std::sqrt(-std::log((1 - size) * (1 + size)));
  for (int i = 0; i < 40; ++i) {
    const Real above = size < Real(0.5) ? std::erf(y) - size : (1 - size) - std::erfc(y);
    y -= above / (slope * std::exp(-y * y));
  }
  return std::copysign(y, x);
}

/// Where derivatives are taken and values compared, and the function in long double from its definition.
struct Unary {
  double low, high;
  Real (*reference)(Real);
};

Unary unary(Op op) {
  switch (op) {
    case Op::neg: return {-3, 3, [](Real x) { return -x; }};
    case Op::abs: return {-3, 3, [](Real x) { return std::fabs(x); }};
    case Op::sign: return {-3, 3, [](Real x) { return x > 0 ? Real(1) : x < 0 ? Real(-1) : x; }};
    case Op::floor: return {-3, 3, [](Real x) { return std::floor(x); }};
    case Op::ceil: return {-3, 3, [](Real x) { return std::ceil(x); }};
    case Op::trunc: return {-3, 3, [](Real x) { return std::trunc(x); }};
    case Op::round_even: return {-3, 3, [](Real x) { return std::rint(x); }};
    case Op::round_away: return {-3, 3, [](Real x) { return std::round(x); }};
    case Op::sqrt: return {0.1, 4, [](Real x) { return std::sqrt(x); }};
    case Op::rsqrt: return {0.1, 4, [](Real x) { return 1 / std::sqrt(x); }};
    case Op::cbrt: return {0.1, 4, [](Real x) { return std::cbrt(x); }};
    case Op::exp: return {-3, 3, [](Real x) { return std::exp(x); }};
    case Op::exp2: return {-3, 3, [](Real x) { return std::exp2(x); }};
    case Op::expm1: return {-3, 3, [](Real x) { return std::expm1(x); }};
    case Op::log: return {0.1, 4, [](Real x) { return std::log(x); }};
    case Op::log2: return {0.1, 4, [](Real x) { return std::log2(x); }};
    case Op::log1p: return {-0.9, 4, [](Real x) { return std::log1p(x); }};
    case Op::tanh: return {-2, 2, [](Real x) { return std::tanh(x); }};
    case Op::logistic: return {-4, 4, [](Real x) { return 1 / (1 + std::exp(-x)); }};
    case Op::erf: return {-2, 2, [](Real x) { return std::erf(x); }};
    case Op::erfc: return {-2, 2, [](Real x) { return std::erfc(x); }};
    case Op::erf_inv: return {-0.9, 0.9, inverse_of_erf};
    case Op::sin: return {-4, 4, [](Real x) { return std::sin(x); }};
    case Op::cos: return {-4, 4, [](Real x) { return std::cos(x); }};
    case Op::tan: return {-1.2, 1.2, [](Real x) { return std::tan(x); }};
    case Op::asin: return {-0.9, 0.9, [](Real x) { return std::asin(x); }};
    case Op::acos: return {-0.9, 0.9, [](Real x) { return std::acos(x); }};
    case Op::atan: return {-3, 3, [](Real x) { return std::atan(x); }};
    case Op::sinh: return {-3, 3, [](Real x) { return std::sinh(x); }};
    case Op::cosh: return {-3, 3, [](Real x) { return std::cosh(x); }};
    case Op::asinh: return {-3, 3, [](Real x) { return std::asinh(x); }};
    case Op::acosh: return {1.2, 4, [](Real x) { return std::acosh(x); }};
    case Op::atanh: return {-0.9, 0.9, [](Real x) { return std::atanh(x); }};
    case Op::is_finite: return {-3, 3, [](Real x) { return Real(std::isfinite(x)); }};
    case Op::stop_gradient: return {-3, 3, [](Real x) { return x; }};
    case Op::bit_not:
    case Op::popcount:
    case Op::count_leading_zeros: return {-100, 100, nullptr};
    default: return {0, 0, nullptr};
  }
}

struct Binary {
  double x_low, x_high, y_low, y_high;
  Real (*reference)(Real, Real);
};

Binary binary(Op op) {
  switch (op) {
    case Op::add: return {-3, 3, -2, 2, [](Real x, Real y) { return x + y; }};
    case Op::sub: return {-3, 3, -2, 2, [](Real x, Real y) { return x - y; }};
    case Op::mul: return {-3, 3, -2, 2, [](Real x, Real y) { return x * y; }};
    case Op::div: return {-3, 3, 0.5, 2.5, [](Real x, Real y) { return x / y; }};
    case Op::rem: return {-3, 3, 0.7, 2.3, [](Real x, Real y) { return std::fmod(x, y); }};
    case Op::max: return {-3, 3, -3, 3, larger};
    case Op::min: return {-3, 3, -3, 3, smaller};
    case Op::pow: return {0.2, 3, -2, 3, [](Real x, Real y) { return std::pow(x, y); }};
    case Op::atan2: return {-3, 3, -2, 2, [](Real x, Real y) { return std::atan2(x, y); }};
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return {-100, 100, -100, 100, nullptr};
    case Op::shift_left:
    case Op::shift_right_logical:
    case Op::shift_right_arithmetic: return {-100, 100, 0, 70, nullptr};
    case Op::threefry2x32: return {0, 1e9, 0, 1e9, nullptr};
    default: return {0, 0, 0, 0, nullptr};
  }
}

// The bounds of integer arguments: wide enough to wrap in 8 bits, with zero and negative divisors.
Arg argument(const Type& type, double low, double high, Op op) {
  if (is_float(type.dtype)) return within(type, low, high);
  if (op == Op::pow) return within(type, -3, 5);
  if (std::abs(low) < 10) return within(type, -100, 100);
  return within(type, low, high);
}

const Shape shapes[] = {{3, 5}, {1}, {0}, {2, 1, 3}, {}};

/// One element of each operand gives one of the result.
Expected elementwise(std::function<Real(const Real*)> f) {
  return [f](const std::vector<Literal>& args) {
    Reals results;
    Real x[3] = {};
    for (std::int64_t i = 0; i < args[0].shape().size(); ++i) {
      for (std::size_t k = 0; k < args.size(); ++k) x[k] = element(args[k], i);
      results.push_back(f(x));
    }
    return results;
  };
}

/// What an op gives for integers and bools.
Real of_integers(Op op, const Real* x, DType dtype) {
  const std::uint64_t width = width_of(dtype), unused = 64 - width;
  const auto unsigned_bits = [&](Real value) { return word(value) << unused >> unused; };
  const std::uint64_t a = unsigned_bits(x[0]), b = unsigned_bits(x[1]);
  const auto wrapped = [&](std::uint64_t value) { return of_word(value, dtype); };
  switch (op) {
    case Op::neg: return wrapped(0 - word(x[0]));
    case Op::abs: return x[0] < 0 ? wrapped(0 - word(x[0])) : x[0];
    case Op::sign: return Real(x[0] > 0) - Real(x[0] < 0);
    case Op::stop_gradient: return x[0];
    case Op::add: return sum(x[0], x[1], dtype);
    case Op::sub: return wrapped(word(x[0]) - word(x[1]));
    case Op::mul: return product(x[0], x[1], dtype);
    case Op::div: return quotient(x[0], x[1], dtype);
    case Op::rem: return remainder(x[0], x[1], dtype);
    case Op::max: return larger(x[0], x[1]);
    case Op::min: return smaller(x[0], x[1]);
    case Op::pow: return power(x[0], x[1], dtype);
    case Op::threefry2x32: return wrapped(threefry(a, b));
    case Op::bit_not: return wrapped(~a);
    case Op::popcount: return static_cast<Real>(std::popcount(a));
    case Op::count_leading_zeros: return static_cast<Real>(width) - static_cast<Real>(std::bit_width(a));
    case Op::bit_and: return wrapped(a & b);
    case Op::bit_or: return wrapped(a | b);
    case Op::bit_xor: return wrapped(a ^ b);
    case Op::shift_left: return b < width ? wrapped(a << b) : 0;
    case Op::shift_right_logical: return b < width ? wrapped(a >> b) : 0;
    case Op::shift_right_arithmetic: {
      const std::uint64_t by = b < width ? b : width - 1, filled = by == 0 ? 0 : ~std::uint64_t{0} << (width - by);
      const bool negative = a >> (width - 1) != 0;  // of unsigned numbers too, the highest bit follows
      return wrapped(a >> by | (negative ? filled : 0));
    }
    default: break;
  }
  return std::numeric_limits<Real>::quiet_NaN();  // no number of the dtype: the comparison fails
}

bool has_slope(Op op) { return op != Op::stop_gradient; }

Entry unary_entry(Op op, const Unary& row) {
  Entry entry;
  for (DType dtype : all_dtypes) {
    if (!takes(op, {Type{dtype, {}}}, {})) {
      if (entry.refused.empty()) {
        const char* wanted = takes(op, {Type{DType::i32, {}}}, {}) ? (takes(op, {Type{f64, {}}}, {}) ? "numbers"
                                                                      : takes(op, {Type{bool_, {}}}, {})
                                                                          ? "integers or bools"
                                                                          : "integers")
                                                                   : "floats";
        const Type type{dtype, {3, 5}};
        entry.refused.push_back(refuse(op, {type}, {},
                                       std::string(ir::name(op)) + ": expected " + wanted + ", found " + to_string(type) +
                                           " as operand 0"));
      }
      continue;
    }
    const auto add = [&](OpCase made, bool smooth) {
      made.expected = elementwise([=, f = row.reference](const Real* x) {
        return is_float(dtype) ? f(x[0]) : of_integers(op, x, dtype);
      });
      made.smooth = smooth;
      entry.cases.push_back(std::move(made));
    };
    for (const Shape& shape : shapes)
      add(make_case(op, {argument(Type{dtype, shape}, row.low, row.high, op)}, {}), dtype == f64 && has_slope(op));
    add(make_case(op, {exactly(extremes(dtype))}, {}, "extremes"), false);
  }
  entry.refused.push_back(refuse(op, {Type{f32, {}}, Type{f32, {}}}, {},
                                 std::string(ir::name(op)) + ": expected 1 operand, found 2"));
  return entry;
}

/// Two literals with every pair of elements.
std::pair<Literal, Literal> pairs(const Literal& values) {
  const std::int64_t n = values.shape().size();
  Literal first(Type{values.dtype(), {n * n}}), second = first;
  const std::size_t width = size_of(values.dtype());
  for (std::int64_t i = 0; i < n * n; ++i) {
    const auto copy = [&](Literal& to, std::int64_t from) {
      std::copy_n(values.raw().data() + static_cast<std::size_t>(from) * width, width,
                  to.mutable_raw().data() + static_cast<std::size_t>(i) * width);
    };
    copy(first, i / n);
    copy(second, i % n);
  }
  return {first, second};
}

Entry binary_entry(Op op, const Binary& row) {
  Entry entry;
  for (DType dtype : all_dtypes) {
    const Type scalar{dtype, {}};
    if (!takes(op, {scalar, scalar}, {})) continue;
    const auto add = [&](OpCase made, bool smooth) {
      made.expected = elementwise([=, f = row.reference](const Real* x) {
        return is_float(dtype) || family_of(op) == Family::compare ? f(x[0], x[1]) : of_integers(op, x, dtype);
      });
      made.smooth = smooth;
      entry.cases.push_back(std::move(made));
    };
    for (const Shape& shape : shapes) {
      const Type type{dtype, shape};
      add(make_case(op, {argument(type, row.x_low, row.x_high, op), argument(type, row.y_low, row.y_high, op)}, {}),
          dtype == f64);
    }
    const auto [x, y] = pairs(extremes(dtype));
    add(make_case(op, {exactly(x), exactly(y)}, {}, "extremes"), false);
    if (entry.refused.empty())
      entry.refused.push_back(refuse(op, {Type{dtype, {3, 5}}, Type{dtype, {5, 3}}}, {},
                                     std::string(ir::name(op)) + ": shapes differ: operand 0 is " +
                                         to_string(Type{dtype, {3, 5}}) + ", operand 1 is " +
                                         to_string(Type{dtype, {5, 3}})));
  }
  return entry;
}

Entry select_entry() {
  Entry entry;
  for (DType dtype : all_dtypes)
    for (const Shape& shape : shapes) {
      const Type type{dtype, shape};
      OpCase made = make_case(Op::select, {within(Type{bool_, shape}, 0, 1), within(type, -3, 3), within(type, -3, 3)}, {});
      made.smooth = dtype == f64;
      entry.cases.push_back(std::move(made));
    }
  for (DType dtype : all_dtypes) {
    const auto [x, y] = pairs(extremes(dtype));
    entry.cases.push_back(make_case(Op::select, {within(Type{bool_, x.shape()}, 0, 1), exactly(x), exactly(y)}, {}, "extremes"));
  }
  for (OpCase& made : entry.cases)
    made.expected = elementwise([](const Real* x) { return x[0] != 0 ? x[1] : x[2]; });
  entry.refused = {refuse(Op::select, {Type{i32, {3}}, Type{f32, {3}}, Type{f32, {3}}}, {},
                          "select: expected a bool condition, found i32[3] as operand 0"),
                   refuse(Op::select, {Type{bool_, {3}}, Type{f32, {3}}, Type{i32, {3}}}, {},
                          "select: dtypes differ: operand 1 is f32[3], operand 2 is i32[3]")};
  return entry;
}

Entry clamp_entry() {
  Entry entry;
  const auto expected = elementwise([](const Real* x) { return smaller(larger(x[1], x[0]), x[2]); });
  for (DType dtype : all_dtypes)
    for (const Shape& shape : shapes) {
      const Type type{dtype, shape};
      OpCase made = make_case(Op::clamp, {within(type, -1.5, -0.2), within(type, -3, 3), within(type, 0.3, 1.6)}, {});
      made.expected = expected;
      made.smooth = dtype == f64;
      entry.cases.push_back(std::move(made));
    }
  for (DType dtype : all_dtypes) {  // every pair as bounds, each of them under three values
    const auto [low, high] = pairs(extremes(dtype));
    for (std::int64_t first : {0, 4, 9}) {
      OpCase made = make_case(Op::clamp, {exactly(low), repeated_extremes(low.type(), first), exactly(high)}, {},
                              "extremes from " + std::to_string(first));
      made.expected = expected;
      entry.cases.push_back(std::move(made));
    }
  }
  OpCase crossed = make_case(Op::clamp, {exactly(f64, {5}, "2 2 2 -1 0"), exactly(f64, {5}, "1 3 1.5 -3 9"),
                                         exactly(f64, {5}, "1.2 1.2 5 -2 -4")}, {}, "bounds crossed");
  crossed.expected = expected;
  crossed.smooth = true;
  entry.cases.push_back(std::move(crossed));
  entry.refused = {refuse(Op::clamp, {Type{f32, {3}}, Type{f32, {3}}, Type{f32, {}}}, {},
                          "clamp: shapes differ: operand 0 is f32[3], operand 2 is f32[]")};
  return entry;
}

Entry convert_entry() {
  Entry entry;
  for (DType from : all_dtypes)
    for (DType to : all_dtypes) {
      const std::string note = "to " + std::string(name(to));
      const auto add = [&](Arg arg, std::string_view what, bool smooth) {
        OpCase made = make_case(Op::convert, {std::move(arg)}, {to}, note + std::string(what));
        made.expected = elementwise([=](const Real* x) -> Real {
          if (to == bool_) return Real(x[0] != 0);  // a NaN is not 0
          if (is_float(to)) return x[0];
          if (!is_float(from)) return of_word(word(x[0]), to);
          if (std::isnan(x[0])) return 0;
          return std::clamp(std::trunc(x[0]), lowest_of(to), highest_of(to));
        });
        made.smooth = smooth;
        entry.cases.push_back(std::move(made));
      };
      add(within(Type{from, {3, 5}}, -100, 100), "", from == f64 && to == f64);
      add(exactly(extremes(from)), " extremes", false);
      if (to == f32 || to == u8)
        for (const Shape& shape : shapes)
          if (shape != Shape{3, 5}) add(within(Type{from, shape}, -100, 100), "", false);
    }
  entry.refused = {refuse(Op::convert, {Type{f32, {}}, Type{f32, {}}}, {DType::f32},
                          "convert: expected 1 operand, found 2")};
  return entry;
}

/// Where approximations of erf_inv lose digits, up to the last number before 1.
void add_near_one(Entry& entry) {
  const std::pair<DType, const char*> rows[] = {{f64, "0.99 -0.999 0.99999 -0.9999999 0x1.fffffffffffffp-1 -0x1.fffffffffe000p-1"},
                                                {f32, "0.99 -0.999 0.9999 -0.99999 0.9999999 -0.99999994"},
                                                {f16, "0.99 -0.999 0.9995 -0.9995 0.98 -0.97"},
                                                {bf16, "0.99 -0.996 0.996 -0.99 0.98 -0.97"}};
  for (const auto& [dtype, words] : rows) {
    OpCase made = make_case(Op::erf_inv, {exactly(dtype, {6}, words)}, {}, "near one");
    made.expected = elementwise([](const Real* x) { return inverse_of_erf(x[0]); });
    entry.cases.push_back(std::move(made));
  }
}

Entry bitcast_entry() {
  Entry entry;
  for (DType from : all_dtypes)
    for (DType to : all_dtypes) {
      if (!takes(Op::bitcast, {Type{from, {}}}, {to})) continue;
      const std::string note = "to " + std::string(name(to));
      const auto add = [&](Arg arg, const std::string& what) {
        OpCase made = make_case(Op::bitcast, {std::move(arg)}, {to}, what);
        made.expected = [to](const std::vector<Literal>& args) {
          Reals result;
          for (std::int64_t i = 0; i < args[0].shape().size(); ++i) result.push_back(of_bits(bits_of(args[0], i), to));
          return result;
        };
        entry.cases.push_back(std::move(made));
      };
      for (const Shape& shape : shapes) add(within(Type{from, shape}, -100, 100), note);
      add(exactly(extremes(from)), note + " extremes");
    }
  entry.no_derivative = "it reads the bits of a float";
  entry.refused = {refuse(Op::bitcast, {Type{f32, {3}}}, {DType::i64},
                          "bitcast: f32[3] has elements of 32 bits, expected a number dtype of that width, found i64")};
  return entry;
}

}  // namespace

Entry elementwise_entry(Op op) {
  switch (op) {
    case Op::select: return select_entry();
    case Op::clamp: return clamp_entry();
    case Op::convert: return convert_entry();
    case Op::bitcast: return bitcast_entry();
    default: break;
  }
  if (const Unary row = unary(op); info(op).arity == 1 && row.low < row.high) {
    Entry entry = unary_entry(op, row);
    if (op == Op::erf_inv) add_near_one(entry);
    return entry;
  }
  if (const Binary row = binary(op); info(op).arity == 2 && row.x_low < row.x_high) return binary_entry(op, row);
  return {};
}

Entry compare_entry(Op op) {
  const auto reference = [&]() -> Real (*)(Real, Real) {
    switch (op) {
      case Op::eq: return [](Real x, Real y) { return Real(x == y); };
      case Op::ne: return [](Real x, Real y) { return Real(x != y); };
      case Op::lt: return [](Real x, Real y) { return Real(x < y); };
      case Op::le: return [](Real x, Real y) { return Real(x <= y); };
      case Op::gt: return [](Real x, Real y) { return Real(x > y); };
      case Op::ge: return [](Real x, Real y) { return Real(x >= y); };
      default: return nullptr;
    }
  }();
  return reference ? binary_entry(op, {-3, 3, -3, 3, reference}) : Entry{};
}

}  // namespace burin::op_cases
