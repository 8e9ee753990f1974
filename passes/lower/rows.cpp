// The rows lowering: as many passes over each row as its reductions depend on one another, column reductions as partials of
// each task combined in task order. Vectors run along the row where its last axis is the innermost one, else across rows.
#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "passes/lower/lower.h"
#include "passes/lower/nest.h"
#include "passes/lower/rows_plan.h"

namespace burin::passes::lower {
namespace {

// So many partials of column reductions are added up by straight-line code.
constexpr std::int64_t max_partials = 32;
constexpr std::int64_t max_saved_elements = 1 << 16;
// Of vectors side by side, for as many tasks; and elements of a row, below which a walk is over before strides tell.
constexpr std::int64_t min_wide_groups = 16, min_wide_row = 64;

Literal identity_of(Reduce reduce, DType dtype) {
  const auto extreme = [&](bool lowest) {
    Literal value = Literal::scalar_int(dtype, 0);
    with_element(dtype, [&]<class T>(T) {
      if constexpr (std::is_same_v<T, bool>)
        value.mutable_data<T>()[0] = !lowest;
      else if constexpr (std::is_integral_v<T>)
        value.mutable_data<T>()[0] = lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      else
        value.set(0, lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
    });
    return value;
  };
  switch (reduce) {
    case Reduce::sum:
    case Reduce::bit_or: return Literal::scalar_int(dtype, 0);
    case Reduce::prod: return Literal::scalar_int(dtype, 1);
    case Reduce::max: return extreme(true);
    case Reduce::min: return extreme(false);
    case Reduce::bit_and: return Literal::scalar_int(dtype, -1);
  }
  return {};
}

/// Loops over the domain in the order of its axes, each along the row or across rows.
struct DomainLoops {
  std::vector<std::int64_t> extents;
  std::vector<bool> along;

  explicit DomainLoops(const RowsPlan& plan) {
    for (std::size_t axis = 0; axis < plan.domain.rank(); ++axis) {
      const std::int64_t extent = plan.domain[axis];
      if (extent == 1) continue;
      if (!extents.empty() && along.back() == plan.along[axis]) {
        extents.back() *= extent;
      } else {
        extents.push_back(extent);
        along.push_back(plan.along[axis]);
      }
    }
  }
  void split(std::size_t i, std::int64_t factor) {
    extents[i] /= factor;
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(i) + 1, factor);
    along.insert(along.begin() + static_cast<std::ptrdiff_t>(i), along[i]);
  }
  /// The loops of one class; `numbers` are their positions here.
  Nest nest(bool rows, std::vector<std::size_t>* numbers) const {
    Nest result({});
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (along[i] == rows) {
        result.extents.push_back(extents[i]);
        numbers->push_back(i);
      }
    if (result.extents.empty()) {
      result.extents.push_back(1);
      numbers->push_back(IndexSpace::fixed);
    }
    return result;
  }
};

class RowsEmitter {
 public:
  RowsEmitter(const Function& body, const Target& target, const RowsPlan& plan, const DomainLoops& loops)
      : body_(body), target_(target), plan_(plan), loops_(loops) {}

  Lowering run();

 private:
  BufferId add_param(Kernel& kernel, std::vector<Param>& params, ValueId value, Space space, Param param);
  void emit_row();
  void emit_pass(std::uint32_t pass);
  void store_row_results();
  void accumulate_columns(std::uint32_t pass);
  void store_columns(ElementEmitter& emitter, const std::vector<BufferId>& results, const ElementEmitter::Hook& column_value);
  std::optional<ScalarId> given(ValueId v, const Index& at);
  Affine domain_flat() const;
  std::int64_t lanes_across(const Nest& across) const;
  std::int64_t lanes_along(std::uint32_t pass) const;
  bool lanes_along_rows() const { return !loops_.along.empty() && loops_.along.back(); }
  std::int64_t column_grain() const;
  DType column_dtype(OpId op) const;
  LoweredKernel combine_partials(std::int64_t num_partials, const std::vector<std::uint32_t>& temps);

  const Function& body_;
  const Target& target_;
  const RowsPlan& plan_;
  const DomainLoops& loops_;

