#include "passes/lower/element.h"

#include <algorithm>

#include "base/check.h"
#include "base/counted.h"

namespace burin::passes::lower {
ElementEmitter::ElementEmitter(const Function& body, BlockBuilder& b, IndexSpace& space, std::vector<BufferId> buffers)
    : body_(body), b_(b), space_(space), buffers_(std::move(buffers)), arg_of_value_(body.num_values(), -1), memo_(body.num_values()) {
  BURIN_CHECK(buffers_.size() == body.args().size());
  for (std::size_t i = 0; i < body.args().size(); ++i)
    arg_of_value_[body.args()[i].index] = static_cast<std::int64_t>(i);
}

void ElementEmitter::leave() {
  for (; trail_.size() > marks_.back(); trail_.pop_back()) memo_[trail_.back().index].pop_back();
  marks_.pop_back();
}

Affine ElementEmitter::flat(const Index& at) const {
  if (at.flat) return *at.flat;
  Affine offset;
  std::int64_t stride = 1;
  for (std::size_t i = at.shape.rank(); i-- > 0;) {
    offset = offset + (*at.dims)[i] * stride;
    stride *= at.shape[i];
  }
  return offset;
}

std::vector<Affine> ElementEmitter::dims(const Index& at) {
  if (at.dims) return *at.dims;
  std::vector<Affine> result(at.shape.rank());
  Affine rest = *at.flat;
  for (std::size_t i = at.shape.rank(); i-- > 1;) {
    if (const auto parts = space_.divide(rest, at.shape[i])) {
      rest = parts->first;
      result[i] = parts->second;
      continue;
    }
    // No split of loops makes this affine: divide at run time.
    const ScalarId value = b_.index(space_.resolve(rest), DType::i64);
    const ScalarId divisor = b_.constant(Literal::scalar_int(DType::i64, at.shape[i]));
    const auto bound = [&](Op op, std::int64_t extent) {
      const VarId var = b_.bind(b_.let(op, {value, divisor}, DType::i64), extent, IndexMode::clip, -1);
      return Affine(var);
    };
    std::int64_t outer = 1;
    for (std::size_t k = 0; k < i; ++k) outer *= at.shape[k];
    result[i] = bound(Op::rem, at.shape[i]);
    rest = bound(Op::div, outer);
  }
  if (!result.empty()) result[0] = rest;
  return result;
}

ScalarId ElementEmitter::zero(DType dtype) { return b_.constant(Literal::scalar_int(dtype, 0)); }

ScalarId ElementEmitter::load(BufferId buffer, const Affine& offset, DType dtype) {
  if (guards_.empty()) return b_.load(buffer, {space_.resolve(offset)});
  std::vector<Affine> conditions;
  for (const Affine& guard : guards_) conditions.push_back(space_.resolve(guard));
  return b_.load(buffer, {space_.resolve(offset)}, std::move(conditions), zero(dtype));
}

void ElementEmitter::store(BufferId buffer, const Index& at, ScalarId value) {
  b_.store(buffer, {space_.resolve(flat(at))}, value);
}

ScalarId ElementEmitter::emit(ValueId v, const Index& at) {
  if (hook_)
    if (const auto given = hook_(v, at)) return *given;
  const Affine at_flat = flat(at);
  for (const Memo& memo : memo_[v.index])
    if (memo.num_guards == guards_.size() && memo.at == at_flat) return memo.scalar;
  ScalarId scalar;
  if (const std::int64_t arg = arg_of_value_[v.index]; arg >= 0)
    scalar = load(buffers_[static_cast<std::size_t>(arg)], flat(at), body_.type(v).dtype);
  else
    scalar = visit_op(body_.def(v), at);
  memo_[v.index].push_back({at_flat, guards_.size(), scalar});
  trail_.push_back(v);
  return scalar;
}

ScalarId ElementEmitter::emit_guarded(ValueId v, const Index& at, std::span<const Affine> conditions) {
  const std::size_t outer = guards_.size();
  enter();  // what is computed under a guard must not be found by those outside it
  guards_.insert(guards_.end(), conditions.begin(), conditions.end());
  const ScalarId scalar = emit(v, at);
  guards_.resize(outer);
  leave();
  return scalar;
}

ScalarId ElementEmitter::emit_under(ValueId v, const Index& at, std::span<const Affine> conditions) {
  const ScalarId value = emit_guarded(v, at, conditions);
  const DType dtype = body_.type(v).dtype;
  // A guarded load gives 0 by itself; what is computed from it may not.
  return body_.is_arg(v) ? value : b_.let(Op::select, {holds(conditions), value, zero(dtype)}, dtype);
}

ScalarId ElementEmitter::holds(std::span<const Affine> conditions) {
  ScalarId all;
  for (const Affine& condition : conditions) {
    const ScalarId one = b_.let(Op::ge, {b_.index(space_.resolve(condition), DType::i64), zero(DType::i64)}, DType::bool_);
    all = all.valid() ? b_.let(Op::bit_and, {all, one}, DType::bool_) : one;
  }
  return all.valid() ? all : b_.constant(Literal::scalar_int(DType::bool_, 1));
}

ScalarId ElementEmitter::emit_elementwise(OpId op, const Index& at) {
  std::vector<ScalarId> args;
  for (ValueId operand : body_.operands(op)) args.push_back(emit(operand, at));
  if (body_.kind(op) == Op::stop_gradient) return args[0];
  const DType dtype = body_.type(body_.result(op)).dtype;
  if (body_.kind(op) == Op::div && dtype == DType::f32 && is_inverted_ && is_inverted_(body_.operand(op, 1), at))
    return b_.let(Op::mul, {args[0], b_.let(Op::div, {b_.constant(dtype, 1), args[1]}, dtype)}, dtype);
  return b_.let(body_.kind(op), std::move(args), dtype);
}

// Named when a check fails: the op itself, not those that asked for its element.
ScalarId ElementEmitter::visit_op(OpId op, const Index& at) {
  struct Return {
    ~Return() { place = outer; }
    OpId& place;
    OpId outer;
  } const back{visit_.op, visit_.op};
  std::optional<CrashContext> context;
  if (!visit_.op.valid()) context.emplace(&describe_visit, &visit_);
  visit_.op = op;
  return emit_op(op, at);
}

ScalarId ElementEmitter::emit_op(OpId op, const Index& at) {
  const Op kind = body_.kind(op);
  const Family family = family_of(kind);
  if (family == Family::elementwise || family == Family::compare) return emit_elementwise(op, at);
  if (family == Family::reduce) return emit_reduce(op, at);
  switch (kind) {
    case Op::dot_general: return emit_dot(op, at);
    case Op::constant: {
      const Literal value = body_.attrs<Op::constant>(op).value;
      BURIN_CHECK(value.stores_one_element(), "a large constant inside a kernel");
      return b_.constant(Literal(Type{value.dtype(), {}}, value.raw()));
    }
    case Op::iota: {
      const auto a = body_.attrs<Op::iota>(op);
      return b_.index(space_.resolve(dims(at)[static_cast<std::size_t>(a.axis)]), a.dtype);
    }
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast:
    case Op::slice:
    case Op::reverse: return emit(body_.operand(op, 0), move_index(op, at));
    case Op::pad: return emit_pad(op, at);
    case Op::concatenate: return emit_concatenate(op, at);
    case Op::gather: return emit_gather(op, at);
    case Op::dynamic_slice: return emit_dynamic_slice(op, at);
    case Op::dynamic_update_slice: return emit_dynamic_update_slice(op, at);
    default: BURIN_CHECK(false, std::string("no element of ") + std::string(name(kind))); return {};
  }
}

Index ElementEmitter::move_index(OpId op, const Index& at) {
  const Shape& from = body_.type(body_.operand(op, 0)).shape;
  switch (body_.kind(op)) {
    case Op::reshape: return Index::of_flat(from, flat(at));
    case Op::transpose: {
      const Ints permutation = body_.attrs<Op::transpose>(op).permutation;
      const std::vector<Affine> to = dims(at);
      std::vector<Affine> index(to.size());
      for (std::size_t i = 0; i < to.size(); ++i) index[static_cast<std::size_t>(permutation[i])] = to[i];
      return Index::of_dims(from, index);
    }
    case Op::broadcast: {
      const Ints axes = body_.attrs<Op::broadcast>(op).dims;
      std::vector<Affine> index(from.rank());
      if (from.size() == 1) return Index::of_dims(from, index);
      const std::vector<Affine> to = dims(at);
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (from[i] != 1) index[i] = to[static_cast<std::size_t>(axes[i])];
      return Index::of_dims(from, index);
    }
    case Op::slice: {
      const auto a = body_.attrs<Op::slice>(op);
      std::vector<Affine> index = dims(at);
      for (std::size_t i = 0; i < index.size(); ++i) index[i] = index[i] * a.stride[i] + Affine(a.start[i]);
      return Index::of_dims(from, index);
    }
    case Op::reverse: {
      std::vector<Affine> index = dims(at);
      for (std::int64_t axis : body_.attrs<Op::reverse>(op).axes) {
        const auto i = static_cast<std::size_t>(axis);
        index[i] = Affine(at.shape[i] - 1) - index[i];
      }
      return Index::of_dims(from, index);
    }
    default: BURIN_CHECK(false, std::string(name(body_.kind(op)))); return at;
  }
}

ScalarId ElementEmitter::emit_pad(OpId op, const Index& at) {
  const auto a = body_.attrs<Op::pad>(op);
  const ValueId x = body_.operand(op, 0);
  const Shape from = body_.type(x).shape;
  const ScalarId filler = emit(body_.operand(op, 1), Index::of_dims({}, {}));
  if (from.size() == 0) return filler;
  std::vector<Affine> index = dims(at), conditions;
  ScalarId on_grid;
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] = index[i] - Affine(a.low[i]);
    const std::int64_t step = a.interior[i] + 1, last = (from[i] - 1) * step;
    if (a.low[i] > 0) conditions.push_back(index[i]);
    if (a.high[i] > 0) conditions.push_back(Affine(last) - index[i]);
    if (step == 1) continue;
    // Only every step-th position holds an element; which one is found by dividing at run time, on clamped positions.
    const ScalarId position = b_.index(space_.resolve(index[i]), DType::i64);
    const ScalarId divisor = b_.constant(Literal::scalar_int(DType::i64, step));
    const ScalarId hit =
        b_.let(Op::eq, {b_.let(Op::rem, {position, divisor}, DType::i64), zero(DType::i64)}, DType::bool_);
    on_grid = on_grid.valid() ? b_.let(Op::bit_and, {on_grid, hit}, DType::bool_) : hit;
    const VarId var = b_.bind(b_.let(Op::div, {position, divisor}, DType::i64), from[i], IndexMode::clip, -1);
    index[i] = Affine(var);
  }
  const ScalarId inside = emit_guarded(x, Index::of_dims(from, index), conditions);
  ScalarId take = conditions.empty() ? ScalarId{} : holds(conditions);
  if (on_grid.valid()) take = take.valid() ? b_.let(Op::bit_and, {take, on_grid}, DType::bool_) : on_grid;
  return take.valid() ? b_.let(Op::select, {take, inside, filler}, body_.type(x).dtype) : inside;
}

