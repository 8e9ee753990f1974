// Gathers, scatters and dynamic slices, with dimension numbers that fit; constants and iotas.
#include <algorithm>

#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

// How the axes of the indexed operand are shared out, for gather and scatter alike.
struct Dims {
  Ints batching, indices_batching, inserted, map, window_axes, slice_sizes;
  Ints batch_extents;  // of the indices, without the index vector
  Shape indices;
  Int vector_dim = 0;
};

Dims draw_dims(Generator& g, const Shape& operand) {
  Random& random = g.random;
  Dims d;
  Ints left = g.axes(operand.rank(), operand.rank());
  if (operand.rank() > 1 && random.chance(0.15)) {
    d.batching.push_back(left.back());
    left.pop_back();
  }
  const std::int64_t mapped = random.chance(0.75) ? 1 : random.between(0, static_cast<Int>(left.size()));
  for (std::int64_t i = 0; i < mapped; ++i) d.map.push_back(left[static_cast<std::size_t>(i)]);
  for (Int axis : left) {
    const bool is_mapped = std::find(d.map.begin(), d.map.end(), axis) != d.map.end();
    if (random.chance(is_mapped ? 0.75 : 0.1)) d.inserted.push_back(axis);
  }
  d.inserted = g.sorted(d.inserted);
  for (Int axis = 0; axis < static_cast<Int>(operand.rank()); ++axis) {
    const auto among = [&](const Ints& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
    const bool window = !among(d.inserted) && !among(d.batching);
    const Int n = operand[static_cast<std::size_t>(axis)];
    if (window) d.window_axes.push_back(axis);
    d.slice_sizes.push_back(!window                   ? 1
                            : !among(d.map) || n == 0 ? (random.chance(0.8) ? n : random.between(0, n))
                                                      : random.between(1, std::min<Int>(n, 4)));
  }
  // The indices: batching axes and free ones in any order, the index vector anywhere, or nowhere when it has one
  // element.
  struct Axis {
    Int extent;
    int batching;  // position in d.batching, or -1
  };
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < d.batching.size(); ++i)
    axes.push_back({operand[static_cast<std::size_t>(d.batching[i])], static_cast<int>(i)});
  const std::int64_t free = random.chance(0.75) ? 1 : random.between(0, 2);
  for (std::int64_t i = 0; i < free; ++i) axes.push_back({g.extent(), -1});
  random.shuffle(axes);
  const bool implicit = d.map.size() == 1 && random.chance(0.5);
  d.vector_dim = implicit ? static_cast<Int>(axes.size()) : random.between(0, static_cast<Int>(axes.size()));
  d.indices_batching.resize(d.batching.size());
  for (std::size_t i = 0; i <= axes.size(); ++i) {
    if (static_cast<Int>(i) == d.vector_dim && !implicit) d.indices.push_back(static_cast<Int>(d.map.size()));
    if (i == axes.size()) break;
    if (axes[i].batching >= 0)
      d.indices_batching[static_cast<std::size_t>(axes[i].batching)] = static_cast<Int>(d.indices.rank());
    d.indices.push_back(axes[i].extent);
    d.batch_extents.push_back(axes[i].extent);
  }
  return d;
}

IndexMode draw_mode(Random& random) { return random.chance(0.75) ? IndexMode::clip : IndexMode::error; }

bool draw_gather(Generator& g) {
  const ValueId x = g.any_of_rank(1);
  const Dims d = draw_dims(g, g.b.type(x).shape);
  const std::size_t rank = d.window_axes.size() + d.batch_extents.size();
  const Ints offsets = g.sorted(g.axes(rank, d.window_axes.size()));
  if (d.indices.size() > g.recipe.max_elements) return false;
  return g.append_as<Op::gather>({x, g.integer(d.indices)}, {.offset_dims = offsets,
                                                             .collapsed_slice_dims = d.inserted,
                                                             .operand_batching_dims = d.batching,
                                                             .indices_batching_dims = d.indices_batching,
                                                             .start_index_map = d.map,
                                                             .index_vector_dim = d.vector_dim,
                                                             .slice_sizes = d.slice_sizes,
                                                             .mode = draw_mode(g.random)});
}

bool draw_scatter(Generator& g) {
  const ValueId x = g.any_of_rank(1);
  const Type type = g.b.type(x);
  const Dims d = draw_dims(g, type.shape);
  const std::size_t rank = d.window_axes.size() + d.batch_extents.size();
  if (rank > 6 || d.indices.size() > g.recipe.max_elements) return false;
  const Ints window = g.sorted(g.axes(rank, d.window_axes.size()));
  Shape updates;
  std::size_t w = 0, n = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const bool in_window = std::find(window.begin(), window.end(), static_cast<Int>(axis)) != window.end();
    updates.push_back(in_window ? d.slice_sizes[static_cast<std::size_t>(d.window_axes[w++])] : d.batch_extents[n++]);
  }
  if (updates.size() > g.recipe.max_elements) return false;
  static const std::vector<Combine> combines = {Combine::add, Combine::add, Combine::set, Combine::set,
                                                Combine::mul, Combine::min, Combine::max};
  return g.append_as<Op::scatter>({x, g.integer(d.indices), g.of_type({type.dtype, updates})},
                                  {.update_window_dims = window,
                                   .inserted_window_dims = d.inserted,
                                   .operand_batching_dims = d.batching,
                                   .indices_batching_dims = d.indices_batching,
                                   .scatter_dims_to_operand_dims = d.map,
                                   .index_vector_dim = d.vector_dim,
                                   .combine = g.random.pick(combines),
                                   .mode = draw_mode(g.random)});
}

Ints window_sizes(Generator& g, const Shape& shape) {
  Ints sizes;
  for (Int n : shape) sizes.push_back(g.random.chance(0.4) ? n : g.random.between(0, n));
  return sizes;
}

bool draw_dynamic(Generator& g, Op op) {
  const ValueId x = g.any_of_rank(1);
  const Type type = g.b.type(x);
  const Ints sizes = window_sizes(g, type.shape);
  std::vector<ValueId> operands{x};
  if (op == Op::dynamic_update_slice) operands.push_back(g.of_type({type.dtype, Shape(sizes)}));
  for (std::size_t i = 0; i < type.rank(); ++i) operands.push_back(g.integer({}));
  return op == Op::dynamic_slice ? g.append_as<Op::dynamic_slice>(operands, {.sizes = sizes})
                                 : g.append(op, operands, {});
}

}  // namespace

bool draw_index(Generator& g, Op op, bool* known) {
  switch (op) {
    case Op::gather:
      return draw_gather(g);
    case Op::scatter:
      return draw_scatter(g);
    case Op::dynamic_slice:
    case Op::dynamic_update_slice:
      return draw_dynamic(g, op);
    case Op::constant: {
      const Type type{g.dtype(), g.shape()};
      return g.append_as<Op::constant>({}, {.value = draw_constant(g.random, type)});
    }
    case Op::iota: {
      const Type type{g.random.chance(0.5) ? g.dtype() : g.integer_dtype(), g.shape()};
      if (type.rank() == 0 || type.dtype == bool_) return false;
      return g.append_as<Op::iota>({}, {.dtype = type.dtype,
                                        .shape = Ints(type.shape.begin(), type.shape.end()),
                                        .axis = g.random.below(static_cast<Int>(type.rank()))});
    }
    default:
      *known = false;
      return false;
  }
}

}  // namespace burin::fuzz