  LoweredKernel main_;
  BlockBuilder b_{main_.kernel};
  IndexSpace space_{b_};
  std::optional<ElementEmitter> emitter_;
  std::vector<BufferId> results_;
  NestVars across_, along_;
  Nest along_nest_{{}};
  std::vector<std::size_t> across_numbers_, along_numbers_;
  bool in_row_ = false;
  std::uint32_t pass_ = 0;
  std::map<ValueId, ScalarId> finished_;          // row reductions, of the row that was emitted last
  std::vector<bool> is_saved_;                    // by value: of plan_.saved, and a row of it fits
  std::map<ValueId, BufferId> saved_buffers_;
  std::map<ValueId, std::uint32_t> saved_in_;     // the pass over the current row that stored it
  std::map<ValueId, ScalarId> saved_now_;          // stored to scratch in the current iteration
  std::vector<ValueId> saving_;                   // being emitted on behalf of given()
  std::int64_t saved_stride_ = 1;                  // elements between columns in scratch: one per lane across rows
  std::vector<BufferId> column_scratch_;
};

BufferId RowsEmitter::add_param(Kernel& kernel, std::vector<Param>& params, ValueId value, Space space, Param param) {
  const Type& type = body_.type(value);
  const std::string_view name = body_.value_name(value);
  params.push_back(param);
  return kernel.add_buffer(
      {.name = !name.empty() ? std::string(name)
                             : (param.kind == Param::arg ? "in" : "out") + std::to_string(param.index),
       .dtype = type.dtype, .shape = Shape{type.size()}, .strides = {1}, .space = space});
}

// Strides of all loops of the domain in its own order; the variables come from the two nests.
Affine RowsEmitter::domain_flat() const {
  Affine offset;
  std::int64_t stride = 1;
  std::size_t next_across = across_.vars.size(), next_along = along_.vars.size();
  for (std::size_t i = loops_.extents.size(); i-- > 0;) {
    const VarId var = loops_.along[i] ? along_.vars[--next_along] : across_.vars[--next_across];
    offset = offset + Affine(var, stride);
    stride *= loops_.extents[i];
  }
  return offset;
}

std::optional<ScalarId> RowsEmitter::given(ValueId v, const Index& at) {
  if (const auto found = finished_.find(v); found != finished_.end()) {
    return found->second;  // the plan has seen to it that rows meet themselves alone, however `at` spells this one
  }
  if (!is_saved_[v.index] || !in_row_ || std::find(saving_.begin(), saving_.end(), v) != saving_.end()) return std::nullopt;
  if (emitter_->flat(at) != domain_flat()) return std::nullopt;  // picked by an index: computed anew
  Affine where = along_.flat() * saved_stride_;
  if (saved_stride_ > 1) {
    // Lanes run across rows: the block's position inside the task.
    const VarId whole = across_.vars.back();
    Affine lane = space_.resolve(Affine(whole));
    Affine position(0);
    for (const auto& [var, coefficient] : lane.terms)
      if (coefficient == 1) position = position + Affine(var);
    where = where + position;
  }
  if (const auto now = saved_now_.find(v); now != saved_now_.end()) return now->second;
  // Not the plan but what has been stored decides: a pass may have read v at other elements alone, in another order say.
  const auto stored = saved_in_.find(v);
  if (stored != saved_in_.end() && stored->second < pass_)
    return b_.load(saved_buffers_.at(v), {space_.resolve(where)});
  saving_.push_back(v);
  const ScalarId scalar = emitter_->emit(v, at);
  saving_.pop_back();
  saved_now_[v] = scalar;
  if (pass_ + 1 == plan_.num_passes) return scalar;
  if (!saved_buffers_.contains(v))
    saved_buffers_[v] = main_.kernel.add_buffer({.name = "row" + std::to_string(saved_buffers_.size()),
                                                 .dtype = body_.type(v).dtype,
                                                 .shape = Shape{plan_.row_size * saved_stride_}, .strides = {1},
                                                 .space = Space::scratch});
  b_.store(saved_buffers_.at(v), {space_.resolve(where)}, scalar);
  saved_in_[v] = pass_;
  return scalar;
}

void RowsEmitter::emit_pass(std::uint32_t pass) {
  pass_ = pass;
  // Values of the whole row that are ready now are computed once, before the loop over its elements.
  if (plan_.num_rows != plan_.domain.size())
    body_.for_each_op([&](OpId op) {
      const ValueId v = body_.result(op);
      if (plan_.level[v.index] == RowLevel::row && plan_.ready[v.index] == pass && pass > 0 &&
          family_of(body_.kind(op)) == Family::elementwise)
        emitter_->emit(v, Index::of_flat(body_.type(v).shape, across_.flat()));
    });
  struct Running {
    OpId op;
    AccId acc;
    DType dtype;
    std::optional<AccId> total;  // of the blocks of a long sum, each in an f32 accumulator of its own
  };
  std::vector<Running> running;
  const std::int64_t lanes = lanes_along(pass);
  for (OpId op : plan_.row_reductions)
    if (plan_.ready[body_.operand(op, 0).index] == pass) {
      const Reduce reduce = reduction_of(body_.kind(op), body_.type(body_.result(op)).dtype);
      const DType dtype = accumulator_dtype(body_.type(body_.result(op)).dtype);
      if (accumulator_dtype(reduce, dtype, chain_of(along_nest_, lanes)) == dtype)
        running.push_back({op, b_.acc(reduce, dtype, lanes), dtype, std::nullopt});
      else
        running.push_back({op, {}, dtype, b_.acc(reduce, DType::f64, 1)});
    }
  const auto element_of_row = [&](const NestVars& vars) {
    along_ = vars;
    emitter_->enter();
    in_row_ = true;
    saved_now_.clear();
    const Affine flat = domain_flat();
    const auto element = [&](ValueId v) { return emitter_->emit(v, Index::of_flat(body_.type(v).shape, flat)); };
    for (const Running& r : running) {
      ScalarId value = element(body_.operand(r.op, 0));
      if (r.dtype != body_.type(body_.operand(r.op, 0)).dtype) value = b_.let(Op::convert, {value}, r.dtype);
      b_.accumulate(r.acc, value);
    }
    accumulate_columns(pass);
    for (std::size_t i = 0; i < body_.results().size(); ++i) {
      const ValueId v = body_.results()[i];
      if (plan_.level[v.index] == RowLevel::element && plan_.ready[v.index] == pass)
        emitter_->store(results_[i], Index::of_flat(body_.type(v).shape, flat), element(v));
    }
    in_row_ = false;
    emitter_->leave();
  };
  TaskFrame block;
  block.before = [&] {
    for (Running& r : running)
      if (r.total) r.acc = b_.acc(Reduce::sum, r.dtype, lanes);
  };
  block.after = [&] {
    for (const Running& r : running)
      if (r.total) b_.accumulate(*r.total, b_.let(Op::convert, {b_.finish(r.acc, r.dtype)}, DType::f64));
  };
  if (std::any_of(running.begin(), running.end(), [](const Running& r) { return r.total.has_value(); }))
    open_blocks(b_, space_, along_nest_, along_numbers_, block_chain, lanes, element_of_row, block);
  else
    open_nest(b_, space_, along_nest_, along_numbers_, 0, lanes, element_of_row);
  for (const Running& r : running) {
    ScalarId value = b_.finish(r.total.value_or(r.acc), r.dtype);
    const DType dtype = body_.type(body_.result(r.op)).dtype;
    if (dtype != r.dtype) value = b_.let(Op::convert, {value}, dtype);
    finished_[body_.result(r.op)] = value;
  }
}

void RowsEmitter::accumulate_columns(std::uint32_t pass) {
  for (std::size_t k = 0; k < plan_.column_reductions.size(); ++k) {
    const OpId op = plan_.column_reductions[k];
    const ValueId input = body_.operand(op, 0);
    if (plan_.ready[input.index] != pass) continue;
    const DType dtype = column_dtype(op);
    ScalarId value = emitter_->emit(input, Index::of_flat(plan_.domain, domain_flat()));
    if (dtype != body_.type(input).dtype) value = b_.let(Op::convert, {value}, dtype);
    const std::vector<Affine> where = {space_.resolve(along_.flat())};
    const ScalarId sum = b_.load(column_scratch_[k], where);
    b_.store(column_scratch_[k], where,
             b_.let(combining_op(reduction_of(body_.kind(op), dtype)), {sum, value}, dtype));
  }
}

void RowsEmitter::store_row_results() {
  pass_ = plan_.num_passes;
  for (std::size_t i = 0; i < body_.results().size(); ++i) {
    const ValueId v = body_.results()[i];
    if (plan_.level[v.index] != RowLevel::row) continue;
    const Index at = Index::of_flat(body_.type(v).shape, across_.flat());
    emitter_->store(results_[i], at, emitter_->emit(v, at));
  }
}

void RowsEmitter::emit_row() {
  emitter_->enter();
  saved_in_.clear();
  for (std::uint32_t pass = 0; pass < plan_.num_passes; ++pass) emit_pass(pass);
  store_row_results();
  emitter_->leave();
}

// Rows per task: the grain, but of column reductions no more tasks than there are partials in straight-line code, unless a
// task's sums would be long ones.
std::int64_t RowsEmitter::column_grain() const {
  const std::int64_t rows = std::max<std::int64_t>(1, task_grain / std::max<std::int64_t>(plan_.row_size, 1));
  if (plan_.column_reductions.empty()) return rows;
  return std::max(rows, std::min((plan_.num_rows + max_partials - 1) / max_partials, max_chain));
}

// Of a column reduction while it runs in a task.
DType RowsEmitter::column_dtype(OpId op) const {
  const DType dtype = body_.type(body_.result(op)).dtype;
  return accumulator_dtype(reduction_of(body_.kind(op), dtype), dtype, std::min(column_grain(), plan_.num_rows));
}

void RowsEmitter::store_columns(ElementEmitter& emitter, const std::vector<BufferId>& results,
                                const ElementEmitter::Hook& column_value) {
  emitter.set_hook(column_value);
  std::size_t next = 0;
  Nest nest({plan_.row_size});
  open_nest(emitter.builder(), emitter.space(), nest, {}, 0, native_lanes(target_), [&](const NestVars& vars) {
    emitter.enter();
    for (ValueId v : body_.results()) {
      if (plan_.level[v.index] != RowLevel::column) continue;
      const Index at = Index::of_flat(body_.type(v).shape, vars.flat());
      emitter.store(results[next++], at, emitter.emit(v, at));
    }
    emitter.leave();
  });
}

LoweredKernel RowsEmitter::combine_partials(std::int64_t num_partials, const std::vector<std::uint32_t>& temps) {
  LoweredKernel combine;
  combine.kernel.name = body_.name() + "_columns";
  BlockBuilder b(combine.kernel);
  IndexSpace space(b);
  std::vector<BufferId> args, partials, results;
  for (std::uint32_t i = 0; i < body_.args().size(); ++i)
    args.push_back(add_param(combine.kernel, combine.params, body_.args()[i], Space::in, {Param::arg, i}));
  for (std::size_t k = 0; k < temps.size(); ++k) {
    combine.params.push_back({Param::temp, temps[k]});
    partials.push_back(combine.kernel.add_buffer(
        {.name = "partial" + std::to_string(k),
         .dtype = column_dtype(plan_.column_reductions[k]),
         .shape = Shape{num_partials * plan_.row_size}, .strides = {1}, .space = Space::in}));
  }
  for (std::uint32_t i = 0; i < body_.results().size(); ++i)
    if (plan_.level[body_.results()[i].index] == RowLevel::column)
      results.push_back(add_param(combine.kernel, combine.params, body_.results()[i], Space::out, {Param::result, i}));
  ElementEmitter emitter(body_, b, space, args);
  store_columns(emitter, results, [&](ValueId v, const Index& at) -> std::optional<ScalarId> {
    for (std::size_t k = 0; k < plan_.column_reductions.size(); ++k) {
      const OpId op = plan_.column_reductions[k];
      if (body_.result(op) != v) continue;
      const DType dtype = body_.type(v).dtype, wide = column_dtype(op);
      const Affine column = emitter.flat(at);
      const Reduce reduce = reduction_of(body_.kind(op), dtype);
      if (num_partials > 2 * max_partials) {
        const DType running = accumulator_dtype(reduce, wide, plan_.num_rows);
        const AccId acc = b.acc(reduce, running, 1);
        b.loop("", 0, {Affine(num_partials)}, LoopKind::serial, 1, [&](VarId t) {
          const ScalarId partial = b.load(partials[k], {column + Affine(t, plan_.row_size)});
          b.accumulate(acc, running == wide ? partial : b.let(Op::convert, {partial}, running));
        });
        return b.finish(acc, dtype);
      }
      ScalarId sum = b.load(partials[k], {column});
      for (std::int64_t t = 1; t < num_partials; ++t)
        sum = b.let(combining_op(reduce), {sum, b.load(partials[k], {column + Affine(t * plan_.row_size)})}, wide);
      return dtype == wide ? sum : b.let(Op::convert, {sum}, dtype);
    }
    return std::nullopt;
  });
  combine.kernel.cost = 0.05 * static_cast<double>(num_partials * plan_.row_size);
  return combine;
}

// Rows that lie across memory are walked in strides of it: several vectors side by side make more of each page and line that is met. Only
// where there are tasks enough, and nothing takes many registers.
std::int64_t RowsEmitter::lanes_across(const Nest& across) const {
  const std::int64_t native = native_lanes(target_), wide = 4 * native;
  bool cheap = true;
  body_.for_each_op([&](OpId op) { cheap = cheap && !is_expensive(body_.kind(op)); });
  return cheap && plan_.row_size >= min_wide_row && !across.extents.empty() && across.extents.back() >= min_wide_groups * wide ? wide : native;
}

// A pass that only looks for the greatest element waits for each comparison before the next, unless several vectors have one of their own. The
// order does not matter to it; sums have theirs.
std::int64_t RowsEmitter::lanes_along(std::uint32_t pass) const {
  if (!lanes_along_rows()) return 1;
  const std::int64_t native = native_lanes(target_), wide = 4 * native;
  if (along_nest_.extents.back() < min_wide_groups * wide) return native;
  const auto is_of_pass = [&](OpId op) { return plan_.ready[body_.operand(op, 0).index] == pass; };
  const auto keeps_order = [&](OpId op) {
    const Reduce reduce = reduction_of(body_.kind(op), body_.type(body_.result(op)).dtype);
    return (reduce == Reduce::sum || reduce == Reduce::prod) && is_float(body_.type(body_.result(op)).dtype);
  };
  bool reduces = false, cheap = true;
  for (OpId op : plan_.row_reductions) {
    reduces = reduces || is_of_pass(op);
    if (is_of_pass(op) && keeps_order(op)) return native;
  }
  body_.for_each_op([&](OpId op) {
    const ValueId v = body_.result(op);
    if (plan_.level[v.index] == RowLevel::element && plan_.ready[v.index] == pass) cheap = cheap && !is_expensive(body_.kind(op));
  });
  return reduces && cheap && std::ranges::none_of(plan_.column_reductions, is_of_pass) ? wide : native;
}

Lowering RowsEmitter::run() {
  Lowering done;
  Kernel& kernel = main_.kernel;
  kernel.name = body_.name();
  std::vector<BufferId> args;
  for (std::uint32_t i = 0; i < body_.args().size(); ++i)
    args.push_back(add_param(kernel, main_.params, body_.args()[i], Space::in, {Param::arg, i}));
  const Nest across = loops_.nest(false, &across_numbers_);
  along_nest_ = loops_.nest(true, &along_numbers_);
  const std::int64_t lanes = lanes_along_rows() ? 1 : lanes_across(across);

  // How many tasks there will be decides whether column results are finished here or from partials.
  std::int64_t num_tasks = 1;
  if (!plan_.column_reductions.empty()) {
    Kernel probe;
    BlockBuilder pb(probe);
    IndexSpace ps(pb);
    open_nest(pb, ps, across, {}, column_grain(), lanes, [](const NestVars&) {});
    num_tasks = probe.num_tasks();
  }
  const bool partials = num_tasks > 1 && !plan_.column_reductions.empty();
  std::vector<std::uint32_t> temps;
  std::vector<BufferId> partial_buffers, column_results;
  for (std::uint32_t i = 0; i < body_.results().size(); ++i) {
    const ValueId v = body_.results()[i];
    const bool column = plan_.level[v.index] == RowLevel::column;
    results_.push_back(column && partials ? BufferId{} : add_param(kernel, main_.params, v, Space::out, {Param::result, i}));
    if (column && !partials) column_results.push_back(results_.back());
  }
  for (OpId op : plan_.column_reductions) {
    if (!partials) break;
    const DType dtype = column_dtype(op);
    temps.push_back(static_cast<std::uint32_t>(done.temps.size()));
    done.temps.push_back({dtype, Shape{num_tasks * plan_.row_size}});
    main_.params.push_back({Param::temp, temps.back()});
    partial_buffers.push_back(kernel.add_buffer({.name = "partial" + std::to_string(partial_buffers.size()), .dtype = dtype,
                                                 .shape = Shape{num_tasks * plan_.row_size}, .strides = {1}, .space = Space::out}));
  }
  saved_stride_ = lanes_along_rows() ? 1 : std::min(column_grain(), plan_.num_rows) + lanes;
  is_saved_.assign(body_.num_values(), false);
  for (ValueId v : plan_.saved) is_saved_[v.index] = plan_.row_size * saved_stride_ <= max_saved_elements;  // else computed again
  for (OpId op : plan_.column_reductions)
    column_scratch_.push_back(kernel.add_buffer({.name = "column" + std::to_string(column_scratch_.size()),
                                                 .dtype = column_dtype(op),
                                                 .shape = Shape{plan_.row_size}, .strides = {1}, .space = Space::scratch}));
  emitter_.emplace(body_, b_, space_, args);
  const ElementEmitter::Hook hook = [&](ValueId v, const Index& at) { return given(v, at); };
  emitter_->set_hook(hook);

  const auto over_columns = [&](const auto& f) {
    b_.loop("", 0, {Affine(plan_.row_size)}, LoopKind::vector, native_lanes(target_), [&](VarId var) {
      f(Affine(var));
    });
  };
  TaskFrame frame;
  frame.before = [&] {
    for (std::size_t k = 0; k < column_scratch_.size(); ++k) {
      const OpId op = plan_.column_reductions[k];
      const DType dtype = column_dtype(op);
      over_columns([&](const Affine& column) {
        b_.store(column_scratch_[k], {column}, b_.constant(identity_of(reduction_of(body_.kind(op), dtype), dtype)));
      });
    }
  };
  frame.after = [&] {
    if (partials) {
      Affine task;
      for (const auto& [var, extent] : kernel.tasks) task = task * extent + Affine(var);
      for (std::size_t k = 0; k < column_scratch_.size(); ++k)
        over_columns([&](const Affine& column) {
          b_.store(partial_buffers[k], {task * plan_.row_size + column}, b_.load(column_scratch_[k], {column}));
        });
    } else if (!column_scratch_.empty()) {
      store_columns(*emitter_, column_results, [&](ValueId v, const Index& at) -> std::optional<ScalarId> {
        for (std::size_t k = 0; k < plan_.column_reductions.size(); ++k)
          if (body_.result(plan_.column_reductions[k]) == v) {
            const ScalarId sum = b_.load(column_scratch_[k], {emitter_->flat(at)});
            const DType dtype = body_.type(v).dtype;
            return column_dtype(plan_.column_reductions[k]) == dtype ? sum : b_.let(Op::convert, {sum}, dtype);
          }
        return std::nullopt;
      });
    }
  };
  open_nest(b_, space_, across, across_numbers_, column_grain(), lanes,
            [&](const NestVars& vars) {
              across_ = vars;
              emit_row();
            },
            frame);
  kernel.cost = element_cost(body_, target_) * static_cast<double>(plan_.domain.size());
  done.kernels.push_back(std::move(main_));
  if (partials) done.kernels.push_back(combine_partials(num_tasks, temps));
  return done;
}

}  // namespace

Lowering lower_rows(const Function& body, const Target& target, const InPlace& in_place) {
  BURIN_CHECK(std::all_of(in_place.begin(), in_place.end(), [](std::int32_t arg) { return arg < 0; }));
  RowsPlan plan;
  BURIN_CHECK(plan_rows(body, &plan), "not a rows fusion");
  DomainLoops loops(plan);
  for (;;) {
    try {
      return RowsEmitter(body, target, plan, loops).run();
    } catch (const NeedSplit& need) {
      loops.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