ScalarId ElementEmitter::emit_concatenate(OpId op, const Index& at) {
  const auto axis = static_cast<std::size_t>(body_.attrs<Op::concatenate>(op).axis);
  const std::vector<Affine> to = dims(at);
  ScalarId result;
  std::int64_t offset = 0;
  for (ValueId operand : body_.operands(op)) {
    const Type& type = body_.type(operand);
    const std::int64_t extent = type.shape[axis];
    if (type.size() == 0) continue;
    std::vector<Affine> index = to;
    index[axis] = to[axis] - Affine(offset);
    const Affine conditions[] = {index[axis], Affine(extent - 1) - index[axis]};
    const ScalarId mine = emit_guarded(operand, Index::of_dims(type.shape, index), conditions);
    // Later operands take over from their offset on.
    result = result.valid() ? b_.let(Op::select, {holds(std::span(conditions, 1)), mine, result}, type.dtype) : mine;
    offset += extent;
  }
  return result;
}

VarId ElementEmitter::bind(ScalarId value, std::int64_t extent, IndexMode mode, OpId op, std::int64_t axis) {
  std::int32_t site = -1;
  if (mode == IndexMode::error) {
    const std::string where = to_string(body_.location(op));
    site = static_cast<std::int32_t>(b_.kernel().sites.size());
    b_.kernel().sites.push_back({std::string(name(body_.kind(op))) + ": index {index} is out of range for axis " +
                                 std::to_string(axis) + " of " + to_string(body_.type(body_.operand(op, 0))) +
                                 ": expected " + index_bounds(extent) + (where.empty() ? "" : " (" + where + ")")});
  }
  const VarId var = b_.bind(value, extent, mode, site);
  return var;
}

