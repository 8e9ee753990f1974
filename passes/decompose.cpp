#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

// The least index at which x equals its extremum or is NaN (any NaN beats every number).
ValueId first_extreme_index(Builder& b, ValueId x, std::int64_t axis, DType dtype, Op reduction) {
  const Type type = b.type(x);
  Ints kept;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(type.rank()); ++i)
    if (i != axis) kept.push_back(i);
  const ValueId extreme = b.reduce(reduction, x, {axis});
  ValueId hit = b.eq(x, b.broadcast(extreme, type.shape, kept));
  if (is_float(type.dtype)) hit = b.bit_or(hit, b.ne(x, x));
  const std::int64_t extent = type.shape[static_cast<std::size_t>(axis)];
  const ValueId ids = b.iota(DType::i64, type.shape, axis);
  const ValueId none = b.constant(Literal::splat(type.shape, Literal::scalar_int(DType::i64, extent - 1)));
  return b.convert(b.reduce(Op::reduce_min, b.select(hit, ids, none), {axis}), dtype);
}

}  // namespace

Function decompose(const Function& f) {
  const auto is_empty = [&](OpId op) { return f.num_results(op) == 1 && f.type(f.result(op)).size() == 0; };
  if (!any_op(f, [&](OpId op) { return is_empty(op) || f.kind(op) == Op::argmax || f.kind(op) == Op::argmin; })) return f;
  Rewriter rewriter(f);
  Builder& b = rewriter.b;
  f.for_each_op([&](OpId op) {
    b.set_location(f.location(op));
    // A value without elements needs no computing: no kernel has to find its way through extents of 0.
    if (is_empty(op)) {
      const Type& type = f.type(f.result(op));
      rewriter.replace(f.result(op), b.constant(Literal::splat(type.shape, Literal(Type{type.dtype, {}}))));
      return;
    }
    if (f.kind(op) == Op::argmax) {
      const auto a = f.attrs<Op::argmax>(op);
      rewriter.replace(f.result(op), first_extreme_index(b, rewriter[f.operand(op, 0)], a.axis, a.dtype, Op::reduce_max));
      return;
    }
    if (f.kind(op) == Op::argmin) {
      const auto a = f.attrs<Op::argmin>(op);
      rewriter.replace(f.result(op), first_extreme_index(b, rewriter[f.operand(op, 0)], a.axis, a.dtype, Op::reduce_min));
      return;
    }
    rewriter.copy(op);
  });
  return rewriter.finish();
}

}  // namespace burin::passes
