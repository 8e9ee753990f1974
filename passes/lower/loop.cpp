// The loop lowering: every result element on its own, the innermost loop in vectors.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "passes/lower/lower.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

LoweredKernel emit_loop(const Function& body, const Target& target, const InPlace& in_place, const Nest& nest) {
  LoweredKernel done;
  Kernel& kernel = done.kernel;
  kernel.name = body.name();
  const Parameters parameters = add_parameters(done, body, in_place);
  const std::vector<BufferId>& outs = parameters.results;

  BlockBuilder b(kernel);
  IndexSpace space(b);
  ElementEmitter emitter(body, b, space, parameters.args);
  const std::int64_t lanes = std::min<std::int64_t>(native_lanes(target), 16);
  std::vector<std::size_t> numbers(nest.extents.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  if (nest.size() > 0)
    open_nest(b, space, nest, numbers, task_grain, lanes, [&](const NestVars& vars) {
      const Affine flat = vars.flat();
      for (std::size_t i = 0; i < outs.size(); ++i) {
        const Shape& shape = body.type(body.results()[i]).shape;
        const Index at = Index::of_flat(shape, flat);
        emitter.store(outs[i], at, emitter.emit(body.results()[i], at));
      }
    });
  kernel.cost = element_cost(body, target) * static_cast<double>(nest.size());
  return done;
}

// Rows and columns of a task's block where packed copies are updated: whole tiles of them.
constexpr std::int64_t kept_rows = 32, kept_columns = task_grain / kept_rows;

AxisBlocks shared_out(std::int64_t total, std::int64_t size) {
  const std::int64_t count = (total + size - 1) / size;
  return {Affine(0), count == 1 ? total : size, count, total};
}

bool is_plain(const Function& body, std::int64_t size) {
  bool plain = true;
  body.for_each_op([&](OpId op) {
    const Op kind = body.kind(op);
    const Family family = family_of(kind);
    const bool repeats = kind == Op::broadcast && body.type(body.operand(op, 0)).size() == 1;
    const bool same = family == Family::elementwise || family == Family::compare || kind == Op::constant || kind == Op::reshape;
    plain = plain && (repeats || same);
  });
  for (ValueId arg : body.args()) plain = plain && (body.type(arg).size() == size || body.type(arg).size() == 1);
  return plain;
}

// Every element on its own, in blocks of rows and columns of the matrices whose packed copies are updated with them.
std::optional<LoweredKernel> emit_blocks(const Function& body, const Target& target, const InPlace& in_place, std::span<const KeptPack> kept) {
  AxisBlocks rows = shared_out(kept[0].matrix.rows, kept_rows), columns = shared_out(kept[0].matrix.columns, kept_columns);
  if (!is_plain(body, rows.total * columns.total)) return std::nullopt;
  for (const KeptPack& k : kept)
    if (!blocks_fit(k.matrix, rows, columns)) return std::nullopt;
  LoweredKernel done;
  Kernel& kernel = done.kernel;
  kernel.name = body.name();
  const Parameters parameters = add_parameters(done, body, in_place);
  std::vector<BufferId> packed;
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    done.params.push_back({Param::kept, i});
    packed.push_back(add_packed(kernel, kept[i].matrix));
  }
  std::map<std::uint32_t, BufferId> halves;
  for (const KeptPack& k : kept)
    if (!halves.contains(k.result)) halves[k.result] = add_half(kernel, rows, columns);

  BlockBuilder b(kernel);
  IndexSpace space(b);
  ElementEmitter emitter(body, b, space, parameters.args);
  const std::int64_t lanes = std::min<std::int64_t>(native_lanes(target), 16);
  for (AxisBlocks* axis : {&rows, &columns})
    if (axis->count > 1) axis->block = Affine(b.task("t", axis->count));
  const auto over = [&](const AxisBlocks& axis, LoopKind kind, const std::function<void(const Affine& local, const Affine& whole)>& f) {
    std::vector<Affine> bounds = {Affine(axis.size)};
    if (axis.count * axis.size > axis.total) bounds.push_back(Affine(axis.total) - axis.block * axis.size);
    b.loop("", 0, bounds, kind, kind == LoopKind::vector ? lanes : 1, [&](VarId var) {
      f(Affine(var), Affine(space.stand_for(axis.block * axis.size + Affine(var), axis.total)));
    });
  };
  over(rows, LoopKind::serial, [&](const Affine& row, const Affine& whole_row) {
    over(columns, LoopKind::vector, [&](const Affine& column, const Affine& whole_column) {
      for (std::uint32_t i = 0; i < body.results().size(); ++i) {
        const ValueId result = body.results()[i];
        const Index at = Index::of_flat(body.type(result).shape, whole_row * columns.total + whole_column);
        const ScalarId value = emitter.emit(result, at);
        emitter.store(parameters.results[i], at, value);
        if (const auto half = halves.find(i); half != halves.end())
          b.store(half->second, {row * half_stride(columns) + column}, as_half(b, value, body.type(result).dtype));
      }
    });
  });
  for (std::size_t i = 0; i < kept.size(); ++i) store_packed(b, lanes, kept[i].matrix, halves.at(kept[i].result), packed[i], rows, columns);
  kernel.cost = element_cost(body, target) * static_cast<double>(rows.total * columns.total);
  return done;
}

}  // namespace

Lowering lower_loop(const Function& body, const Target& target, const InPlace& in_place, std::span<const KeptPack> kept) {
  BURIN_CHECK(!body.results().empty());
  const std::int64_t size = body.type(body.results()[0]).size();
  for (ValueId result : body.results()) BURIN_CHECK(body.type(result).size() == size, "results of different sizes in one loop");
  if (!kept.empty() && size > 0)
    if (std::optional<LoweredKernel> done = emit_blocks(body, target, in_place, kept)) {
      Lowering lowering;
      lowering.kernels.push_back(std::move(*done));
      lowering.keeps = true;
      return lowering;
    }
  Nest nest({size});
  for (;;) {
    try {
      return {{emit_loop(body, target, in_place, nest)}, {}};
    } catch (const NeedSplit& need) {
      BURIN_CHECK(need.loop < nest.extents.size());
      nest.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
