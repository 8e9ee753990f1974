// The scatter lowering of whole rows.
#include <algorithm>
#include <functional>

#include "passes/lower/scatter.h"

namespace burin::passes::lower {
namespace {

// Tasks at least, so that they even out.
constexpr std::int64_t min_tasks = 16;
// Elements swept, per update and block that it is compared with, from which on looking for a block's updates costs little beside.
constexpr std::int64_t elements_per_look = 8;

class RowScatter {
 public:
  RowScatter(const Function& body, OpId scatter, const Target& target)
      : body_(body),
        scatter_(scatter),
        a_(body.attrs<Op::scatter>(scatter)),
        type_(body.type(body.operand(scatter, 0))),
        update_type_(body.type(body.operand(scatter, 2))),
        wide_(combining_dtype(a_.combine, type_.dtype)),
        lanes_(native_lanes(target)) {
    if (!moves_rows()) return;
    rows_ = type_.shape[0];
    width_ = type_.size() / std::max<std::int64_t>(rows_, 1);
    if (type_.size() == 0 || update_type_.size() == 0) return;
    const std::int64_t fitting = target.l2_bytes / 4 / (width_ * static_cast<std::int64_t>(size_of(wide_)));
    block_ = std::clamp<std::int64_t>(fitting, 1, (rows_ + min_tasks - 1) / min_tasks);
    tasks_ = (rows_ + block_ - 1) / block_;
    fits_ = tasks_ > 1 && update_type_.size() / width_ * tasks_ <= type_.size() / elements_per_look;
  }
  bool fits() const { return fits_; }

  Lowering lower(const InPlace& in_place) {
    kernel().name = body_.name();
    const auto [args, results] = add_parameters(lowered_, body_, in_place);
    sums_ = kernel().add_buffer({.name = "sums", .dtype = wide_, .shape = Shape{block_ * width_}, .strides = {1}, .space = Space::scratch});
    emitter_.emplace(body_, b_, space_, args);
    first_ = Affine(b_.task("t", tasks_), block_);
    fill();
    add_updates();
    finish(results);
    kernel().cost = 0.1 * static_cast<double>(type_.size() + 2 * update_type_.size());
    Lowering done;
    done.kernels.push_back(std::move(lowered_));
    return done;
  }

 private:
  Kernel& kernel() { return lowered_.kernel; }

  bool moves_rows() const {
    if (type_.rank() < 2 || a_.scatter_dims_to_operand_dims != Ints{0} || a_.inserted_window_dims != Ints{0} || !a_.operand_batching_dims.empty())
      return false;
    for (std::size_t axis = 1; axis < type_.rank(); ++axis)
      if (update_type_.shape[static_cast<std::size_t>(a_.update_window_dims[axis - 1])] != type_.shape[axis]) return false;
    return true;
  }

  // f(positions of axes 1, 2, ...) for a row's elements.
  void along_row(const std::function<void(const std::vector<Affine>&)>& f) {
    std::vector<Affine> at;
    const std::function<void(std::size_t)> open = [&](std::size_t axis) {
      if (axis == type_.rank()) {
        emitter_->enter();
        f(at);
        return emitter_->leave();
      }
      const bool innermost = axis + 1 == type_.rank();
      b_.loop("", 0, {Affine(type_.shape[axis])}, innermost ? LoopKind::vector : LoopKind::serial, innermost ? lanes_ : 1, [&](VarId var) {
        at.emplace_back(var);
        open(axis + 1);
        at.pop_back();
      });
    };
    open(1);
  }

  // f(row of the block, index of the element) for each element of the block.
  void over_block(const std::function<void(const Affine&, const Index&)>& f) {
    std::vector<Affine> bounds = {Affine(block_)};
    if (rows_ % block_ != 0) bounds.push_back(Affine(rows_) - first_);
    b_.loop("r", 0, bounds, LoopKind::serial, 1, [&](VarId r) {
      const Affine row(space_.stand_for(first_ + Affine(r), rows_));
      along_row([&](const std::vector<Affine>& rest) {
        std::vector<Affine> at = {row};
        at.insert(at.end(), rest.begin(), rest.end());
        f(Affine(r), Index::of_dims(type_.shape, at));
      });
    });
  }

  std::vector<Affine> place(const Affine& row_of_block, std::span<const Affine> rest) {
    Affine offset;
    for (std::size_t axis = 1; axis < type_.rank(); ++axis) offset = offset * type_.shape[axis] + rest[axis - 1];
    return {space_.resolve(row_of_block * width_ + offset)};
  }
  std::vector<Affine> place(const Affine& row_of_block, const Index& index) {
    const std::vector<Affine> at = emitter_->dims(index);
    return place(row_of_block, std::span(at).subspan(1));
  }

