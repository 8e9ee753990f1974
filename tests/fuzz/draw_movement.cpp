#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

// Factors of n in some order: a shape with n elements.
Ints factored(Random& random, std::int64_t n, std::size_t max_rank) {
  Ints shape;
  std::int64_t rest = n;
  while (rest > 1 && shape.size() + 1 < max_rank && random.chance(0.7)) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 2; d <= rest && d < 200; ++d)
      if (rest % d == 0) divisors.push_back(d);
    if (divisors.empty()) break;
    shape.push_back(random.pick(divisors));
    rest /= shape.back();
  }
  if (rest != 1 || (shape.empty() && random.chance(0.5))) shape.push_back(rest);
  if (shape.size() < max_rank && random.chance(0.25)) shape.push_back(1);
  random.shuffle(shape);
  return shape;
}

bool draw_reshape(Generator& g) {
  const ValueId x = g.any();
  const Shape& have = g.b.type(x).shape;
  Ints shape = factored(g.random, have.size(), 5);
  if (have.rank() >= 2 && g.random.chance(0.4)) {  // two neighbours become one, or one grows an axis of extent 1
    shape.assign(have.begin(), have.end());
    const auto axis = static_cast<std::size_t>(g.random.below(static_cast<std::int64_t>(have.rank()) - 1));
    if (g.random.chance(0.6)) {
      shape[axis] *= shape[axis + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    } else {
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
    }
  }
  return g.append_as<Op::reshape>({x}, {.shape = shape});
}

bool draw_broadcast(Generator& g) {
  const ValueId x = g.any();
  const Type type = g.b.type(x);
  if (type.rank() >= 5) return false;
  const std::size_t rank = type.rank() + static_cast<std::size_t>(g.random.between(type.rank() == 0 ? 1 : 0, 2));
  const Ints dims = g.sorted(g.axes(rank, type.rank()));
  Ints shape;
  for (std::size_t axis = 0, next = 0; axis < rank; ++axis) {
    const bool given = next < dims.size() && dims[next] == static_cast<Int>(axis);
    const Int from = given ? type.shape[next++] : 1;
    shape.push_back(from == 1 ? g.extent() : from);
  }
  return g.append_as<Op::broadcast>({x}, {.shape = shape, .dims = dims});
}

bool draw_slice(Generator& g) {
  const ValueId x = g.any_of_rank(1);
  attrs::slice a;
  for (Int n : g.b.type(x).shape) {
    const bool whole = g.random.chance(0.4);
    const Int start = whole ? 0 : g.random.between(0, n), limit = whole ? n : g.random.between(start, n);
    a.start.push_back(start);
    a.limit.push_back(limit);
    a.stride.push_back(g.random.chance(0.75) ? 1 : g.random.between(2, 4));
  }
  return g.append_as<Op::slice>({x}, a);
}

bool draw_pad(Generator& g) {
  const ValueId x = g.any_of_rank(1);
  const Type type = g.b.type(x);
  attrs::pad a;
  for (Int n : type.shape) {
    const bool none = g.random.chance(0.4);
    a.low.push_back(none ? 0 : g.random.between(g.random.chance(0.2) ? -std::min<Int>(n, 3) : 0, 4));
    a.high.push_back(none ? 0 : g.random.between(g.random.chance(0.2) ? -std::min<Int>(n, 3) : 0, 4));
    a.interior.push_back(none || g.random.chance(0.7) ? 0 : g.random.between(1, 3));
  }
  return g.append_as<Op::pad>({x, g.of_type({type.dtype, {}})}, a);
}

bool draw_concatenate(Generator& g) {
  const ValueId x = g.any_of_rank(1);
  Type type = g.b.type(x);
  const auto axis = static_cast<std::size_t>(g.random.below(static_cast<std::int64_t>(type.rank())));
  std::vector<ValueId> operands{x};
  const std::int64_t more = g.random.between(g.random.chance(0.1) ? 0 : 1, 3);
  for (std::int64_t i = 0; i < more; ++i) {
    if (g.random.chance(0.5)) type.shape[axis] = g.extent();
    if (type.size() > g.recipe.max_elements) return false;
    operands.push_back(g.of_type(type));
  }
  g.random.shuffle(operands);
  return g.append_as<Op::concatenate>(operands, {.axis = static_cast<Int>(axis)});
}

}  // namespace

bool draw_movement(Generator& g, Op op, bool* known) {
  switch (op) {
    case Op::reshape:
      return draw_reshape(g);
    case Op::broadcast:
      return draw_broadcast(g);
    case Op::slice:
      return draw_slice(g);
    case Op::pad:
      return draw_pad(g);
    case Op::concatenate:
      return draw_concatenate(g);
    case Op::transpose: {
      const ValueId x = g.any_of_rank(g.random.chance(0.9) ? 2 : 0);
      const std::size_t rank = g.b.type(x).rank();
      return g.append_as<Op::transpose>({x}, {.permutation = g.axes(rank, rank)});
    }
    case Op::reverse: {
      const ValueId x = g.any();
      return g.append_as<Op::reverse>({x}, {.axes = g.some_axes(g.b.type(x).rank())});
    }
    default:
      *known = false;
      return false;
  }
}

}  // namespace burin::fuzz
