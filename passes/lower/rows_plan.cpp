#include "passes/lower/rows_plan.h"

#include <algorithm>
#include <set>

#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

bool is_reduce(Op op) { return family_of(op) == Family::reduce && op != Op::argmax && op != Op::argmin; }

Ints axes_of(const Function& f, OpId op) { return std::get<Ints>(f.attributes(op)[0]); }

std::vector<bool> as_mask(const Ints& axes, std::size_t rank) {
  std::vector<bool> mask(rank, false);
  for (std::int64_t axis : axes) mask[static_cast<std::size_t>(axis)] = true;
  return mask;
}

// The set of axes that rows run along: of the first reduction over the innermost axis, else of the first. All others are over the same axes,
// or over exactly those that are left.
bool choose_axes(const Function& body, RowsPlan* plan) {
  OpId best;
  bool best_innermost = false;
  body.for_each_op([&](OpId op) {
    if (!is_reduce(body.kind(op)) || best_innermost) return;
    const Ints axes = axes_of(body, op);
    const auto last = static_cast<std::int64_t>(body.type(body.operand(op, 0)).shape.rank()) - 1;
    best_innermost = std::find(axes.begin(), axes.end(), last) != axes.end();
    if (best_innermost || !best.valid()) best = op;
  });
  if (!best.valid()) return false;
  plan->domain = body.type(body.operand(best, 0)).shape;
  plan->along = as_mask(axes_of(body, best), plan->domain.rank());
  return true;
}

}  // namespace

