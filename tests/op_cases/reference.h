// Arithmetic from the definitions in docs/ir.md, for the results that the table expects: nothing of ir/eval is in it.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ir/literal.h"

namespace burin::op_cases {

/// Holds each element of every dtype exactly, the integers of 64 bits too.
using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64);
using Reals = std::vector<Real>;

Real element(const ir::Literal& literal, std::int64_t i);
Reals elements(const ir::Literal& literal);
/// Floats are rounded to the dtype; an integer or bool must be one of the dtype.
ir::Literal from_reals(const ir::Type& type, std::span<const Real> values);
/// To the nearest float of the dtype.
Real rounded(Real value, DType dtype);

/// Bits of an element: 1 for bool.
std::uint64_t width_of(DType dtype);
/// The integer modulo 2^64, and the number which the lowest bits of a word are in an integer dtype or bool.
std::uint64_t word(Real integer);
Real of_word(std::uint64_t word, DType dtype);
/// Smallest and largest integer of the dtype.
Real lowest_of(DType dtype);
Real highest_of(DType dtype);

/// Floats without rounding, integers modulo 2^n, bools as or and and.
Real sum(Real x, Real y, DType dtype);
Real product(Real x, Real y, DType dtype);
/// NaN where either is; +0 is larger than -0.
Real larger(Real x, Real y);
Real smaller(Real x, Real y);
/// Of integers, with the edges of docs/ir.md.
Real quotient(Real x, Real y, DType dtype);
Real remainder(Real x, Real y, DType dtype);
Real power(Real x, Real y, DType dtype);
/// Threefry-2x32 with 20 rounds on words of (high, low).
std::uint64_t threefry(std::uint64_t key, std::uint64_t counter);

/// The bits of element i, and the number that bits are in a dtype, integer or float.
std::uint64_t bits_of(const ir::Literal& literal, std::int64_t i);
Real of_bits(std::uint64_t bits, DType dtype);

}  // namespace burin::op_cases
