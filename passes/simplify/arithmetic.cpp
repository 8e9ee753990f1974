#include "passes/simplify/rules.h"

namespace burin::passes::rewrite {
namespace {

// Does every value of `from` survive a trip through `through`?
bool holds_all(DType through, DType from) {
  if (through == from) return true;
  if (is_float(from)) {
    if (!is_float(through)) return false;
    if (through == DType::f64) return true;
    return through == DType::f32 && is_half(from);
  }
  if (from == DType::bool_) return true;
  if (is_float(through)) {
    const std::size_t bits = 8 * size_of(from) - (is_signed_int(from) ? 1 : 0);
    const std::size_t digits = through == DType::f64 ? 53 : through == DType::f32 ? 24 : through == DType::f16 ? 11 : 8;
    return bits <= digits;
  }
  if (through == DType::bool_) return false;
  if (is_signed_int(from) == is_signed_int(through)) return size_of(through) >= size_of(from);
  return is_unsigned_int(from) && size_of(through) > size_of(from);
}

}  // namespace

std::optional<Literal> splat_of(const Function& f, ValueId v) {
  for (;;) {
    const OpId op = f.def(v);
    if (!op.valid()) return std::nullopt;
    if (f.kind(op) == Op::broadcast || f.kind(op) == Op::reshape) {
      v = f.operand(op, 0);
      continue;
    }
    if (f.kind(op) != Op::constant) return std::nullopt;
    const Literal value = f.attrs<Op::constant>(op).value;
    if (!value.stores_one_element()) return std::nullopt;
    return Literal(Type{value.dtype(), {}}, value.raw());
  }
}

bool is_splat_of(const Function& f, ValueId v, double value) {
  const auto splat = splat_of(f, v);
  return splat && *splat == Literal::scalar(splat->dtype(), value);
}

Rewrite arithmetic(const Site& s) {
  const Function& f = s.f();
  const auto is = [&](std::size_t i, double value) { return is_splat_of(f, s.operands[i], value); };
  switch (s.op) {
    case Op::mul:
      if (s.results[0].dtype == DType::bool_) return {};
      if (is(1, 1)) return s.operands[0];
      if (is(0, 1)) return s.operands[1];
      return {};
    case Op::div:
      if (is(1, 1)) return s.operands[0];
      return {};
    case Op::sub:
      if (is(1, 0)) return s.operands[0];
      return {};
    case Op::add:
      // -0 is the neutral element of float addition: -0 + 0 is +0.
      for (std::size_t i = 0; i < 2; ++i)
        if (is_float(s.results[0].dtype) ? is(1 - i, -0.0) : is(1 - i, 0)) return s.operands[i];
      return {};
    case Op::neg:
      if (const OpId inner = s.def(0, Op::neg); inner.valid()) return f.operand(inner, 0);
      return {};
    case Op::bit_not:
      if (const OpId inner = s.def(0, Op::bit_not); inner.valid()) return f.operand(inner, 0);
      return {};
    case Op::pow:
      if (is(1, 1)) return s.operands[0];
      if (is(1, 2)) return s.b.mul(s.operands[0], s.operands[0]);
      return {};
    case Op::select: {
      if (s.operands[1] == s.operands[2]) return s.operands[1];
      if (const auto mask = splat_of(f, s.operands[0])) return s.operands[mask->int_at(0) != 0 ? 1 : 2];
      return {};
    }
    case Op::convert: {
      const DType dtype = s.results[0].dtype;
      if (s.type(0).dtype == dtype) return s.operands[0];
      if (const OpId inner = s.def(0, Op::convert); inner.valid()) {
        const ValueId x = f.operand(inner, 0);
        if (f.type(x).dtype == dtype && holds_all(s.type(0).dtype, dtype)) return x;
      }
      return {};
    }
    case Op::bitcast:
      if (s.type(0).dtype == s.results[0].dtype) return s.operands[0];
      return {};
    default: return {};
  }
}

}  // namespace burin::passes::rewrite
