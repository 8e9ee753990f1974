#include "passes/fuse/prologue.h"

#include <algorithm>
#include <map>
#include <set>

#include "passes/lower/nest.h"

namespace burin::passes::fusion {
namespace {

constexpr std::size_t max_ops = 16;
// Rows from which on a product packs the side that has them, so that what it computes there is computed once and not for each
// column.
constexpr std::int64_t min_rows = 8;

bool moves(Op op) { return op == Op::reshape || op == Op::transpose || op == Op::broadcast; }

// Of one value of a row, computed for each of its elements.
bool is_dear(Op op) { return lower::is_expensive(op) || op == Op::rsqrt || op == Op::sqrt || op == Op::div; }

bool computes(Op op) { return family_of(op) == Family::elementwise || family_of(op) == Family::compare; }

// A side of 16-bit floats is packed in any case; to pack one of f32 or f64 for the sake of what is computed costs more than it spares.
bool fits(const Function& f, OpId dot, std::size_t side) {
  if (!is_float(f.type(f.result(dot)).dtype) || !is_float(f.type(f.operand(dot, side)).dtype) || size_of(f.type(f.operand(dot, side)).dtype) != 2) return false;
  const auto a = f.attrs<Op::dot_general>(dot);
  const auto free = [&](std::size_t i) {
    const Shape& shape = f.type(f.operand(dot, i)).shape;
    std::int64_t n = 1;
    for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(shape.rank()); ++axis) {
      const auto in = [&](const Ints& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
      if (!in(i == 0 ? a.lhs_batch : a.rhs_batch) && !in(i == 0 ? a.lhs_contract : a.rhs_contract)) n *= shape[static_cast<std::size_t>(axis)];
    }
    return n;
  };
  return free(side) >= min_rows || free(1 - side) == 1;
}

}  // namespace

Prologues::Prologues(const Clusters& clusters)
    : c_(clusters), f_(clusters.f), wanted_(f_.num_values(), false), unwanted_(f_.num_values(), false), read_otherwise_(f_.num_values(), false), readers_(f_.num_values(), 0) {
  for (ValueId result : f_.results()) read_otherwise_[result.index] = true;
  for (std::size_t i = f_.num_ops(); i-- > 0;) {
    const OpId op{i};
    const Op kind = f_.kind(op);
    for (std::size_t k = 0; k < f_.operands(op).size(); ++k) {
      const ValueId v = f_.operand(op, k);
      ++readers_[v.index];
      if (kind == Op::dot_general) {
        (fits(f_, op, k) ? wanted_ : unwanted_)[v.index] = true;
      } else if (kind == Op::reshape || kind == Op::transpose) {
        wanted_[v.index] = wanted_[v.index] || wanted_[f_.result(op).index];
        unwanted_[v.index] = unwanted_[v.index] || unwanted_[f_.result(op).index];
        read_otherwise_[v.index] = read_otherwise_[v.index] || read_otherwise_[f_.result(op).index];
      } else {
        read_otherwise_[v.index] = true;
      }
    }
  }
}

bool Prologues::wanted(ValueId v) const {
  if (!wanted_[v.index] || unwanted_[v.index]) return false;
  const OpId op = f_.def(v);
  const bool is_cast = op.valid() && f_.kind(op) == Op::convert && f_.is_arg(f_.operand(op, 0)) && is_float(f_.type(f_.operand(op, 0)).dtype);
  return is_cast || !read_otherwise_[v.index];
}

bool Prologues::expensive(ValueId v) const {
  std::vector<ValueId> stack = {v};
  std::set<ValueId> seen;
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    if ((c_.is_leaf(next) && next != v) || !seen.insert(next).second) continue;
    if (seen.size() > max_ops || is_dear(f_.kind(f_.def(next)))) return true;
    for (ValueId operand : f_.operands(f_.def(next))) stack.push_back(operand);
  }
  return false;
}

bool Prologues::cheap(ValueId v, std::vector<ValueId>& smaller) const {
  const std::int64_t size = f_.type(v).size();
  if (f_.is_arg(v) || !computes(f_.kind(f_.def(v)))) return false;
  std::set<ValueId> seen;
  std::map<ValueId, std::uint32_t> read;  // arrays as large, by how many of these ops
  std::vector<ValueId> stack = {v};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    const OpId op = f_.def(next);
    if (!seen.insert(next).second) continue;
    if (seen.size() > max_ops || (!computes(f_.kind(op)) && !moves(f_.kind(op))) || is_dear(f_.kind(op))) return false;
    for (ValueId operand : f_.operands(op)) {
      const bool scalar = !f_.is_arg(operand) && f_.kind(f_.def(operand)) == Op::constant && !c_.is_leaf(operand);
      if (scalar) continue;
      if (f_.type(operand).size() >= size) {
        if (c_.is_leaf(operand)) ++read[operand];
        else stack.push_back(operand);
      } else if (!c_.is_leaf(operand) && expensive(operand)) {
        smaller.push_back(operand);
      }
    }
  }
  std::size_t arrays = 0, masks = 0;
  for (const auto& [leaf, ops] : read) {
    ++(f_.type(leaf).dtype == DType::bool_ ? masks : arrays);
    // What an anchor makes for this alone is better made of it there.
    if (!f_.is_arg(leaf) && is_anchor(f_.kind(f_.def(leaf))) && readers_[leaf.index] == ops && !c_.is_result(leaf)) return false;
  }
  return arrays == 1 && masks <= 1;
}

}  // namespace burin::passes::fusion
