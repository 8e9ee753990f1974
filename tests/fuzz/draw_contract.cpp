#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

// A dtype that sums of products of `operand` may have.
DType dot_result(Random& random, DType operand) {
  if (random.chance(0.75)) return operand;
  if (is_half(operand)) return random.chance(0.7) ? f32 : f64;
  switch (operand) {
    case f32:
      return f64;
    case i8:
      return random.chance(0.5) ? i32 : i64;
    case u8:
      return random.chance(0.5) ? u32 : i32;
    case i32:
      return i64;
    default:
      return operand;
  }
}

struct Axis {
  std::int64_t extent;
  int role;  // 0 batch, 1 contracted, 2 free
};

// The axes in a random order, and where those of each role stand, in the order of `axes`.
Shape arranged(Random& random, const std::vector<Axis>& axes, Ints& batch, Ints& contract) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < axes.size(); ++i) order.push_back(i);
  if (random.chance(0.7)) random.shuffle(order);
  Shape shape;
  std::vector<Int> place(axes.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    shape.push_back(axes[order[at]].extent);
    place[order[at]] = static_cast<Int>(at);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].role == 0) batch.push_back(place[i]);
    if (axes[i].role == 1) contract.push_back(place[i]);
  }
  return shape;
}

}  // namespace

bool draw_dot(Generator& g) {
  Random& random = g.random;
  std::vector<Axis> shared;
  const std::int64_t batches = random.chance(0.7) ? 0 : random.between(1, 2),
                     contracted = random.chance(0.85) ? 1 : random.between(0, 2);
  for (std::int64_t i = 0; i < batches; ++i) shared.push_back({g.extent(), 0});
  for (std::int64_t i = 0; i < contracted; ++i) shared.push_back({g.extent(), 1});
  std::vector<Axis> lhs = shared, rhs = shared;
  for (std::int64_t i = random.chance(0.8) ? 1 : random.between(0, 2); i > 0; --i) lhs.push_back({g.extent(), 2});
  for (std::int64_t i = random.chance(0.8) ? 1 : random.between(0, 2); i > 0; --i) rhs.push_back({g.extent(), 2});
  attrs::dot_general a;
  const Shape left = arranged(random, lhs, a.lhs_batch, a.lhs_contract),
              right = arranged(random, rhs, a.rhs_batch, a.rhs_contract);
  if (left.size() > g.recipe.max_elements || right.size() > g.recipe.max_elements) return false;
  static const std::vector<DType> others = {f32, f64, bf16, f16, i32, i8, u8, i64, bool_};
  DType operand = g.dtype();
  if (random.chance(0.1)) operand = random.pick(others);
  a.dtype = dot_result(random, operand);
  const ValueId x = g.of_type({operand, left});
  return g.append_as<Op::dot_general>({x, random.chance(0.1) && left == right ? x : g.of_type({operand, right})}, a);
}

}  // namespace burin::fuzz
