// Movement ops leave the batch axis where it is: their attributes get an entry in front that does nothing.
#include "passes/batching/rules.h"

namespace burin::passes::batching {

void batch(Tag<Op::reshape>, BatchContext& c) {
  c.give(c.b.emit<Op::reshape>({c.operand(0)}, {.shape = prepended(c.size, c.attrs<Op::reshape>().shape)}));
}

void batch(Tag<Op::transpose>, BatchContext& c) {
  const Ints permutation = prepended(0, shifted(c.attrs<Op::transpose>().permutation));
  c.give(c.b.emit<Op::transpose>({c.operand(0)}, {.permutation = permutation}));
}

void batch(Tag<Op::broadcast>, BatchContext& c) {
  const attrs::broadcast a = c.attrs<Op::broadcast>();
  c.give(c.b.emit<Op::broadcast>({c.operand(0)},
                                 {.shape = prepended(c.size, a.shape), .dims = prepended(0, shifted(a.dims))}));
}

void batch(Tag<Op::slice>, BatchContext& c) {
  const attrs::slice a = c.attrs<Op::slice>();
  c.give(c.b.emit<Op::slice>({c.operand(0)}, {.start = prepended(0, a.start),
                                              .limit = prepended(c.size, a.limit),
                                              .stride = prepended(1, a.stride)}));
}

void batch(Tag<Op::pad>, BatchContext& c) {
  Builder& b = c.b;
  const attrs::pad a = c.attrs<Op::pad>();
  const attrs::pad with_axis{
      .low = prepended(0, a.low), .high = prepended(0, a.high), .interior = prepended(0, a.interior)};
  if (!c.batched(1)) return c.give(b.emit<Op::pad>({c.operand(0), c.operand(1)}, with_axis));
  // Each example has its own padding value: pad with anything, then put the values where the padding is. Where that is
  // depends on the attributes alone.
  const Type example = c.example_type(0);
  const ValueId padded = b.emit<Op::pad>({c.with_batch(0), b.full(Type{example.dtype, {}}, 0)}, with_axis);
  const Shape shape = b.type(padded).shape;
  const ValueId where = b.emit<Op::pad>(
      {b.full(Type{DType::bool_, example.shape}, 0), b.full(Type{DType::bool_, {}}, 1)}, a);
  c.give(b.emit<Op::select>({repeat(b, where, c.size), b.broadcast(c.operand(1), shape, {0}), padded}));
}

void batch(Tag<Op::concatenate>, BatchContext& c) {
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < c.num_operands(); ++i) operands.push_back(c.with_batch(i));
  c.give(c.b.emit<Op::concatenate>(operands, {.axis = c.attrs<Op::concatenate>().axis + 1}));
}

void batch(Tag<Op::reverse>, BatchContext& c) {
  c.give(c.b.emit<Op::reverse>({c.operand(0)}, {.axes = shifted(c.attrs<Op::reverse>().axes)}));
}

}  // namespace burin::passes::batching
