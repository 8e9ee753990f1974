#include "passes/lower/matmul_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Rows of a tile register, and pairs of k that its instruction takes.
constexpr std::int64_t tile_register_rows = 16, tile_register_pairs = 16;

// Rows that blocks of a result with packed copies are a multiple of, and rows of a tile: few of them make such a multiple, and nearly as
// many as the registers hold.
constexpr std::int64_t kept_rows = 32, kept_tile_rows = 12;

// The least size of equal parts of at most `most`.
std::int64_t even_part(std::int64_t extent, std::int64_t most) { return ceil_div(extent, std::max<std::int64_t>(ceil_div(extent, most), 1)); }

// A longer k is summed in panels, for accuracy. Their depth is the same on every machine, since results depend on it.
constexpr std::int64_t max_running_k = 4096, summed_depth = block_chain;

bool contains(const Ints& list, std::int64_t x) { return std::find(list.begin(), list.end(), x) != list.end(); }

std::size_t position(const Ints& list, std::int64_t x) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), x) - list.begin());
}

}  // namespace

void MatmulLoops::split(std::size_t i, std::int64_t factor) {
  extents[i] /= factor;
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(i) + 1, factor);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]);
}

std::vector<std::size_t> MatmulLoops::of(Dim dim) const {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == dim) positions.push_back(i);
  return positions;
}

std::int64_t MatmulLoops::size(Dim dim) const {
  std::int64_t n = 1;
  for (std::size_t i : of(dim)) n *= extents[i];
  return n;
}

bool plan_matmul(const Function& body, MatmulPlan* plan) {
  *plan = {};
  body.for_each_op([&](OpId op) {
    if (body.kind(op) != Op::dot_general) return;
    BURIN_CHECK(!plan->dot.valid(), "two dots in one fusion");
    plan->dot = op;
  });
  if (!plan->dot.valid()) return false;
  const auto a = body.attrs<Op::dot_general>(plan->dot);
  plan->lhs = body.operand(plan->dot, 0);
  plan->rhs = body.operand(plan->dot, 1);
  plan->result = body.result(plan->dot);
  const Type &lhs = body.type(plan->lhs), &rhs = body.type(plan->rhs);
  if (!is_float(a.dtype)) return false;
  plan->compute = a.dtype == DType::f64 || lhs.dtype == DType::f64 ? DType::f64 : DType::f32;
  for (std::int64_t axis : a.lhs_batch) plan->batch.push_back(lhs.shape[static_cast<std::size_t>(axis)]);
  for (std::int64_t axis : a.lhs_contract) plan->k.push_back(lhs.shape[static_cast<std::size_t>(axis)]);
  const auto classify = [&](const Type& type, const Ints& batch, const Ints& contract, Dim free, Shape* free_shape) {
    std::vector<std::pair<Dim, std::size_t>> axes;
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(type.rank()); ++axis) {
      if (contains(batch, axis)) {
        axes.emplace_back(Dim::batch, position(batch, axis));
      } else if (contains(contract, axis)) {
        axes.emplace_back(Dim::k, position(contract, axis));
      } else {
        axes.emplace_back(free, free_shape->rank());
        free_shape->push_back(type.shape[static_cast<std::size_t>(axis)]);
      }
    }
    return axes;
  };
  plan->lhs_axes = classify(lhs, a.lhs_batch, a.lhs_contract, Dim::m, &plan->m);
  plan->rhs_axes = classify(rhs, a.rhs_batch, a.rhs_contract, Dim::n, &plan->n);
  if (plan->n.size() == 1 && plan->m.size() > 1) {  // the result lies the same way
    std::swap(plan->lhs, plan->rhs);
    std::swap(plan->lhs_axes, plan->rhs_axes);
    std::swap(plan->m, plan->n);
    for (auto* axes : {&plan->lhs_axes, &plan->rhs_axes})
      for (auto& [dim, at] : *axes)
        if (dim == Dim::m || dim == Dim::n) dim = dim == Dim::m ? Dim::n : Dim::m;
  }
  return true;
}

MatmulLoops initial_loops(const MatmulPlan& plan) {
  return {{plan.batch.size(), plan.m.size(), plan.n.size(), plan.k.size()}, {Dim::batch, Dim::m, Dim::n, Dim::k}};
}

bool multiplies_pairs(const Function& body, const MatmulPlan& plan, const MatmulLoops& loops, const Target& target) {
  const bool bf16_only = plan.compute == DType::f32 && body.type(plan.lhs).dtype == DType::bf16 &&
                         body.type(plan.rhs).dtype == DType::bf16;
  return bf16_only && target.multiplies_bf16_pairs() && loops.inner(Dim::m) >= 8 &&
         loops.inner(Dim::n) >= 8;
}

