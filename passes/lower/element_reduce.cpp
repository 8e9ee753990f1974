// Reductions and contractions inside one element: serial loops where no lowering of their own applies.
#include <algorithm>

#include "base/check.h"
#include "passes/lower/element.h"

namespace burin::passes::lower {

Reduce reduction_of(Op op, DType dtype) {
  switch (op) {
    case Op::reduce_sum: return dtype == DType::bool_ ? Reduce::bit_or : Reduce::sum;
    case Op::reduce_prod: return dtype == DType::bool_ ? Reduce::bit_and : Reduce::prod;
    case Op::reduce_max: return Reduce::max;
    case Op::reduce_min: return Reduce::min;
    case Op::reduce_and: return Reduce::bit_and;
    default: return Reduce::bit_or;
  }
}

Op combining_op(Reduce reduce) {
  switch (reduce) {
    case Reduce::sum: return Op::add;
    case Reduce::prod: return Op::mul;
    case Reduce::max: return Op::max;
    case Reduce::min: return Op::min;
    case Reduce::bit_and: return Op::bit_and;
    case Reduce::bit_or: return Op::bit_or;
  }
  return Op::add;
}

ScalarId ElementEmitter::accumulate_serially(const std::vector<std::int64_t>& extents, Reduce reduce, DType dtype,
                                             const std::function<ScalarId(const std::vector<Affine>&)>& term) {
  std::int64_t terms = 1;
  for (std::int64_t extent : extents) terms *= extent;
  const DType wide = accumulator_dtype(dtype), running = accumulator_dtype(reduce, dtype, terms);
  const AccId acc = b_.acc(reduce, running, 1);
  std::vector<Affine> index;
  const std::function<void(std::size_t)> open = [&](std::size_t i) {
    if (i == extents.size()) {
      enter();
      const ScalarId value = term(index);
      b_.accumulate(acc, running == wide ? value : b_.let(Op::convert, {value}, running));
      return leave();
    }
    b_.loop("", 0, {Affine(extents[i])}, LoopKind::serial, 1, [&](VarId var) {
      index.emplace_back(var);
      open(i + 1);
      index.pop_back();
    });
  };
  open(0);
  const ScalarId sum = b_.finish(acc, wide);
  return wide == dtype ? sum : b_.let(Op::convert, {sum}, dtype);
}

ScalarId ElementEmitter::emit_reduce(OpId op, const Index& at) {
  const Ints axes = std::get<Ints>(body_.attributes(op)[0]);
  const ValueId x = body_.operand(op, 0);
  const Type& type = body_.type(x);
  std::vector<std::int64_t> extents;
  std::vector<bool> reduced(type.rank(), false);
  for (std::int64_t axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  for (std::size_t axis = 0; axis < type.rank(); ++axis)
    if (reduced[axis]) extents.push_back(type.shape[axis]);
  const std::vector<Affine> outer = dims(at);
  const DType wide = accumulator_dtype(type.dtype);
  return accumulate_serially(extents, reduction_of(body_.kind(op), type.dtype), type.dtype, [&](const auto& inner) {
    std::vector<Affine> index;
    std::size_t next_outer = 0, next_inner = 0;
    for (std::size_t axis = 0; axis < type.rank(); ++axis)
      index.push_back(reduced[axis] ? inner[next_inner++] : outer[next_outer++]);
    const ScalarId value = emit(x, Index::of_dims(type.shape, index));
    return wide == type.dtype ? value : b_.let(Op::convert, {value}, wide);
  });
}

ScalarId ElementEmitter::emit_dot(OpId op, const Index& at) {
  const auto a = body_.attrs<Op::dot_general>(op);
  const DType wide = accumulator_dtype(a.dtype);
  const std::vector<Affine> to = dims(at);
  std::vector<std::int64_t> extents;
  for (std::int64_t axis : a.lhs_contract)
    extents.push_back(body_.type(body_.operand(op, 0)).shape[static_cast<std::size_t>(axis)]);
  return accumulate_serially(extents, Reduce::sum, a.dtype, [&](const std::vector<Affine>& k) {
    ScalarId factors[2];
    std::size_t next_free = a.lhs_batch.size();
    for (std::size_t side = 0; side < 2; ++side) {
      const Ints &batch = side == 0 ? a.lhs_batch : a.rhs_batch, &contract = side == 0 ? a.lhs_contract : a.rhs_contract;
      const ValueId operand = body_.operand(op, side);
      const Type& type = body_.type(operand);
      std::vector<Affine> index;
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(type.rank()); ++axis) {
        const auto in_batch = std::find(batch.begin(), batch.end(), axis), in_k = std::find(contract.begin(), contract.end(), axis);
        if (in_batch != batch.end())
          index.push_back(to[static_cast<std::size_t>(in_batch - batch.begin())]);
        else if (in_k != contract.end())
          index.push_back(k[static_cast<std::size_t>(in_k - contract.begin())]);
        else
          index.push_back(to[next_free++]);
      }
      factors[side] = emit(operand, Index::of_dims(type.shape, index));
      if (type.dtype != wide) factors[side] = b_.let(Op::convert, {factors[side]}, wide);
    }
    return b_.let(Op::mul, {factors[0], factors[1]}, wide);
  });
}

}  // namespace burin::passes::lower
