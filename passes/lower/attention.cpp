// The attention lowering. A task holds a block of positions along the fixed axis and walks over tiles of the moving
// one; the scores of a tile are products in scratch, what is made of them is computed on the tile and multiplied or
// summed there, so that no value of the whole domain exists. Softmax in one walk: Milakov and Gimelshein, "Online
// normalizer calculation for softmax" (2018); with the second product and the recomputation for derivatives: Dao et
// al., "FlashAttention" (2022). Tiles lie as [moving][fixed], lanes run along the fixed axis: a row's maximum and sum
// need no sum across lanes.
#include <algorithm>

#include "base/check.h"
#include "passes/lower/attention_emitter.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

constexpr std::int64_t tile_positions = 64;
// On both axes of tile instructions, whose products are cheap beside the packing of their factors, once both axes have
// so many that what is hidden in a tile half seen does not matter.
constexpr std::int64_t large_tile_positions = 128, many_positions = 1024;

// Every element is a bf16, whatever the dtype.
bool holds_bf16(const Function& body, ValueId v) {
  while (body.type(v).dtype != DType::bf16) {
    const OpId op = body.def(v);
    if (!op.valid()) return false;
    switch (body.kind(op)) {
      case Op::convert:
      case Op::reshape:
      case Op::transpose:
      case Op::broadcast:
        v = body.operand(op, 0);
        break;
      default:
        return false;
    }
    if (!is_float(body.type(v).dtype) || body.type(v).dtype == DType::f64) return false;
  }
  return true;
}

// Rows of a register of the target's tiles, and pairs of each.
constexpr std::int64_t tile_register_size = 16;

}  // namespace

AttentionTiles choose_tiles(const AttentionPlan& plan, const Target& target, bool multiplies_pairs) {
  AttentionTiles t;
  const std::int64_t fixed = plan.extents[plan.fixed], moving = plan.extents[plan.moving];
  t.lanes = native_lanes(target);
  // Sums in registers enough to hide the latency of a multiply-add, and half of the registers left for factors.
  t.rows = target.vector_registers() / 4;
  if (multiplies_pairs && target.multiplies_tiles()) t.block = tile_register_size;
  const std::int64_t positions =
      t.block != 0 && std::min(fixed, moving) >= many_positions ? large_tile_positions : tile_positions;
  t.fixed = std::min(positions, rounded_up(fixed, t.lanes));
  t.columns = t.fixed % (2 * t.lanes) == 0 ? 2 * t.lanes : t.lanes;
  t.moving = std::min(positions, rounded_up(moving, t.block == 0 ? t.rows : 2 * t.block));
  t.fixed_blocks = ceil_div(fixed, t.fixed);
  t.moving_blocks = ceil_div(moving, t.moving);
  return t;
}

Affine AttentionEmitter::at_axes(const Affine& in_plan) const {
  Affine sum(in_plan.constant);
  for (const auto& [var, coefficient] : in_plan.terms) sum = sum + at_[var.index] * coefficient;
  return sum;
}

Index AttentionEmitter::placed(const Index& in_plan) const {
  if (!in_plan.dims) return Index::of_flat(in_plan.shape, at_axes(*in_plan.flat));
  std::vector<Affine> dims;
  for (const Affine& a : *in_plan.dims) dims.push_back(at_axes(a));
  return Index::of_dims(in_plan.shape, std::move(dims));
}

void AttentionEmitter::stand_for(std::size_t axis, const Affine& expression) {
  at_[axis] = Affine(space_.stand_for(expression, plan_.extents[axis]));
}

void AttentionEmitter::declare_grid() {
  at_.assign(plan_.num_axes() + 1, Affine(0));
  for (std::size_t i = 0; i < grid_.size(); ++i) {
    const VarId var = b_.task("", grid_[i].extent);
    space_.set_loop(var, i);
    at_[grid_[i].axis] = at_[grid_[i].axis] * grid_[i].extent + Affine(var);
  }
  if (tiles_.fixed_blocks > 1) fixed_start_ = Affine(b_.task("t", tiles_.fixed_blocks), tiles_.fixed);
}