  void fill() {
    over_block([&](const Affine& r, const Index& index) {
      ScalarId start = emitter_->emit(body_.operand(scatter_, 0), index);
      if (wide_ != type_.dtype) start = b_.let(Op::convert, {start}, wide_);
      b_.store(sums_, place(r, index), start);
    });
  }

  void add_updates() {
    std::vector<std::size_t> batch_axes;
    for (std::size_t axis = 0; axis < update_type_.rank(); ++axis)
      if (std::ranges::find(a_.update_window_dims, static_cast<std::int64_t>(axis)) == a_.update_window_dims.end()) batch_axes.push_back(axis);
    std::vector<Affine> batch;
    const std::function<void(std::size_t)> open = [&](std::size_t i) {
      if (i < batch_axes.size())
        return b_.loop("u", 0, {Affine(update_type_.shape[batch_axes[i]])}, LoopKind::serial, 1, [&](VarId var) {
          batch.emplace_back(var);
          open(i + 1);
          batch.pop_back();
        });
      emitter_->enter();
      add_update(batch, batch_axes);
      emitter_->leave();
    };
    open(0);
  }

  void add_update(const std::vector<Affine>& batch, const std::vector<std::size_t>& batch_axes) {
    const ValueId indices = body_.operand(scatter_, 1);
    const Shape& index_shape = body_.type(indices).shape;
    const auto vector_dim = static_cast<std::size_t>(a_.index_vector_dim);
    std::vector<Affine> where = batch;
    if (vector_dim < index_shape.rank()) where.insert(where.begin() + static_cast<std::ptrdiff_t>(vector_dim), Affine(0));
    const ScalarId start = emitter_->emit(indices, Index::of_dims(index_shape, where));
    const VarId row = emitter_->bind(start, rows_, a_.mode, scatter_, 0);
    // A row that there is not is dropped: the clamped one keeps what it has.
    const ScalarId wanted = body_.type(indices).dtype == DType::i64 ? start : b_.let(Op::convert, {start}, DType::i64);
    const ScalarId fits = b_.let(Op::eq, {wanted, b_.index(Affine(row), DType::i64)}, DType::bool_);
    const Affine row_of_block = Affine(row) - first_;
    b_.when({row_of_block, Affine(block_ - 1) - row_of_block}, [&] {
      along_row([&](const std::vector<Affine>& rest) {
        std::vector<Affine> at(update_type_.rank());
        for (std::size_t i = 0; i < batch.size(); ++i) at[batch_axes[i]] = batch[i];
        for (std::size_t i = 0; i < rest.size(); ++i) at[static_cast<std::size_t>(a_.update_window_dims[i])] = rest[i];
        ScalarId update = emitter_->emit(body_.operand(scatter_, 2), Index::of_dims(update_type_.shape, at));
        if (wide_ != type_.dtype) update = b_.let(Op::convert, {update}, wide_);
        const std::vector<Affine> to = place(row_of_block, rest);
        const ScalarId old = b_.load(sums_, to);
        b_.store(sums_, to, b_.let(Op::select, {fits, combined(b_, a_.combine, old, update, wide_), old}, wide_));
      });
    });
  }

  void finish(const std::vector<BufferId>& results) {
    over_block([&](const Affine& r, const Index& index) {
      store_results(*emitter_, body_, body_.result(scatter_), index, results, {}, [&] {
        const ScalarId sum = b_.load(sums_, place(r, index));
        return wide_ == type_.dtype ? sum : b_.let(Op::convert, {sum}, type_.dtype);
      });
    });
  }

  const Function& body_;
  const OpId scatter_;
  const attrs_of<Op::scatter> a_;
  const Type type_, update_type_;
  const DType wide_;
  const std::int64_t lanes_;
  std::int64_t rows_ = 0, width_ = 0, block_ = 0, tasks_ = 0;
  bool fits_ = false;
  LoweredKernel lowered_;
  BlockBuilder b_{lowered_.kernel};
  IndexSpace space_{b_};
  std::optional<ElementEmitter> emitter_;
  BufferId sums_;
  Affine first_;  // row of the task's block
};

}  // namespace

std::optional<Lowering> lower_scatter_of_rows(const Function& body, OpId scatter, const Target& target, const InPlace& in_place) {
  RowScatter rows(body, scatter, target);
  if (!rows.fits()) return std::nullopt;
  return rows.lower(in_place);
}

}  // namespace burin::passes::lower
