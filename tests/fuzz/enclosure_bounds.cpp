// Bounds as representable values: steps between neighbours, outward rounding; and what every rule begins and ends with.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/eval/eval.h"
#include "tests/fuzz/enclosure_rules.h"

namespace burin::fuzz {
namespace {

// Floats of every format are sign and magnitude: their order is that of the magnitudes as integers.
template <class Bits>
void step_bits(Literal& x, std::int64_t i, int n, int mantissa_bits) {
  std::byte* at = x.mutable_raw().data() + static_cast<std::size_t>(i) * sizeof(Bits);
  Bits bits;
  std::memcpy(&bits, at, sizeof bits);
  constexpr int width = 8 * sizeof(Bits);
  const Bits sign = static_cast<Bits>(Bits{1} << (width - 1)),
             infinity = static_cast<Bits>(static_cast<Bits>(~sign) >> mantissa_bits << mantissa_bits);
  const auto magnitude = static_cast<std::int64_t>(static_cast<Bits>(bits & static_cast<Bits>(~sign)));
  std::int64_t key = (bits & sign) != 0 ? -magnitude : magnitude;
  key = std::clamp<std::int64_t>(key + n, -static_cast<std::int64_t>(infinity), static_cast<std::int64_t>(infinity));
  bits = key < 0 ? static_cast<Bits>(static_cast<Bits>(-key) | sign) : static_cast<Bits>(key);
  std::memcpy(at, &bits, sizeof bits);
}

void step(Literal& x, std::int64_t i, int n) {
  if (std::isnan(x.at(i))) return;
  switch (x.dtype()) {
    case f64:
      return step_bits<std::uint64_t>(x, i, n, 52);
    case f32:
      return step_bits<std::uint32_t>(x, i, n, 23);
    case bf16:
      return step_bits<std::uint16_t>(x, i, n, 7);
    case f16:
      return step_bits<std::uint16_t>(x, i, n, 10);
    default:
      return;
  }
}

}  // namespace

void step_up(Literal& x, std::int64_t i, int n) { step(x, i, n); }
void step_down(Literal& x, std::int64_t i, int n) { step(x, i, -n); }

void set_low(Literal& x, std::int64_t i, double bound) {
  x.set(i, bound);
  if (x.at(i) > bound) step_down(x, i, 1);
}

void set_high(Literal& x, std::int64_t i, double bound) {
  x.set(i, bound);
  if (x.at(i) < bound) step_up(x, i, 1);
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case f64:
      return std::numeric_limits<double>::max();
    case bf16:
      return 0x1.fep127;
    case f16:
      return 65504;
    default:
      return std::numeric_limits<float>::max();
  }
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case f64:
      return 0x1p-53;
    case bf16:
      return 0x1p-8;
    case f16:
      return 0x1p-11;
    default:
      return 0x1p-24;
  }
}

void free_element(Enclosure& e, std::int64_t i) {
  if (e.free.empty()) e.free.assign(static_cast<std::size_t>(e.value.type().size()), false);
  e.free[static_cast<std::size_t>(i)] = true;
}

void free_all(Enclosure& e) { e.free.assign(static_cast<std::size_t>(e.value.type().size()), true); }

void settle(Enclosure& e) {
  if (std::find(e.free.begin(), e.free.end(), true) == e.free.end()) e.free.clear();
  e.exact = e.free.empty() && e.low == e.high && e.low == e.value;
  if (!e.exact) return;
  e.low = e.high = e.value;
}

bool Site::all_exact() const {
  return std::all_of(operands.begin(), operands.end(), [](const Enclosure& e) { return e.exact; });
}

bool Site::any_free() const {
  return std::any_of(operands.begin(), operands.end(), [](const Enclosure& e) { return !e.free.empty(); });
}

Literal Site::apply(std::span<const Literal> with, std::span<const AttrValue> other, const Type& result) const {
  Literal literal = evaluate_op(op, with, other, std::span(&result, 1))[0];
  literal.expand();
  return literal;
}

Literal Site::apply(std::span<const Literal> with) const { return apply(with, attributes, types[0]); }

Literal Site::value() const {
  std::vector<Literal> values;
  for (const Enclosure& e : operands) values.push_back(e.value);
  return apply(values);
}

std::vector<Enclosure> enclose_op(Op op, std::span<const Enclosure> operands, std::span<const AttrValue> attributes,
                                  std::span<const Type> types, Model& model) {
  const Site s{op, operands, attributes, types, model};
  for (const AttrValue& attribute : attributes)
    if (const Body* body = std::get_if<Body>(&attribute))
      return enclose(**body, operands, model);  // the first body is the meaning
  if (op == Op::optimization_barrier) return {operands.begin(), operands.end()};
  Enclosure result;
  switch (family_of(op)) {
    case Family::elementwise:
    case Family::compare:
      result = enclose_elementwise(s);
      break;
    case Family::reduce:
      result = enclose_reduce(s);
      break;
    case Family::contract:
      result = enclose_dot(s);
      break;
    default:
      if (operands.empty()) return {exactly(s.value())};
      result = op == Op::scatter ? enclose_scatter(s)
                                 : enclose_movement(s, op == Op::gather || op == Op::dynamic_slice ? 1
                                                       : op == Op::dynamic_update_slice            ? 2
                                                                                                   : operands.size());
  }
  settle(result);
  return {std::move(result)};
}

}  // namespace burin::fuzz