// The element of a factor at the current positions, the inner axis included.
Index AttentionEmitter::index_of(const Factor& factor) {
  const auto a = body_.attrs<Op::dot_general>(factor.dot);
  const Ints &batch = factor.side == 0 ? a.lhs_batch : a.rhs_batch,
             &contract = factor.side == 0 ? a.lhs_contract : a.rhs_contract;
  const Shape& shape = body_.type(value_of(factor)).shape;
  const auto position = [](const Ints& list, std::size_t axis) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), static_cast<std::int64_t>(axis)) -
                                    list.begin());
  };
  const Affine inner = factor.inner == 1 ? Affine(0) : at_[plan_.num_axes()];
  std::vector<Affine> dims;
  if (factor.of_score) {
    const std::vector<Affine> result = *placed(body_.result(factor.dot)).dims;
    std::size_t next = batch.size();
    if (factor.side == 1) next += body_.type(body_.operand(factor.dot, 0)).rank() - batch.size() - 1;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const std::size_t k = position(batch, axis);
      dims.push_back(k < batch.size() ? result[k] : position(contract, axis) == 0 ? inner : result[next++]);
    }
  } else {
    const std::vector<Affine> domain = *placed(body_.operand(factor.dot, 1 - factor.side)).dims;
    const Ints &its_batch = factor.side == 0 ? a.rhs_batch : a.lhs_batch,
               &its_contract = factor.side == 0 ? a.rhs_contract : a.lhs_contract;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const std::size_t k = position(batch, axis);
      if (k < batch.size())
        dims.push_back(domain[static_cast<std::size_t>(its_batch[k])]);
      else
        dims.push_back(position(contract, axis) == 0 ? domain[static_cast<std::size_t>(its_contract[0])] : inner);
    }
  }
  return Index::of_dims(shape, std::move(dims));
}

// Probed with variables that stand for whole axes: how the factor lies in memory, and whether it is there already.
std::size_t AttentionEmitter::add_factor(std::vector<Factor>& list, Factor factor, std::size_t axis) {
  const ValueId v = value_of(factor);
  const std::size_t before = b_.kernel().body.size();
  const Index at = index_of(factor);
  const auto place = find_place(body_, v, at, *emitter_);
  const bool divides = b_.kernel().body.size() > before;
  b_.kernel().body.resize(before);
  factor.source = place && !divides ? body_.args()[place->arg] : v;
  factor.offset = place && !divides ? place->offset : emitter_->flat(at);
  if (place && !divides) {
    const VarId inner = at_[plan_.num_axes()].terms[0].first, along = at_[axis].terms[0].first;
    factor.along_inner = factor.offset.coefficient(inner) == 1 || factor.offset.coefficient(along) != 1;
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].source == factor.source && list[i].offset == factor.offset && list[i].inner == factor.inner &&
        list[i].pairs == factor.pairs && (!factor.pairs || list[i].of_score == factor.of_score))
      return i;
  list.push_back(std::move(factor));
  return list.size() - 1;
}