bool plan_rows(const Function& body, RowsPlan* plan) {
  *plan = {};
  if (!choose_axes(body, plan)) return false;
  Ints kept;
  for (std::size_t axis = 0; axis < plan->domain.rank(); ++axis) {
    (plan->along[axis] ? plan->row_size : plan->num_rows) *= plan->domain[axis];
    if (!plan->along[axis]) kept.push_back(static_cast<std::int64_t>(axis));
  }
  plan->level.assign(body.num_values(), RowLevel::element);
  plan->ready.assign(body.num_values(), 0);
  // Tells values that depend on a reduction from those that do not: only the former must stay aligned.
  std::vector<bool> reduced(body.num_values(), false);
  const std::int64_t size = plan->domain.size();
  bool good = true;
  body.for_each_op([&](OpId op) {
    if (!good) return;
    const Op kind = body.kind(op);
    const ValueId result = body.result(op);
    std::uint32_t ready = 0;
    bool any_row = false, any_column = false, any_reduced = false;
    for (ValueId operand : body.operands(op)) {
      ready = std::max(ready, plan->ready[operand.index]);
      if (!reduced[operand.index]) continue;
      any_reduced = true;
      any_row = any_row || plan->level[operand.index] == RowLevel::row;
      any_column = any_column || plan->level[operand.index] == RowLevel::column;
    }
    plan->ready[result.index] = ready;
    reduced[result.index] = any_reduced;
    const Shape& shape = body.type(result).shape;
    if (is_reduce(kind)) {
      const ValueId input = body.operand(op, 0);
      const std::vector<bool> mask = as_mask(axes_of(body, op), body.type(input).shape.rank());
      reduced[result.index] = true;
      if (body.type(input).shape != plan->domain || plan->level[input.index] != RowLevel::element) {
        good = false;
      } else if (mask == plan->along) {
        plan->level[result.index] = RowLevel::row;
        plan->ready[result.index] = ready + 1;
        plan->row_reductions.push_back(op);
      } else {
        std::vector<bool> others = plan->along;
        others.flip();
        good = mask == others;
        plan->level[result.index] = RowLevel::column;
        plan->column_reductions.push_back(op);
      }
      return;
    }
    if (!any_reduced) return;
    if (any_column) {
      // Column values meet only columns, position by position.
      good = !any_row && (family_of(kind) == Family::elementwise || family_of(kind) == Family::compare || kind == Op::reshape);
      for (ValueId operand : body.operands(op))
        if (reduced[operand.index]) good = good && plan->level[operand.index] == RowLevel::column;
      plan->level[result.index] = RowLevel::column;
      return;
    }
    if (family_of(kind) == Family::elementwise || family_of(kind) == Family::compare || kind == Op::reshape) {
      // Elements meet elements of the same position, rows meet rows.
      for (ValueId operand : body.operands(op))
        if (reduced[operand.index] && any_row) good = good && plan->level[operand.index] == RowLevel::row;
      plan->level[result.index] = any_row ? RowLevel::row : RowLevel::element;
      return;
    }
    if (kind == Op::broadcast && any_row) {
      // Back to the domain, along exactly the axes that were reduced; extents of 1 may stand for them.
      const Ints dims = body.attrs<Op::broadcast>(op).dims;
      const Shape& from = body.type(body.operand(op, 0)).shape;
      good = shape == plan->domain;
      Ints real;
      for (std::size_t i = 0; i < dims.size() && good; ++i)
        if (!plan->along[static_cast<std::size_t>(dims[i])])
          real.push_back(dims[i]);
        else
          good = from[i] == 1;
      good = good && real == kept && from.size() == plan->num_rows;
      return;
    }
    if (kind == Op::gather && reduced[body.operand(op, 0).index] && !reduced[body.operand(op, 1).index] && !any_row) {
      // One element per row, picked by an index (take_along_axis): batch axes are the kept ones, in order. The indices may have
      // axes of extent 1 between them, as where the axis they run along was kept.
      const auto a = body.attrs<Op::gather>(op);
      Ints row_axes;
      for (std::size_t axis = 0; axis < plan->along.size(); ++axis)
        if (plan->along[axis]) row_axes.push_back(static_cast<std::int64_t>(axis));
      good = body.type(body.operand(op, 0)).shape == plan->domain && a.operand_batching_dims == kept &&
             a.start_index_map == row_axes && row_axes.size() == 1 && a.offset_dims.empty() &&
             body.type(result).size() == plan->num_rows;
      good = good && std::is_sorted(a.indices_batching_dims.begin(), a.indices_batching_dims.end());
      plan->level[result.index] = RowLevel::row;
      return;
    }
    good = false;
  });
  if (!good) return false;
  // Columns are accumulated element by element along a row: their lanes must be the innermost axis.
  if (!plan->column_reductions.empty()) {
    std::size_t axis = plan->domain.rank();
    while (axis > 0 && plan->domain[axis - 1] == 1) --axis;
    if (axis > 0 && !plan->along[axis - 1]) return false;
  }
  for (ValueId result : body.results()) {
    const std::int64_t count = body.type(result).size();
    const RowLevel level = plan->level[result.index];
    if (level == RowLevel::element && count != size) {
      // A result that no reduction reaches may still be one per row.
      if (reduced[result.index] || count != plan->num_rows) return false;
      plan->level[result.index] = RowLevel::row;
    }
  }

  // Which pass reads what: roots are the inputs of reductions and the element results.
  std::vector<std::vector<ValueId>> roots;
  const auto root = [&](ValueId v, std::uint32_t pass) {
    if (roots.size() <= pass) roots.resize(pass + 1);
    roots[pass].push_back(v);
  };
  for (const auto* reductions : {&plan->row_reductions, &plan->column_reductions})
    for (OpId op : *reductions) root(body.operand(op, 0), plan->ready[body.operand(op, 0).index]);
  for (ValueId result : body.results())
    if (plan->level[result.index] == RowLevel::element) root(result, plan->ready[result.index]);
  plan->num_passes = static_cast<std::uint32_t>(roots.size());
  std::vector<std::int64_t> first_pass(body.num_values(), -1);
  std::set<ValueId> saved;
  for (std::uint32_t pass = 0; pass < roots.size(); ++pass) {
    std::vector<bool> seen(body.num_values(), false);
    std::vector<ValueId> stack = roots[pass];
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (seen[v.index] || body.is_arg(v)) continue;
      seen[v.index] = true;
      const OpId op = body.def(v);
      if (is_reduce(body.kind(op))) continue;
      if (is_expensive(body.kind(op)) && body.type(v).size() == size) {
        if (first_pass[v.index] < 0) first_pass[v.index] = pass;
        if (first_pass[v.index] < pass) {
          if (saved.insert(v).second) plan->saved.push_back(v);
          continue;
        }
      }
      for (ValueId operand : body.operands(op)) stack.push_back(operand);
    }
  }
  return true;
}

}  // namespace burin::passes::lower
