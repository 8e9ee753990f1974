#include "passes/lower/nest.h"

#include <algorithm>

#include "base/check.h"
#include "ir/approximated.h"

namespace burin::passes::lower {
namespace {

std::int64_t product(const std::vector<std::int64_t>& extents, std::size_t from) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < extents.size(); ++i) n *= extents[i];
  return n;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t Nest::size() const { return product(extents, 0); }

void Nest::split(std::size_t i, std::int64_t factor) {
  extents[i] /= factor;
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(i) + 1, factor);
}

Affine NestVars::flat() const {
  Affine offset;
  std::int64_t stride = 1;
  for (std::size_t i = vars.size(); i-- > 0;) {
    if (extents[i] != 1) offset = offset + Affine(vars[i], stride);
    stride *= extents[i];
  }
  return offset;
}

void open_nest(BlockBuilder& b, IndexSpace& space, const Nest& nest, const std::vector<std::size_t>& numbers, std::int64_t grain, std::int64_t lanes,
               const std::function<void(const NestVars&)>& body, const TaskFrame& frame) {
  const auto& extents = nest.extents;
  NestVars all;
  all.extents = extents;
  const auto number = [&](std::size_t i) { return i < numbers.size() ? numbers[i] : IndexSpace::fixed; };
  const auto declare = [&](VarId var, std::size_t i) {
    space.set_loop(var, number(i));
    all.vars.push_back(var);
  };
  const std::size_t n = extents.size();
  const auto loop_kind = [&](std::size_t i) {
    return i + 1 == n && lanes > 1 ? LoopKind::vector : LoopKind::serial;
  };
  const auto width = [&](std::size_t i) { return loop_kind(i) == LoopKind::vector ? lanes : 1; };
  std::function<void(std::size_t)> open = [&](std::size_t i) {
    if (i == n) return body(all);
    b.loop("", 0, {Affine(extents[i])}, loop_kind(i), width(i), [&](VarId var) {
      declare(var, i);
      open(i + 1);
    });
  };
  const auto framed = [&](const auto& loops) {
    if (frame.before) frame.before();
    loops();
    if (frame.after) frame.after();
  };
  if (grain == 0) return framed([&] { open(0); });
  BURIN_CHECK(nest.size() > 0, "tasks for a nest without elements");

  // Loops before `cut` are the grid; loop `cut` is shared out in blocks.
  std::size_t cut = 0;
  while (product(extents, cut + 1) > grain) ++cut;
  const std::int64_t inner = product(extents, cut + 1);
  const std::int64_t step = cut + 1 == n ? lanes : 1;
  std::int64_t block = grain / inner;
  const std::int64_t blocks = ceil_div(extents[cut], block);
  block = ceil_div(ceil_div(extents[cut], blocks), step) * step;  // even shares
  const std::int64_t count = ceil_div(extents[cut], block);
  for (std::size_t i = 0; i < cut; ++i) declare(b.task("", extents[i]), i);
  if (count == 1) return framed([&] { open(cut); });
  const VarId task = b.task("t", count);
  std::vector<Affine> bounds = {Affine(block)};
  if (extents[cut] % block != 0) bounds.push_back(Affine(extents[cut]) - Affine(task, block));
  framed([&] {
    b.loop("", 0, bounds, loop_kind(cut), width(cut), [&](VarId var) {
      // Indices are computed with one variable over the whole extent, which stands for block * task + position.
      all.vars.push_back(space.stand_for(Affine(task, block) + Affine(var), extents[cut], number(cut)));
      open(cut + 1);
    });
  });
}

std::int64_t chain_of(const Nest& nest, std::int64_t lanes) {
  return nest.size() == 0 ? 0 : nest.size() / nest.extents.back() * ceil_div(nest.extents.back(), lanes);
}

void open_blocks(BlockBuilder& b, IndexSpace& space, const Nest& nest, const std::vector<std::size_t>& numbers, std::int64_t chain, std::int64_t lanes,
                 const std::function<void(const NestVars&)>& body, const TaskFrame& frame) {
  // Loop `cut` is the one whose iterations are shared out among blocks: those inside it fit one.
  const auto inside = [&](std::size_t i) {
    return i == nest.extents.size() ? std::int64_t{1} : chain_of(Nest({nest.extents.begin() + static_cast<std::ptrdiff_t>(i), nest.extents.end()}), lanes);
  };
  const std::size_t n = nest.extents.size();
  std::size_t cut = 0;
  while (inside(cut + 1) > chain) ++cut;
  const std::int64_t extent = nest.extents[cut];
  const std::int64_t block = chain / inside(cut + 1) * (cut + 1 == n ? lanes : 1);
  NestVars all;
  all.extents = nest.extents;
  const auto number = [&](std::size_t i) { return i < numbers.size() ? numbers[i] : IndexSpace::fixed; };
  const auto loop = [&](std::size_t i, std::vector<Affine> bounds, const std::function<void(VarId)>& f) {
    const bool vector = i + 1 == n && lanes > 1;
    b.loop("", 0, std::move(bounds), vector ? LoopKind::vector : LoopKind::serial, vector ? lanes : 1, f);
  };
  std::function<void(std::size_t)> open = [&](std::size_t i) {
    if (i == n) return body(all);
    if (i != cut) {
      return loop(i, {Affine(nest.extents[i])}, [&](VarId var) {
        space.set_loop(var, number(i));
        all.vars.push_back(var);
        open(i + 1);
      });
    }
    const std::int64_t blocks = ceil_div(extent, block);
    b.loop("", 0, {Affine(blocks)}, LoopKind::serial, 1, [&](VarId outer) {
      std::vector<Affine> bounds = {Affine(block)};
      if (extent % block != 0) bounds.push_back(Affine(extent) - Affine(outer, block));
      frame.before();
      loop(i, std::move(bounds), [&](VarId inner) {
        all.vars.push_back(space.stand_for(Affine(outer, block) + Affine(inner), extent, number(i)));
        open(i + 1);
      });
      frame.after();
    });
  };
  open(0);
}

bool is_movement(Op op) {
  return op == Op::reshape || op == Op::transpose || op == Op::broadcast || op == Op::slice || op == Op::reverse;
}

bool is_expensive(Op op) {
  if (op == Op::rsqrt) return false;  // a square root and a division
  return is_approximated(op) || op == Op::rem || op == Op::threefry2x32;
}

double element_cost(const Function& body, const Target& target) {
  const double per_vector = 16.0 / static_cast<double>(native_lanes(target));
  double cost = 0.05 * static_cast<double>(body.args().size() + body.results().size());
  body.for_each_op([&](OpId op) {
    const Op kind = body.kind(op);
    cost += is_expensive(kind) ? 0.5 : kind == Op::gather ? 0.5 : kind == Op::div || kind == Op::sqrt ? 0.15 : 0.03;
  });
  return cost * per_vector;
}

}  // namespace burin::passes::lower