void AttentionEmitter::make_buffers() {
  Kernel& kernel = b_.kernel();
  const auto scratch = [&](const std::string& name, std::int64_t rows, std::int64_t columns, bool pairs = false) {
    return kernel.add_buffer({.name = name,
                              .dtype = pairs ? DType::u32 : DType::f32,
                              .shape = Shape{rows, columns},
                              .strides = {columns, 1},
                              .space = Space::scratch});
  };
  const auto extent_of = [&](const Factor& f, bool contracted) {
    const auto a = body_.attrs<Op::dot_general>(f.dot);
    const Shape& shape = body_.type(value_of(f)).shape;
    const Ints &batch = f.side == 0 ? a.lhs_batch : a.rhs_batch,
               &contract = f.side == 0 ? a.lhs_contract : a.rhs_contract;
    if (contracted) return shape[static_cast<std::size_t>(contract[0])];
    std::size_t axis = 0;  // the one that is left: a product without it has fewer elements than its scores
    while (static_cast<std::int64_t>(axis) == contract[0] ||
           std::find(batch.begin(), batch.end(), static_cast<std::int64_t>(axis)) != batch.end())
      ++axis;
    BURIN_CHECK(axis < shape.rank(), "attention over a factor without an axis of its own");
    return shape[axis];
  };
  const std::vector<Affine> before = at_;
  for (std::size_t axis : {plan_.fixed, plan_.moving}) at_[axis] = Affine(b_.new_var("", plan_.extents[axis]));
  std::map<std::int64_t, VarId> inner_vars;  // by extent: equal factors are told by equal places
  const auto add = [&](OpId dot, std::size_t side, bool of_score, std::vector<Factor>& list, std::size_t axis) {
    Factor factor{.dot = dot,
                  .side = side,
                  .of_score = of_score,
                  .pairs = multiplies_pairs(dot) || (!of_score && multiplies_terms(dot))};
    factor.on_tiles = factor.pairs && tiles_.block != 0;
    factor.inner = extent_of(factor, of_score);
    const auto [inner, is_new] = inner_vars.try_emplace(factor.inner);
    if (is_new) inner->second = b_.new_var("", factor.inner);
    set_inner(Affine(inner->second));
    return add_factor(list, std::move(factor), axis);
  };
  for (std::size_t i = 0; i < plan_.scores.size(); ++i) {
    const std::size_t side = plan_.moving_side[i];
    moving_of_score_.push_back(add(plan_.scores[i], side, true, moving_, plan_.moving));
    fixed_of_score_.push_back(add(plan_.scores[i], 1 - side, true, fixed_, plan_.fixed));
    score_tiles_.push_back(scratch("scores" + std::to_string(i), tiles_.moving, tiles_.fixed));
  }
  for (OpId op : plan_.products) {
    const std::size_t side = domain_side(body_, plan_, op);
    products_.push_back({op, {}, add(op, 1 - side, false, moving_, plan_.moving)});
  }
  at_ = before;
  for (std::size_t i = 0; i < fixed_.size(); ++i)
    fixed_[i].buffer = scratch("fixed" + std::to_string(i), padded_steps(fixed_[i]), tiles_.fixed, fixed_[i].pairs);
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    const Factor& f = moving_[i];
    std::int64_t rows = tile_steps(f.pairs && !f.of_score), columns = rounded_up(padded_steps(f), tiles_.lanes);
    if (f.on_tiles && !f.of_score) std::swap(rows, columns);
    moving_[i].buffer = scratch("moving" + std::to_string(i), rows, columns, f.pairs);
  }
  // What products sum overwrites the scores, each element once it is read.
  if (plan_.maximum.valid()) logits_ = scratch("logits", tiles_.moving, tiles_.fixed);
  std::vector<BufferId> free = score_tiles_;
  for (Product& product : products_) {
    const ValueId summed = summed_value(body_, plan_, product.op);
    const bool pairs = moving_[product.factor].pairs;
    const PartForm form = !pairs ? PartForm::f32 : multiplies_terms(product.op) ? PartForm::terms : PartForm::pairs;
    const auto known = std::ranges::find_if(parts_, [&](const Part& p) { return p.value == summed && p.form == form; });
    product.part = static_cast<std::size_t>(known - parts_.begin());
    if (known == parts_.end()) {
      Part part{summed, form};
      if (pairs) {
        for (int term = 0; term < (form == PartForm::terms ? 3 : 1); ++term)
          part.buffers.push_back(
              scratch("part" + std::to_string(parts_.size()) + (term == 0 ? "" : "_" + std::to_string(term)),
                      tile_steps(true), tiles_.fixed, true));
      } else if (free.empty()) {
        part.buffers.push_back(scratch("part" + std::to_string(parts_.size()), tiles_.moving, tiles_.fixed));
      } else {
        part.buffers.push_back(free.front());
        free.erase(free.begin());
      }
      parts_.push_back(std::move(part));
    }
    const std::int64_t width = rounded_up(moving_[product.factor].inner, tiles_.lanes);
    product.sum = scratch("sum" + std::to_string(product.op.index), tiles_.fixed, width);
    if (moving_[product.factor].on_tiles)
      product.turned_sum = scratch("turned" + std::to_string(product.op.index), width, tiles_.fixed);
  }
  const auto row = [&](const std::string& name) {
    return kernel.add_buffer(
        {.name = name, .dtype = DType::f32, .shape = Shape{tiles_.fixed}, .strides = {1}, .space = Space::scratch});
  };
  for (OpId op : plan_.sums) row_sums_[op] = row("row" + std::to_string(op.index));
  if (plan_.maximum.valid()) {
    row_sums_[plan_.maximum] = row("maximum");
    rescale_ = row("rescale");
  }
}

BufferId AttentionEmitter::register_tile(std::int64_t rows, std::int64_t columns) {
  const auto [tile, is_new] = register_tiles_.try_emplace({rows, columns});
  if (is_new) {
    const std::string name = "tile" + std::to_string(rows) + "x" + std::to_string(columns);
    tile->second = b_.kernel().add_buffer({.name = name,
                                           .dtype = DType::f32,
                                           .shape = Shape{rows, columns},
                                           .strides = {columns, 1},
                                           .space = Space::tile});
  }
  return tile->second;
}

std::vector<Affine> AttentionEmitter::positions(std::size_t axis, std::int64_t block, const Affine& start) const {
  std::vector<Affine> bounds = {Affine(block)};
  if (plan_.extents[axis] % block != 0) bounds.push_back(Affine(plan_.extents[axis]) - start);
  return bounds;
}

// Two registers side by side where they fit: a row's maximum is a chain of its own in each.
void AttentionEmitter::over_fixed(LoopKind kind, const std::function<void(const Affine&)>& body) {
  b_.loop("f", 0, positions(plan_.fixed, tiles_.fixed, fixed_start_), kind,
          kind == LoopKind::vector ? tiles_.columns : 1, [&](VarId f) {
            emitter_->enter();
            stand_for(plan_.fixed, fixed_start_ + Affine(f));
            body(Affine(f));
            emitter_->leave();
          });
}