ScalarId ElementEmitter::emit_gather(OpId op, const Index& at) {
  const auto a = body_.attrs<Op::gather>(op);
  const Shape operand = body_.type(body_.operand(op, 0)).shape, indices = body_.type(body_.operand(op, 1)).shape;
  const std::vector<Affine> to = dims(at);
  const auto contains = [](const Ints& list, std::size_t x) {
    return std::find(list.begin(), list.end(), static_cast<std::int64_t>(x)) != list.end();
  };
  std::vector<Affine> batch, offset;
  for (std::size_t i = 0; i < to.size(); ++i) (contains(a.offset_dims, i) ? offset : batch).push_back(to[i]);
  std::vector<Affine> index(operand.rank());
  std::size_t next = 0;
  for (std::size_t i = 0; i < operand.rank(); ++i)
    if (!contains(a.collapsed_slice_dims, i) && !contains(a.operand_batching_dims, i)) index[i] = offset[next++];
  // Axes of the indices but index_vector_dim are the batch axes, in order.
  const auto vector_dim = static_cast<std::size_t>(a.index_vector_dim);
  for (std::size_t k = 0; k < a.operand_batching_dims.size(); ++k) {
    const auto axis = static_cast<std::size_t>(a.indices_batching_dims[k]);
    index[static_cast<std::size_t>(a.operand_batching_dims[k])] = batch[axis > vector_dim ? axis - 1 : axis];
  }
  for (std::size_t k = 0; k < a.start_index_map.size(); ++k) {
    std::vector<Affine> where = batch;
    if (vector_dim < indices.rank())
      where.insert(where.begin() + static_cast<std::ptrdiff_t>(vector_dim), Affine(static_cast<std::int64_t>(k)));
    const ScalarId start = emit(body_.operand(op, 1), Index::of_dims(indices, where));
    const auto axis = static_cast<std::size_t>(a.start_index_map[k]);
    const VarId var = bind(start, operand[axis] - a.slice_sizes[axis] + 1, a.mode, op, static_cast<std::int64_t>(axis));
    index[axis] = index[axis] + Affine(var);
  }
  return emit(body_.operand(op, 0), Index::of_dims(operand, index));
}

