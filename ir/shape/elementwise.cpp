#include "base/message_ids.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {
namespace {

enum Kinds : unsigned { floats = 1, ints = 2, bools = 4, u64s = 8 };
constexpr unsigned numbers = floats | ints, all = numbers | bools;

// Which dtypes an op takes:
//   floats           roundings, roots, exponentials, logarithms, trigonometry, erf, atan2, is_finite
//   ints             shifts, popcount, count_leading_zeros
//   ints, bool       bit_and, bit_or, bit_xor, bit_not
//   numbers          neg, abs, sign (unsigned integers too), sub, div, rem, pow
//   numbers, bool    add (or), mul (and), max, min, clamp, stop_gradient, select, convert, comparisons
//   u64              threefry2x32
unsigned taken(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::sub:
    case Op::div:
    case Op::rem:
    case Op::pow: return numbers;
    case Op::bit_not:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return ints | bools;
    case Op::popcount:
    case Op::count_leading_zeros:
    case Op::shift_left:
    case Op::shift_right_logical:
    case Op::shift_right_arithmetic: return ints;
    case Op::threefry2x32: return u64s;
    case Op::stop_gradient:
    case Op::add:
    case Op::mul:
    case Op::max:
    case Op::min:
    case Op::clamp:
    case Op::select:
    case Op::convert: return all;
    case Op::bitcast: return numbers;
    default: return family_of(op) == Family::compare ? unsigned{all} : unsigned{floats};
  }
}

bool takes(unsigned kinds, DType dtype) {
  return ((kinds & floats) && is_float(dtype)) || ((kinds & ints) && is_int(dtype)) ||
         ((kinds & bools) && dtype == DType::bool_) || ((kinds & u64s) && dtype == DType::u64);
}

std::string_view description(unsigned kinds) {
  switch (kinds) {
    case floats: return "floats";
    case ints: return "integers";
    case ints | bools: return "integers or bools";
    case numbers: return "numbers";
    case u64s: return "u64";
    default: return "any dtype";
  }
}

void check_taken(const Operands& in, std::size_t i) {
  if (const unsigned kinds = taken(in.op); !takes(kinds, in[i].dtype))
    in.fail(Msg::dtype_not_taken, name(in.op), description(kinds), to_string(in[i]), i);
}

// All operands have the type of the first, which the op takes.
void check_agree(const Operands& in) {
  for (std::size_t i = 1; i < in.size(); ++i) {
    check_same_shape(in, 0, i);
    check_same_dtype(in, 0, i);
  }
  check_taken(in, 0);
}

}  // namespace

Types infer_elementwise(const Operands& in) {
  check_agree(in);
  return {in[0]};
}

Types infer_compare(const Operands& in) {
  check_agree(in);
  return {Type{DType::bool_, in[0].shape}};
}

Types infer(Tag<Op::is_finite>, const Operands& in, const attrs::is_finite&) {
  check_taken(in, 0);
  return {Type{DType::bool_, in[0].shape}};
}

Types infer(Tag<Op::select>, const Operands& in, const attrs::select&) {
  if (in[0].dtype != DType::bool_) in.fail(Msg::select_condition, to_string(in[0]));
  check_same_shape(in, 0, 1);
  check_same_shape(in, 1, 2);
  check_same_dtype(in, 1, 2);
  return {in[1]};
}

Types infer(Tag<Op::convert>, const Operands& in, const attrs::convert& a) { return {Type{a.dtype, in[0].shape}}; }

Types infer(Tag<Op::bitcast>, const Operands& in, const attrs::bitcast& a) {
  check_taken(in, 0);
  if (a.dtype == DType::bool_ || size_of(a.dtype) != size_of(in[0].dtype))
    in.fail(Msg::bitcast_width, to_string(in[0]), 8 * size_of(in[0].dtype), name(a.dtype));
  return {Type{a.dtype, in[0].shape}};
}

}  // namespace burin::ir::shape