MatmulTiles choose_tiles(const MatmulLoops& loops, DType compute, const Target& target, bool pairs, bool keeps) {
  MatmulTiles t;
  t.unit = pairs ? 2 : 1;
  t.lanes = native_lanes(target) / (compute == DType::f64 ? 2 : 1);
  const std::int64_t m = loops.inner(Dim::m), n = loops.inner(Dim::n), k = loops.inner(Dim::k);
  const bool on_tiles = pairs && target.multiplies_tiles();
  // Accumulators, one row of B vectors and a splat of A fit the registers.
  const std::int64_t registers = target.vector_registers() - 2;
  const std::int64_t most_vectors = std::max<std::int64_t>(1, ceil_div(n, t.lanes));
  std::int64_t vectors = std::min<std::int64_t>(most_vectors, m <= 4 ? 4 : 2);
  const std::int64_t most_rows_held = (registers - vectors) / vectors;
  std::int64_t rows = keeps && m > most_rows_held && most_rows_held >= kept_tile_rows ? kept_tile_rows : even_part(m, most_rows_held);
  if (on_tiles) {  // eight registers: two of either factor, and the products of them
    t.row_piece = keeps ? std::min(m, tile_register_rows) : even_part(m, tile_register_rows);
    rows = std::min<std::int64_t>(ceil_div(m, t.row_piece), 2) * t.row_piece;
  }
  t.rows = std::max<std::int64_t>(rows, 1);
  t.columns = vectors * t.lanes;
  t.row_tiles = m / t.rows;
  t.rest_rows = m % t.rows;
  t.column_tiles = n / t.columns;
  t.rest_columns = n % t.columns;
  // Kc x Nr of B in 0.8 of L1, or in two thirds beside tiles, whose rows of A come as fast; a block of A in half of L2; blocks of about 2 MFLOP, so that tasks even out.
  const std::int64_t size = static_cast<std::int64_t>(pairs ? size_of(DType::bf16) : size_of(compute));
  t.sums_panels = compute == DType::f32 && loops.size(Dim::k) > max_running_k;
  // Of k alone: results depend on where blocks begin, and must not on the caches. Panels are of whole blocks.
  if (on_tiles) t.block = even_part(t.steps(t.sums_panels ? std::min(k, summed_depth) : std::max<std::int64_t>(k, 1)), tile_register_pairs);
  const std::int64_t panel_bytes = on_tiles ? target.l1_bytes * 2 / 3 : target.l1_bytes * 8 / 10;
  const std::int64_t panel = std::max<std::int64_t>(panel_bytes / (t.columns * size), 64);
  const std::int64_t whole = t.unit * std::max<std::int64_t>(t.block, 1);
  t.depth = k <= panel * 3 / 2 ? std::max<std::int64_t>(k, 1) : ceil_div(ceil_div(k, ceil_div(k, panel)), whole) * whole;
  if (t.sums_panels) t.depth = std::min(k, summed_depth);
  const std::int64_t all_rows = t.all_row_tiles(), all_columns = t.all_column_tiles();
  const double batches = static_cast<double>(loops.size(Dim::batch)), all_m = static_cast<double>(loops.size(Dim::m)),
               all_n = static_cast<double>(loops.size(Dim::n)), all_k = static_cast<double>(loops.size(Dim::k));
  // What no cache holds waits for memory: a byte takes as long as about eight operations.
  const double flops = 2 * batches * all_m * all_n * all_k;
  const double bytes = batches * (all_m * all_k + all_k * all_n + all_m * all_n) * static_cast<double>(size);
  const double total = bytes > static_cast<double>(target.l2_bytes) ? std::max(flops, 8 * bytes) : flops;
  const double tile_work = 2.0 * static_cast<double>(t.rows * t.columns) * all_k * (total / std::max(flops, 1.0));
  // About 48 tasks where the work allows, each of 2 to 32 MFLOP; of less where the caches are small.
  // A block reads its sides once for all of a long k, so it is no smaller than what takes long to compute of them, in 24 tasks at least.
  const double even = std::clamp(total / 48, std::min(2e6, 2.0 * static_cast<double>(target.l2_bytes)), 32e6);
  const double per_task = total / 48 > even ? std::max(even, std::min(total / 24, 2.0 * 96 * 96 * all_k)) : even;
  const double tiles_per_task = std::max(1.0, per_task / std::max(tile_work, 1.0));
  const std::int64_t most_rows = target.l2_bytes / 2 / (t.rows * t.depth * size);
  // Squarish in elements.
  const double side = std::sqrt(tiles_per_task * static_cast<double>(t.rows * t.columns));
  const auto tiles_of = [](double elements, std::int64_t tile) {
    return static_cast<std::int64_t>(elements / static_cast<double>(tile) + 0.5);
  };
  std::int64_t row_block =
      std::clamp<std::int64_t>(tiles_of(side, t.rows), 1, std::max<std::int64_t>(std::min(all_rows, most_rows), 1));
  // Two blocks of rows would each pack the other side, or read it, all of it.
  if (!pairs && row_block < all_rows && all_rows <= std::min(2 * row_block, most_rows)) row_block = all_rows;
  std::int64_t column_block =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(tiles_per_task / static_cast<double>(row_block) + 0.5), 1,
                               std::max<std::int64_t>(all_columns, 1));
  column_block = std::min<std::int64_t>(column_block, 512 / t.columns);
  t.row_blocks = std::max<std::int64_t>(ceil_div(all_rows, row_block), 1);
  t.column_blocks = std::max<std::int64_t>(ceil_div(all_columns, column_block), 1);
  const std::int64_t whole_rows = keeps ? kept_rows / std::gcd(kept_rows, t.rows) : 1;
  t.row_block = std::max<std::int64_t>(ceil_div(all_rows, t.row_blocks), 1);
  t.row_block = std::min(ceil_div(t.row_block, whole_rows) * whole_rows, std::max<std::int64_t>(all_rows, 1));
  t.column_block = std::max<std::int64_t>(ceil_div(all_columns, t.column_blocks), 1);
  t.row_blocks = std::max<std::int64_t>(ceil_div(all_rows, t.row_block), 1);
  t.column_blocks = std::max<std::int64_t>(ceil_div(all_columns, t.column_block), 1);
  return t;
}