void AttentionEmitter::over_moving(const Affine& tile, const std::function<void(const Affine&)>& body) {
  b_.loop("m", 0, positions(plan_.moving, tiles_.moving, tile * tiles_.moving), LoopKind::serial, 1, [&](VarId m) {
    emitter_->enter();
    stand_for(plan_.moving, tile * tiles_.moving + Affine(m));
    body(Affine(m));
    emitter_->leave();
  });
}

void AttentionEmitter::at_moving(const Affine& tile, const Affine& m, const std::function<void()>& body) {
  emitter_->enter();
  stand_for(plan_.moving, tile * tiles_.moving + m);
  body();
  emitter_->leave();
}

void AttentionEmitter::over_moving_pairs(const Affine& tile,
                                         const std::function<void(const Affine&, std::int64_t)>& body) {
  const std::int64_t extent = plan_.extents[plan_.moving], half = tiles_.moving / 2;
  std::vector<Affine> bounds = {Affine(half)};
  if (extent % tiles_.moving != 0) bounds.push_back(Affine(extent / 2) - tile * half);
  b_.loop("m", 0, bounds, LoopKind::serial, 1, [&](VarId m) { body(Affine(m), 2); });
  if (extent % 2 == 0) return;
  const std::int64_t last = tiles_.moving_blocks - 1;
  b_.when({tile - Affine(last)}, [&] { body(Affine(extent / 2 - last * half), 1); });
}

bool AttentionEmitter::multiplies_pairs(OpId dot) const {
  return target_.multiplies_bf16_pairs() && body_.type(body_.operand(dot, 0)).dtype == DType::bf16 &&
         body_.type(body_.operand(dot, 1)).dtype == DType::bf16;
}

bool AttentionEmitter::multiplies_terms(OpId product) const {
  const std::size_t side = domain_side(body_, plan_, product);
  return target_.multiplies_tiles() && body_.type(body_.operand(product, side)).dtype == DType::f32 &&
         holds_bf16(body_, body_.operand(product, 1 - side));
}

bool AttentionEmitter::multiplies_pairs() const {
  const auto on_pairs = [&](OpId dot) { return multiplies_pairs(dot); };
  if (std::ranges::any_of(plan_.products, [&](OpId dot) { return multiplies_terms(dot); })) return true;
  return std::ranges::any_of(plan_.scores, on_pairs) || std::ranges::any_of(plan_.products, on_pairs);
}

std::int64_t AttentionEmitter::padded_steps(const Factor& f) const {
  return f.on_tiles && f.of_score ? rounded_up(inner_steps(f), tiles_.block) : inner_steps(f);
}

Lowering AttentionEmitter::run() {
  Kernel& kernel = main_.kernel;
  kernel.name = body_.name();
  Parameters parameters = add_parameters(main_, body_, {});
  args_ = std::move(parameters.args);
  results_ = std::move(parameters.results);
  emitter_.emplace(body_, b_, space_, args_);
  // A division takes as long as a dozen multiplications; a row has one divisor.
  emitter_->set_inverted([this](ValueId divisor, const Index& at) {
    const TileAxes axes = axes_of(divisor, at);
    return !axes.fixed || !axes.moving;
  });
  declare_grid();
  make_buffers();
  double pairs = 1, depth = 0;
  for (std::int64_t extent : plan_.extents) pairs *= static_cast<double>(extent);
  for (std::size_t i = 0; i < plan_.scores.size(); ++i)
    depth += static_cast<double>(moving_[moving_of_score_[i]].inner);
  for (const Product& product : products_) depth += static_cast<double>(moving_[product.factor].inner);
  kernel.cost = 2 * pairs * depth / 100 + element_cost(body_, target_) * pairs;
  emit_task();
  Lowering done;
  done.kernels.push_back(std::move(main_));
  return done;
}

Lowering lower_attention(const Function& body, const Target& target) {
  AttentionPlan plan;
  const std::string why = plan_attention(body, &plan);
  BURIN_CHECK(why.empty(), "not an attention fusion: " + why);
  std::vector<AttentionLoop> grid;
  for (std::size_t axis = 0; axis < plan.num_axes(); ++axis)
    if (axis != plan.fixed && axis != plan.moving) grid.push_back({axis, plan.extents[axis]});
  for (;;) {
    try {
      return AttentionEmitter(body, target, plan, grid).run();
    } catch (const NeedSplit& need) {
      BURIN_CHECK(need.loop < grid.size());
      AttentionLoop inner{grid[need.loop].axis, need.factor};
      grid[need.loop].extent /= need.factor;
      grid.insert(grid.begin() + static_cast<std::ptrdiff_t>(need.loop) + 1, inner);
    }
  }
}

}  // namespace burin::passes::lower
