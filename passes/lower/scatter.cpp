// The scatter lowering of anything but rows. Updates meet an element in row-major order of the updates, always: a task owns a stripe of the axes that
// every window covers whole, fills it from the operand, walks all updates, and applies what follows elementwise.
#include <algorithm>

#include "base/check.h"
#include "passes/lower/scatter.h"

namespace burin::passes::lower {

DType combining_dtype(Combine combine, DType dtype) { return combine == Combine::add || combine == Combine::mul ? accumulator_dtype(dtype) : dtype; }

ScalarId combined(BlockBuilder& b, Combine combine, ScalarId old, ScalarId update, DType dtype) {
  switch (combine) {
    case Combine::add: return b.let(Op::add, {old, update}, dtype);
    case Combine::mul: return b.let(Op::mul, {old, update}, dtype);
    case Combine::min: return b.let(Op::min, {old, update}, dtype);
    case Combine::max: return b.let(Op::max, {old, update}, dtype);
    case Combine::set: break;
  }
  return update;
}

void store_results(ElementEmitter& emitter, const Function& body, ValueId scattered, const Index& index, std::span<const BufferId> results, BufferId built,
                   const std::function<ScalarId()>& load) {
  const Affine flat = emitter.flat(index);
  emitter.set_hook([&](ValueId v, const Index& where) -> std::optional<ScalarId> {
    if (v != scattered) return std::nullopt;
    BURIN_CHECK(emitter.flat(where) == flat, "an epilogue that reads another element of the scatter");
    return load();
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] == built) continue;
    const ValueId v = body.results()[i];
    // A reshaped result has other axes; the place in memory is the same.
    const Shape& shape = body.type(v).shape;
    const Index mine = shape == body.type(scattered).shape ? index : Index::of_flat(shape, flat);
    emitter.store(results[i], mine, emitter.emit(v, mine));
  }
  emitter.set_hook(nullptr);
}

namespace {

bool contains(const Ints& list, std::size_t x) {
  return std::find(list.begin(), list.end(), static_cast<std::int64_t>(x)) != list.end();
}

}  // namespace