Index operand_index(const Shape& operand, const std::vector<std::pair<Dim, std::size_t>>& axes, const MatmulPlan& plan,
                    const std::vector<Affine>& flat_by_dim, ElementEmitter& emitter) {
  // Neighbouring axes of one class in its own order count as one axis: their flat expression needs no splitting.
  const Shape* shapes[] = {&plan.batch, &plan.m, &plan.n, &plan.k};
  struct Group {
    Dim dim;
    std::size_t first, last;
    std::int64_t extent, stride;
  };
  std::vector<Group> groups;
  std::int64_t stride = 1;
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    const auto [dim, at] = axes[axis];
    const std::int64_t extent = operand[axis];
    if (!groups.empty() && groups.back().dim == dim && groups.back().first == at + 1) {
      groups.back().first = at;
      groups.back().extent *= extent;
    } else {
      groups.push_back({dim, at, at, extent, stride});
    }
    stride *= extent;
  }
  Affine offset;
  for (const Group& group : groups) {
    const Shape& shape = *shapes[static_cast<int>(group.dim)];
    // The class as (before, this group, after): before and after vanish when the group is the whole class.
    std::int64_t before = 1, after = 1;
    for (std::size_t i = 0; i < group.first; ++i) before *= shape[i];
    for (std::size_t i = group.last + 1; i < shape.rank(); ++i) after *= shape[i];
    const std::vector<Affine> parts = emitter.dims(
        Index::of_flat(Shape{before, group.extent, after}, flat_by_dim[static_cast<std::size_t>(group.dim)]));
    offset = offset + parts[1] * group.stride;
  }
  return Index::of_flat(operand, offset);
}

bool is_moved_argument(const Function& body, ValueId v) {
  while (!body.is_arg(v) && is_movement(body.kind(body.def(v)))) v = body.operand(body.def(v), 0);
  return body.is_arg(v);
}

std::optional<Place> find_place(const Function& body, ValueId v, const Index& at, ElementEmitter& emitter) {
  if (body.is_arg(v)) {
    const auto args = body.args();
    return Place{static_cast<std::size_t>(std::find(args.begin(), args.end(), v) - args.begin()), emitter.flat(at)};
  }
  const OpId op = body.def(v);
  if (!is_movement(body.kind(op))) return std::nullopt;
  return find_place(body, body.operand(op, 0), emitter.move_index(op, at), emitter);
}

std::optional<Place> find_largest_place(const Function& body, ValueId v, const Index& at, ElementEmitter& emitter) {
  std::vector<bool> seen(body.num_values(), false);
  const auto find = [&](const auto& self, ValueId value, const Index& index) -> std::optional<Place> {
    if (is_moved_argument(body, value))
      return body.type(value).size() >= body.type(v).size() ? find_place(body, value, index, emitter) : std::nullopt;
    if (seen[value.index]) return std::nullopt;
    seen[value.index] = true;
    const OpId op = body.def(value);
    const bool moved = is_movement(body.kind(op));
    if (!moved && family_of(body.kind(op)) != Family::elementwise) return std::nullopt;
    for (ValueId operand : body.operands(op))
      if (auto place = self(self, operand, moved ? emitter.move_index(op, index) : index)) return place;
    return std::nullopt;
  };
  return find(find, v, at);
}

}  // namespace burin::passes::lower
