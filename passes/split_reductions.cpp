// A reduction to few results is the work of few threads, and of one where there is a single result. Split, its parts run side by side
// and their results are reduced in turn; how it is split follows from shapes alone, so that results do not depend on the threads.
#include <algorithm>
#include <optional>

#include "ir/rewriter.h"
#include "passes/lower/element.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

constexpr std::int64_t most_results = 16;  // from here on the results are tasks enough
constexpr std::int64_t wanted_parts = 64;  // even shares for eight threads, and little to do for what adds them up
constexpr std::int64_t most_parts = 512;   // of all results, as choose_split goes: what adds them up is not split again

struct Split {
  std::vector<bool> kept;              // axes that the first reduction leaves
  std::optional<std::size_t> axis;     // the one that is cut into parts, after all that are kept
  std::int64_t parts = 1, length = 1;  // the rest of that axis is reduced by itself
};

// Parts of about the wanted number that leave as little of the axis over as can be.
std::int64_t choose_parts(std::int64_t extent, std::int64_t wanted) {
  std::int64_t best = wanted;
  for (std::int64_t parts = wanted; parts < std::min(extent, 4 * wanted) && extent % best != 0; ++parts)
    if (extent % parts < extent % best) best = parts;
  return best;
}

std::optional<Split> choose_split(const Type& type, const Ints& axes, std::int64_t results, std::int64_t least_elements) {
  if (results >= most_results || type.size() < std::max(least_elements, most_parts)) return std::nullopt;
  Split split{.kept = std::vector<bool>(type.rank(), false), .axis = std::nullopt};
  Ints outermost_first = axes;
  std::sort(outermost_first.begin(), outermost_first.end());
  std::int64_t wanted = (wanted_parts + results - 1) / results;
  for (const std::int64_t a : outermost_first) {
    const auto axis = static_cast<std::size_t>(a);
    const std::int64_t extent = type.shape[axis];
    if (extent >= 2 * wanted) {
      split.axis = axis;
      split.parts = choose_parts(extent, wanted);
      split.length = extent / split.parts;
      return split;
    }
    split.kept[axis] = true;
    wanted = (wanted + extent - 1) / extent;
    if (wanted == 1) break;
  }
  return split;  // something is left to reduce: results and kept axes together have fewer than most_parts elements
}

// `from` up to `to` of an axis.
ValueId part_of(Builder& b, ValueId x, std::size_t axis, std::int64_t from, std::int64_t to) {
  const Shape shape = b.type(x).shape;
  Ints start(shape.rank(), 0), limit, stride(shape.rank(), 1);
  for (std::size_t i = 0; i < shape.rank(); ++i) limit.push_back(i == axis ? to : shape[i]);
  start[axis] = from;
  return b.emit<Op::slice>({x}, {.start = start, .limit = limit, .stride = stride});
}

ValueId reduce_in_parts(Builder& b, Op op, ValueId x, const Ints& axes, const Split& split) {
  const Shape shape = b.type(x).shape;
  const auto is_reduced = [&](std::size_t i) { return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end(); };
  // The axes of both reductions: those of the first in a shape where the axis that is cut is two, those of the second in what is left.
  Ints first, second;
  Ints cut;
  std::int64_t left = 0;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (split.axis == i) {
      second.push_back(left++);
      cut.push_back(split.parts);
      first.push_back(static_cast<std::int64_t>(cut.size()));
      cut.push_back(split.length);
      continue;
    }
    if (is_reduced(i) && !split.kept[i])
      first.push_back(static_cast<std::int64_t>(cut.size()));
    else if (is_reduced(i))
      second.push_back(left++);
    else
      ++left;
    cut.push_back(shape[i]);
  }
  if (!split.axis) return b.reduce(op, b.reduce(op, x, first), second);
  const std::int64_t extent = shape[*split.axis], whole = split.parts * split.length;
  const ValueId even = whole == extent ? x : part_of(b, x, *split.axis, 0, whole);
  const ValueId total = b.reduce(op, b.reduce(op, b.reshape(even, Shape(std::span<const std::int64_t>(cut))), first), second);
  if (whole == extent) return total;
  const ValueId both[] = {total, b.reduce(op, part_of(b, x, *split.axis, whole, extent), axes)};
  return b.append(lower::combining_op(lower::reduction_of(op, b.type(x).dtype)), both, {});
}

// Whether what becomes of the result meets the reduced array again: rows are reduced and used in one go by a kernel that holds them.
bool meets_its_rows(const Function& f, OpId reduction) {
  const std::int64_t results = f.type(f.result(reduction)).size(), elements = f.type(f.operand(reduction, 0)).size();
  std::vector<bool> follows(f.num_values(), false);
  follows[f.result(reduction).index] = true;
  for (std::size_t i = reduction.index + 1; i < f.num_ops(); ++i) {
    const OpId op{i};
    const auto operands = f.operands(op);
    if (f.num_results(op) != 1 || std::none_of(operands.begin(), operands.end(), [&](ValueId v) { return follows[v.index]; })) continue;
    const std::int64_t size = f.type(f.result(op)).size();
    if (size == elements) return true;
    follows[f.result(op).index] = size == results;
  }
  return false;
}

}  // namespace

Function split_reductions(const Function& f, std::int64_t least_elements) {
  const auto is_reduction = [&](OpId op) {
    return family_of(f.kind(op)) == Family::reduce && f.kind(op) != Op::argmax && f.kind(op) != Op::argmin;
  };
  const auto axes_of = [&](OpId op) { return std::get<Ints>(f.attributes(op)[0]); };
  const auto split_of = [&](OpId op) {
    return choose_split(f.type(f.operand(op, 0)), axes_of(op), f.type(f.result(op)).size(), least_elements);
  };
  std::vector<std::pair<Shape, Ints>> ways;  // in which an array of a shape is reduced
  bool any = false;
  f.for_each_op([&](OpId op) {
    if (!is_reduction(op)) return;
    ways.emplace_back(f.type(f.operand(op, 0)).shape, axes_of(op));
    any = any || split_of(op);
  });
  if (!any) return f;
  // A kernel that walks over rows adds up their columns in passing, in parts of its own.
  const auto goes_with_rows = [&](OpId op) {
    const Shape& shape = f.type(f.operand(op, 0)).shape;
    const Ints axes = axes_of(op);
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(shape.rank()) - 1) != axes.end()) return false;
    return std::any_of(ways.begin(), ways.end(), [&](const auto& way) { return way.first == shape && way.second != axes; });
  };
  Rewriter rewriter(f);
  Builder& b = rewriter.b;
  f.for_each_op([&](OpId op) {
    b.set_location(f.location(op));
    const std::optional<Split> split = is_reduction(op) ? split_of(op) : std::nullopt;
    if (!split || goes_with_rows(op) || (f.type(f.result(op)).size() > 1 && meets_its_rows(f, op))) {
      rewriter.copy(op);
      return;
    }
    const Op kind = f.kind(op);
    const ValueId source = f.operand(op, 0);
    // Sums and products of 16-bit floats are rounded once, at their end.
    const DType dtype = f.type(source).dtype;
    const bool wide = is_half(dtype) && (kind == Op::reduce_sum || kind == Op::reduce_prod);
    ValueId x = rewriter[source];
    if (wide) x = b.convert(x, DType::f32);
    x = reduce_in_parts(b, kind, x, axes_of(op), *split);
    rewriter.replace(f.result(op), wide ? b.convert(x, dtype) : x);
  });
  return rewriter.finish();
}

}  // namespace burin::passes