Lowering lower_scatter(const Function& body, const Target& target, const InPlace& in_place) {
  OpId scatter;
  body.for_each_op([&](OpId op) {
    if (body.kind(op) == Op::scatter) scatter = op;
  });
  BURIN_CHECK(scatter.valid(), "not a scatter fusion");
  if (auto by_rows = lower_scatter_of_rows(body, scatter, target, in_place)) return std::move(*by_rows);
  const auto a = body.attrs<Op::scatter>(scatter);
  const ValueId operand = body.operand(scatter, 0), indices = body.operand(scatter, 1), updates = body.operand(scatter, 2);
  const ValueId value = body.result(scatter);
  const Type type = body.type(operand), update_type = body.type(updates);
  const Shape& index_shape = body.type(indices).shape;
  const DType wide = combining_dtype(a.combine, type.dtype);

  // Window axis of the updates for each operand axis that has one.
  std::vector<std::int64_t> window_axis(type.rank(), -1);
  std::size_t next_window = 0;
  for (std::size_t axis = 0; axis < type.rank(); ++axis)
    if (!contains(a.inserted_window_dims, axis) && !contains(a.operand_batching_dims, axis))
      window_axis[axis] = a.update_window_dims[next_window++];
  const auto window_extent = [&](std::size_t axis) {
    return window_axis[axis] < 0 ? std::int64_t{1} : update_type.shape[static_cast<std::size_t>(window_axis[axis])];
  };
  // The innermost axis can be shared out when windows cover it whole and start at 0 by definition.
  const std::size_t last = type.rank() - 1;
  const bool striped = type.rank() > 0 && window_axis[last] >= 0 && window_extent(last) == type.shape[last] &&
                       !contains(a.scatter_dims_to_operand_dims, last);

  Lowering done;
  LoweredKernel lowered;
  Kernel& kernel = lowered.kernel;
  kernel.name = body.name();
  const auto [args, results] = add_parameters(lowered, body, in_place);
  // Sums build up in the result itself, or in a buffer of their own when they are wider or not wanted.
  BufferId sums;
  bool own_sums = true;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (body.results()[i] == value && wide == type.dtype && (in_place.empty() || in_place[i] < 0)) {
      sums = results[i];
      own_sums = false;
    }
  if (own_sums) {
    done.temps.push_back({wide, type.shape});
    lowered.params.push_back({Param::temp, 0});
    sums = kernel.add_buffer({.name = "sums", .dtype = wide, .shape = Shape{type.size()}, .strides = {1}, .space = Space::out});
  }

  BlockBuilder b(kernel);
  IndexSpace space(b);
  ElementEmitter emitter(body, b, space, args);
  const std::int64_t lanes = striped ? native_lanes(target) : 1;
  const std::int64_t row = type.rank() == 0 ? 1 : type.shape[last];
  Affine stripe;  // first position on the innermost axis
  std::vector<Affine> bounds = {Affine(row)};
  if (striped) {
    const std::int64_t width = std::max(2 * lanes, (row / 16 + lanes - 1) / lanes * lanes), count = (row + width - 1) / width;
    if (count > 1) {
      stripe = Affine(b.task("t", count), width);
      bounds = {Affine(width)};
      if (row % width != 0) bounds.push_back(Affine(row) - stripe);
    }
  }
  // f(position of every axis) over the given extents, the innermost axis within the stripe.
  const auto over = [&](const std::vector<std::int64_t>& extents, bool vector, const std::function<void(const std::vector<Affine>&)>& f) {
    std::vector<Affine> at;
    const std::function<void(std::size_t)> open = [&](std::size_t i) {
      if (i == extents.size()) {
        emitter.enter();
        f(at);
        return emitter.leave();
      }
      const bool innermost = vector && i + 1 == extents.size();
      b.loop("", 0, innermost ? bounds : std::vector<Affine>{Affine(extents[i])}, innermost && lanes > 1 ? LoopKind::vector : LoopKind::serial,
             innermost ? lanes : 1, [&](VarId var) {
               at.emplace_back(innermost ? space.stand_for(stripe + Affine(var), extents[i]) : var);
               open(i + 1);
               at.pop_back();
             });
    };
    open(0);
  };
  const std::vector<std::int64_t> extents(type.shape.begin(), type.shape.end());
  if (type.size() > 0) {
    over(extents, true, [&](const std::vector<Affine>& at) {
      const Index index = Index::of_dims(type.shape, at);
      ScalarId start = emitter.emit(operand, index);
      if (wide != type.dtype) start = b.let(Op::convert, {start}, wide);
      emitter.store(sums, index, start);
    });
    // In row-major order, but for the stripe: updates at different places of it never meet, so it may be the innermost.
    std::vector<std::int64_t> walk;
    std::vector<std::size_t> walk_axis;
    const std::int64_t innermost = striped ? window_axis[last] : -1;
    for (std::size_t axis = 0; axis < update_type.rank(); ++axis)
      if (static_cast<std::int64_t>(axis) != innermost) walk_axis.push_back(axis);
    if (striped) walk_axis.push_back(static_cast<std::size_t>(innermost));
    for (std::size_t axis : walk_axis) walk.push_back(update_type.shape[axis]);
    if (update_type.size() > 0)
      over(walk, striped, [&](const std::vector<Affine>& walked) {
        std::vector<Affine> at(update_type.rank()), batch;
        for (std::size_t i = 0; i < walk_axis.size(); ++i) at[walk_axis[i]] = walked[i];
        for (std::size_t axis = 0; axis < at.size(); ++axis)
          if (!contains(a.update_window_dims, axis)) batch.push_back(at[axis]);
        std::vector<Affine> to(type.rank());
        for (std::size_t axis = 0; axis < type.rank(); ++axis)
          if (window_axis[axis] >= 0) to[axis] = at[static_cast<std::size_t>(window_axis[axis])];
        const auto vector_dim = static_cast<std::size_t>(a.index_vector_dim);
        for (std::size_t k = 0; k < a.operand_batching_dims.size(); ++k) {
          const auto axis = static_cast<std::size_t>(a.indices_batching_dims[k]);
          to[static_cast<std::size_t>(a.operand_batching_dims[k])] = batch[axis > vector_dim ? axis - 1 : axis];
        }
        ScalarId fits;
        for (std::size_t k = 0; k < a.scatter_dims_to_operand_dims.size(); ++k) {
          std::vector<Affine> where = batch;
          if (vector_dim < index_shape.rank())
            where.insert(where.begin() + static_cast<std::ptrdiff_t>(vector_dim), Affine(static_cast<std::int64_t>(k)));
          const ScalarId start = emitter.emit(indices, Index::of_dims(index_shape, where));
          const auto axis = static_cast<std::size_t>(a.scatter_dims_to_operand_dims[k]);
          const std::int64_t reach = type.shape[axis] - window_extent(axis) + 1;
          const VarId var = emitter.bind(start, reach, a.mode, scatter, static_cast<std::int64_t>(axis));
          to[axis] = to[axis] + Affine(var);
          // A window that does not fit is dropped: the clamped place keeps what it has.
          const DType dtype = body.type(indices).dtype;
          const ScalarId wanted = b.let(Op::convert, {start}, DType::i64);
          const ScalarId one = b.let(Op::eq, {dtype == DType::i64 ? start : wanted, b.index(Affine(var), DType::i64)}, DType::bool_);
          fits = fits.valid() ? b.let(Op::bit_and, {fits, one}, DType::bool_) : one;
        }
        ScalarId update = emitter.emit(updates, Index::of_dims(update_type.shape, at));
        if (wide != type.dtype) update = b.let(Op::convert, {update}, wide);
        const std::vector<Affine> place = {space.resolve(emitter.flat(Index::of_dims(type.shape, to)))};
        const ScalarId old = b.load(sums, place);
        ScalarId fresh = combined(b, a.combine, old, update, wide);
        if (fits.valid()) fresh = b.let(Op::select, {fits, fresh, old}, wide);
        b.store(sums, place, fresh);
      });
    over(extents, true, [&](const std::vector<Affine>& at) {
      const Index index = Index::of_dims(type.shape, at);
      store_results(emitter, body, value, index, results, sums, [&] {
        const ScalarId sum = b.load(sums, {space.resolve(emitter.flat(index))});
        return wide == type.dtype ? sum : b.let(Op::convert, {sum}, type.dtype);
      });
    });
  }
  kernel.cost = 0.1 * static_cast<double>(type.size() + 2 * update_type.size());
  done.kernels.push_back(std::move(lowered));
  return done;
}

Lowering lower_fusion(std::string_view kind, const Function& body, const Target& target, const InPlace& in_place,
                      std::span<const KeptPack> kept) {
  if (kind == "loop") return lower_loop(body, target, in_place, kept);
  if (kind == "rows") return lower_rows(body, target, in_place);
  if (kind == "matmul") return lower_matmul(body, target, in_place, kept);
  if (kind == "attention") return lower_attention(body, target);
  BURIN_CHECK(kind == "scatter", "unknown kind of fusion " + std::string(kind));
  return lower_scatter(body, target, in_place);
}

}  // namespace burin::passes::lower
