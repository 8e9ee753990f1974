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
  Int size = out;  // of the result, which an empty axis that is summed over does not make empty
  for (std::size_t axis = 0; axis + 1 < type.rank(); ++axis) size *= type.shape[axis];
  if (size > g.recipe.max_elements) return;
  ValueId y = g.b.emit<Op::dot_general>(
      {x, w}, {.lhs_contract = {static_cast<Int>(type.rank()) - 1}, .rhs_contract = {0}, .dtype = type.dtype});
  const Shape shape = g.b.type(y).shape;
  if (g.random.chance(0.7))
    y = g.b.add(y, g.b.broadcast(g.of_type({type.dtype, {out}}), shape, {static_cast<Int>(shape.rank()) - 1}));
  if (g.random.chance(0.7)) y = g.random.chance(0.5) ? g.b.max(y, g.b.full_like(y, 0)) : g.b.mul(y, g.b.logistic(y));
  if (g.random.chance(0.3)) y = g.b.add(y, g.of_type(g.b.type(y)));
  keep(g, y);
}

// How positions compare with a number that is known at run time: for all, per head, per query.
ValueId within_a_length(Generator& g, const Shape& shape) {
  const DType dtype = g.random.chance(0.8) ? i32 : i64;
  const Int kind = g.random.below(4);
  const Shape given = kind == 0   ? Shape{}
                      : kind == 1 ? Shape{shape[0]}
                      : kind == 2 ? Shape{shape[0], 1, 1}
                                  : Shape{shape[1]};
  const Ints dims = kind == 0 ? Ints{} : kind == 1 ? Ints{0} : kind == 2 ? Ints{0, 1, 2} : Ints{1};
  ValueId length = g.of_type({dtype, given});
  if (g.random.chance(0.3)) length = g.b.min(length, g.b.full_like(length, static_cast<double>(shape[2])));
  if (g.random.chance(0.3)) length = g.b.sub(length, g.b.full_like(length, static_cast<double>(g.random.below(20))));
  length = g.b.broadcast(length, shape, dims);
  ValueId position = g.b.iota(dtype, shape, g.random.chance(0.8) ? 2 : 1);
  if (g.random.chance(0.3))
    position = g.b.add(position, g.b.full_like(position, static_cast<double>(g.random.below(9) - 4)));
  if (g.random.chance(0.1)) return g.b.ge(g.b.add(g.b.iota(dtype, shape, 1), length), position);
  switch (g.random.below(5)) {
    case 0:
      return g.b.le(position, length);
    case 1:
      return g.b.ge(position, length);
    case 2:
      return g.b.gt(length, position);
    default:
      return g.b.lt(position, length);
  }
}

ValueId masked(Generator& g, ValueId scores) {
  const Shape shape = g.b.type(scores).shape;
  const ValueId causal = g.b.ge(g.b.iota(i32, shape, 1), g.b.iota(i32, shape, 2));
  const double u = g.random.uniform();
  if (u < 0.3) return scores;
  ValueId mask = u < 0.6 ? causal : within_a_length(g, shape);
  if (u > 0.8) mask = g.random.chance(0.8) ? g.b.bit_and(mask, causal) : g.b.bit_or(mask, within_a_length(g, shape));
  const double low = g.random.pick(std::vector<double>{-1e30, -1e9, -std::numeric_limits<double>::infinity(),
                                                       -std::numeric_limits<double>::infinity()});
  const ValueId lowest = g.b.full_like(scores, low);
  if (g.random.chance(0.2)) return g.b.add(scores, g.b.select(mask, g.b.full_like(scores, 0), lowest));
  return g.random.chance(0.8) ? g.b.select(mask, scores, lowest) : g.b.select(g.b.bit_not(mask), lowest, scores);
}

// Scores of queries and keys, masked, normalised with or without a guard for rows of nothing, times values.
void attention(Generator& g) {
  const DType dtype = g.random.chance(0.7) ? f32 : bf16, sums = g.random.chance(0.5) ? f32 : dtype;
  const bool of_several_tiles = g.random.chance(0.3);
  const Int heads = of_several_tiles ? 1 : g.random.between(1, 3), rows = g.random.between(1, 20),
            columns = of_several_tiles ? g.random.between(60, 150) : g.random.between(1, 20),
            width = g.random.between(1, 20);
  const ValueId q = g.of_type({dtype, {heads, rows, width}}), k = g.of_type({dtype, {heads, columns, width}}),
                v = g.of_type({dtype, {heads, columns, width}});
  const ValueId s = masked(
      g, g.b.emit<Op::dot_general>(
             {q, k}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {2}, .dtype = sums}));
  const Shape shape = g.b.type(s).shape;
  ValueId shift = g.b.reduce(Op::reduce_max, s, {2}), dead;
  const bool guarded = g.random.chance(0.5);
  if (guarded) {
    dead = g.b.eq(shift, g.b.full_like(shift, -std::numeric_limits<double>::infinity()));
    shift = g.b.select(dead, g.b.full_like(shift, 0), shift);
  }
  const ValueId e = g.b.exp(g.b.sub(s, over_rows(g, shift, shape, 2)));
  ValueId sum = g.b.reduce(Op::reduce_sum, e, {2});
  if (guarded) sum = g.b.select(dead, g.b.full_like(sum, 1), sum);
  ValueId p = g.b.div(e, over_rows(g, sum, shape, 2));
  // What else reads the weights keeps them in memory.
  if (g.random.chance(0.3)) keep(g, p);
  if (g.b.type(p).dtype != dtype) p = g.b.convert(p, dtype);
  keep(g, g.b.emit<Op::dot_general>(
              {p, v}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}, .dtype = sums}));
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