std::vector<Affine> ElementEmitter::dynamic_starts(OpId op, std::size_t first, const Shape& from, const Shape& window) {
  std::vector<Affine> starts;
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (from[i] == window[i]) {  // whatever the start says, it is clamped to 0
      starts.emplace_back(0);
      continue;
    }
    const ScalarId start = emit(body_.operand(op, first + i), Index::of_dims({}, {}));
    starts.emplace_back(bind(start, from[i] - window[i] + 1, IndexMode::clip, op, static_cast<std::int64_t>(i)));
  }
  return starts;
}

ScalarId ElementEmitter::emit_dynamic_slice(OpId op, const Index& at) {
  const Shape from = body_.type(body_.operand(op, 0)).shape;
  std::vector<Affine> index = dims(at);
  const std::vector<Affine> starts = dynamic_starts(op, 1, from, at.shape);
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = index[i] + starts[i];
  return emit(body_.operand(op, 0), Index::of_dims(from, index));
}

ScalarId ElementEmitter::emit_dynamic_update_slice(OpId op, const Index& at) {
  const ValueId x = body_.operand(op, 0), update = body_.operand(op, 1);
  const Shape window = body_.type(update).shape;
  const ScalarId old = emit(x, at);
  if (window.size() == 0) return old;
  std::vector<Affine> index = dims(at), conditions;
  const std::vector<Affine> starts = dynamic_starts(op, 2, at.shape, window);
  for (std::size_t i = 0; i < index.size(); ++i) {
    index[i] = index[i] - starts[i];
    if (window[i] == at.shape[i]) continue;
    conditions.push_back(index[i]);
    conditions.push_back(Affine(window[i] - 1) - index[i]);
  }
  const ScalarId fresh = emit_guarded(update, Index::of_dims(window, index), conditions);
  return conditions.empty() ? fresh : b_.let(Op::select, {holds(conditions), fresh, old}, body_.type(x).dtype);
}

}  // namespace burin::passes::lower
