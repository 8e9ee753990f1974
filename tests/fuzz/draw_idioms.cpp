// Chains that programs are full of and that single draws hardly ever make.
#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

ValueId keep(Generator& g, ValueId x) {
  g.pool.push_back(x);
  return x;
}

// y, one element per row of x, in every element of the row.
ValueId over_rows(Generator& g, ValueId y, const Shape& shape, std::size_t axis) {
  Ints dims;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (i != axis) dims.push_back(static_cast<Int>(i));
  return g.b.broadcast(y, shape, dims);
}

std::size_t row_axis(Generator& g, ValueId x) {
  const std::size_t rank = g.b.type(x).rank();
  return g.random.chance(0.8) ? rank - 1 : static_cast<std::size_t>(g.random.below(static_cast<Int>(rank)));
}

ValueId float_of_rank(Generator& g, std::size_t rank) {
  const ValueId x = g.any_of_rank(rank);
  return is_float(g.b.type(x).dtype) ? x : g.b.convert(x, g.random.chance(0.8) ? f32 : bf16);
}

void softmax(Generator& g) {
  const ValueId x = float_of_rank(g, 1);
  const Shape shape = g.b.type(x).shape;
  const std::size_t axis = row_axis(g, x);
  const Ints axes = {static_cast<Int>(axis)};
  const ValueId shifted = g.b.sub(x, over_rows(g, keep(g, g.b.reduce(Op::reduce_max, x, axes)), shape, axis));
  const ValueId e = g.b.exp(shifted), sum = keep(g, g.b.reduce(Op::reduce_sum, e, axes));
  keep(g, g.random.chance(0.6) ? g.b.div(e, over_rows(g, sum, shape, axis))
                               : g.b.sub(shifted, over_rows(g, g.b.log(sum), shape, axis)));
}

void norm(Generator& g) {
  const ValueId x = float_of_rank(g, 1);
  const Type type = g.b.type(x);
  const std::size_t axis = row_axis(g, x);
  const Ints axes = {static_cast<Int>(axis)};
  const auto mean = [&](ValueId v) {
    const ValueId sum = g.b.reduce(Op::reduce_sum, v, axes);
    return g.b.div(sum, g.b.full_like(sum, static_cast<double>(std::max<Int>(type.shape[axis], 1))));
  };
  const ValueId centred = g.random.chance(0.5) ? g.b.sub(x, over_rows(g, mean(x), type.shape, axis)) : x;
  const ValueId square = mean(g.b.mul(centred, centred));
  const ValueId scale = g.b.rsqrt(g.b.add(square, g.b.full_like(square, 1e-3)));
  ValueId y = keep(g, g.b.mul(centred, over_rows(g, scale, type.shape, axis)));
  if (g.random.chance(0.6)) {
    const ValueId gain = g.of_type({type.dtype, {type.shape[axis]}});
    y = g.b.mul(y, g.b.broadcast(gain, type.shape, axes));
  }
  keep(g, y);
}

void layer(Generator& g) {
  const ValueId x = float_of_rank(g, 2);
  const Type type = g.b.type(x);
  const Int out = g.extent();
  const ValueId w = g.of_type({type.dtype, {type.shape.back(), out}});
  if (type.size() / std::max<Int>(type.shape.back(), 1) * out > g.recipe.max_elements) return;
  ValueId y = g.b.emit<Op::dot_general>(
      {x, w}, {.lhs_contract = {static_cast<Int>(type.rank()) - 1}, .rhs_contract = {0}, .dtype = type.dtype});
  const Shape shape = g.b.type(y).shape;
  if (g.random.chance(0.7))
    y = g.b.add(y, g.b.broadcast(g.of_type({type.dtype, {out}}), shape, {static_cast<Int>(shape.rank()) - 1}));
  if (g.random.chance(0.7)) y = g.random.chance(0.5) ? g.b.max(y, g.b.full_like(y, 0)) : g.b.mul(y, g.b.logistic(y));
  if (g.random.chance(0.3)) y = g.b.add(y, g.of_type(g.b.type(y)));
  keep(g, y);
}

// Scores of queries and keys, masked, normalised, times values.
void attention(Generator& g) {
  const DType dtype = g.random.chance(0.7) ? f32 : bf16;
  const Int heads = g.random.between(1, 3), rows = g.random.between(1, 20), columns = g.random.between(1, 20),
            width = g.random.between(1, 20);
  const ValueId q = g.of_type({dtype, {heads, rows, width}}), k = g.of_type({dtype, {heads, columns, width}}),
                v = g.of_type({dtype, {heads, columns, width}});
  ValueId s = g.b.emit<Op::dot_general>(
      {q, k}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {2}, .dtype = dtype});
  const Shape shape = g.b.type(s).shape;
  if (g.random.chance(0.6)) {
    const ValueId mask = g.b.ge(g.b.iota(i32, shape, 1), g.b.iota(i32, shape, 2));
    s = g.b.select(mask, s, g.b.full_like(s, g.random.chance(0.5) ? -1e30 : -std::numeric_limits<double>::infinity()));
  }
  const ValueId e = g.b.exp(g.b.sub(s, over_rows(g, g.b.reduce(Op::reduce_max, s, {2}), shape, 2)));
  const ValueId p = keep(g, g.b.div(e, over_rows(g, g.b.reduce(Op::reduce_sum, e, {2}), shape, 2)));
  keep(g, g.b.emit<Op::dot_general>(
              {p, v}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}, .dtype = dtype}));
}

}  // namespace

bool draw_idiom(Generator& g) {
  switch (g.random.below(4)) {
    case 0:
      softmax(g);
      break;
    case 1:
      norm(g);
      break;
    case 2:
      layer(g);
      break;
    default:
      attention(g);
      break;
  }
  return true;
}

}  // namespace burin::fuzz
