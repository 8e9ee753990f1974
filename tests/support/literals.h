// Inputs for tests and their comparison.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::test {

using ir::Literal;
using ir::Type;

/// The elements in row-major order, rounded to the dtype.
Literal from_doubles(const Type& type, std::span<const double> elements);
/// Different values spread evenly over (low, high), shuffled by `seed`; two seeds share no value. Integers: uniform in
/// [low, high] with repetitions.
Literal spread(const Type& type, double low, double high, std::uint64_t seed);
std::vector<double> to_doubles(const Literal& literal);

/// "" when equal in type and bits, any NaN being equal to any other, else the first difference.
std::string difference(const Literal& found, const Literal& expected);
/// "" when every pair differs by at most `tolerance` * (1 + |expected|), else the first that does not.
std::string difference(const Literal& found, const Literal& expected, double tolerance);

/// Literals of one type behind a new axis 0, and back.
Literal stacked(std::span<const Literal> examples);
Literal example(const Literal& batch, std::int64_t index);

/// Sum of products of all elements, in f64.
double inner_product(std::span<const Literal> a, std::span<const Literal> b);

}  // namespace burin::test
