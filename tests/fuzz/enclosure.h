// The error model: for every value of a program, what any conforming execution may compute on given inputs.
// docs/numerics.md says what conforming means; tests/fuzz/README.md says it in the words of this file.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/literal.h"

namespace burin::fuzz {

/// A value as the evaluator computes it, and per element the interval that holds what others may compute.
struct Enclosure {
  ir::Literal value, low, high;  // of one type; not splats
  std::vector<bool> free;        // elements of which nothing is known: empty when there are none
  bool exact = true;             // low, value and high are the same bits and nothing is free

  bool is_free(std::int64_t i) const { return !free.empty() && free[static_cast<std::size_t>(i)]; }
  std::int64_t num_free() const;
};
Enclosure exactly(ir::Literal value);

struct Model {
  bool excess_precision = false;   // 16-bit elementwise results may keep more bits
  bool flushes_half_dots = false;  // dots of bf16 flush denormals (hardware)
  bool real_numbers = false;       // intervals hold the results of exact arithmetic too
  std::string unsure;              // set when whether an index is out of range depends on rounding
};

/// The results of f on inputs known exactly or by interval. Throws Error for an index out of range under mode `error`.
std::vector<Enclosure> enclose(const ir::Function& f, std::span<const Enclosure> args, Model& model);
std::vector<Enclosure> enclose_op(ir::Op op, std::span<const Enclosure> operands,
                                  std::span<const ir::AttrValue> attributes, std::span<const ir::Type> types,
                                  Model& model);

/// "", or the first element of `found` outside of its interval. Exact elements are compared by bits, NaN aside, which
/// equals NaN.
std::string outside(const std::vector<ir::Literal>& found, const std::vector<Enclosure>& expected);
/// "", or the first element that differs in its bits, NaN aside.
std::string different(const std::vector<ir::Literal>& found, const std::vector<ir::Literal>& expected);

}  // namespace burin::fuzz
