#include "passes/fuse/attention_delta.h"

#include <algorithm>
#include <numeric>

#include "ir/rewriter.h"

namespace burin::passes::fusion {
namespace {

using lower::AttentionDomain;

class Finder {
 public:
  Finder(const Function& f, const ScoreFamily& family, const Uses& uses, const Function& body,
         const AttentionDomain& domain, const std::map<OpId, OpId>& in_body)
      : f_(f), family_(family), uses_(uses), body_(body), domain_(domain), in_body_(in_body) {}

  std::optional<RowProduct> find(OpId target) const {
    if (f_.kind(target) != Op::reduce_sum) return std::nullopt;
    const OpId product = f_.def(f_.operand(target, 0));
    if (!in_body_.contains(product) || f_.kind(product) != Op::mul) return std::nullopt;
    for (std::size_t side : {0, 1})
      if (auto found = as_product(target, f_.operand(product, side), f_.operand(product, 1 - side))) return found;
    return std::nullopt;
  }

 private:
  ValueId without_converts(ValueId v) const {
    while (family_.domain.contains(v) && f_.kind(f_.def(v)) == Op::convert &&
           is_float(f_.type(f_.operand(f_.def(v), 0)).dtype))
      v = f_.operand(f_.def(v), 0);
    return v;
  }
  // A 16-bit value as f32 is the same value.
  ValueId widened(ValueId v) const {
    const bool widens = !f_.is_arg(v) && f_.kind(f_.def(v)) == Op::convert && f_.type(v).dtype == DType::f32 &&
                        is_half(f_.type(f_.operand(f_.def(v), 0)).dtype);
    return widens ? f_.operand(f_.def(v), 0) : v;
  }
  bool is_target(OpId op) const {
    return std::find(family_.targets.begin(), family_.targets.end(), op) != family_.targets.end();
  }

  std::optional<RowProduct> as_product(OpId target, ValueId scores, ValueId weights) const {
    if (!family_.domain.contains(scores) || !family_.domain.contains(weights)) return std::nullopt;
    const ValueId score = without_converts(scores);
    const OpId dot = f_.def(score);
    if (f_.kind(dot) != Op::dot_general || is_target(dot)) return std::nullopt;
    RowProduct found;
    found.target = target;
    for (ValueId v = weights;;) {
      v = without_converts(v);
      for (OpId other : family_.targets)
        if (f_.kind(other) == Op::dot_general && other.index < target.index && weighs(other, v) &&
            same_axis(other, target) && fill(&found, dot, other))
          return found;
      const OpId op = f_.def(v);
      if (f_.kind(op) == Op::neg) {
        found.negative = !found.negative;
        v = f_.operand(op, 0);
        continue;
      }
      if (f_.kind(op) != Op::div && f_.kind(op) != Op::mul) return std::nullopt;
      const auto row = row_of(f_.operand(op, 1));
      if (!row || !family_.domain.contains(f_.operand(op, 0))) return std::nullopt;
      found.factors.insert(found.factors.begin(), {f_.kind(op), *row});
      v = f_.operand(op, 0);
    }
  }

  bool weighs(OpId product, ValueId v) const {
    return std::ranges::any_of(f_.operands(product),
                               [&](ValueId x) { return family_.domain.contains(x) && without_converts(x) == v; });
  }
  bool same_axis(OpId a, OpId b) const {
    const auto first = lower::summed_axis(body_, domain_, in_body_.at(a)),
               second = lower::summed_axis(body_, domain_, in_body_.at(b));
    return first && first == second;
  }
  // One value per row, spread over the scores.
  std::optional<ValueId> row_of(ValueId v) const {
    if (!family_.domain.contains(v) || f_.kind(f_.def(v)) != Op::broadcast) return std::nullopt;
    const ValueId row = f_.operand(f_.def(v), 0);
    return family_.rows.contains(row) ? std::optional(row) : std::nullopt;
  }

  const lower::Index& place(ValueId v) const { return *domain_.place[body_.result(in_body_.at(f_.def(v))).index]; }
  // Where a factor of a dot lies: axes of the domain, and the inner one.
  std::vector<Affine> factor_place(OpId dot, std::size_t side, bool of_score) const {
    const auto a = f_.attrs<Op::dot_general>(dot);
    const Ints &batch = side == 0 ? a.lhs_batch : a.rhs_batch, &contract = side == 0 ? a.lhs_contract : a.rhs_contract;
    const Ints &its_batch = side == 0 ? a.rhs_batch : a.lhs_batch,
               &its_contract = side == 0 ? a.rhs_contract : a.lhs_contract;
    const std::vector<Affine>& known = *place(of_score ? f_.result(dot) : f_.operand(dot, 1 - side)).dims;
    const Affine inner(domain_.inner());
    std::size_t next = batch.size();
    if (side == 1) next += f_.type(f_.operand(dot, 0)).rank() - batch.size() - 1;
    std::vector<Affine> dims;
    for (std::size_t axis = 0; axis < f_.type(f_.operand(dot, side)).rank(); ++axis) {
      const auto at = std::find(batch.begin(), batch.end(), static_cast<std::int64_t>(axis));
      const bool contracted = contract[0] == static_cast<std::int64_t>(axis);
      if (at != batch.end())
        dims.push_back(
            known[of_score ? static_cast<std::size_t>(at - batch.begin())
                           : static_cast<std::size_t>(its_batch[static_cast<std::size_t>(at - batch.begin())])]);
      else if (of_score)
        dims.push_back(contracted ? inner : known[next++]);
      else
        dims.push_back(contracted ? known[static_cast<std::size_t>(its_contract[0])] : inner);
    }
    return dims;
  }

  // For each variable of `order` the axis of a value at `dims` that runs along it; nothing when these are not all of
  // its axes.
  static std::optional<Ints> in_order(const std::vector<Affine>& dims, const std::vector<Affine>& order) {
    Ints axes;
    std::size_t longer = 0;
    for (const Affine& a : dims) longer += !a.is_constant();
    for (const Affine& wanted : order) {
      const auto at = std::find(dims.begin(), dims.end(), wanted);
      if (at == dims.end()) return std::nullopt;
      axes.push_back(at - dims.begin());
    }
    return longer == axes.size() ? std::optional(axes) : std::nullopt;
  }

  bool fill(RowProduct* found, OpId score, OpId product) const {
    const std::size_t side = family_.domain.contains(f_.operand(product, 0)) ? 1 : 0;  // of the values
    const ValueId values = f_.operand(product, side);
    const std::vector<Affine> lie = factor_place(product, side, false);
    for (std::size_t of_score : {0, 1}) {
      if (widened(f_.operand(score, of_score)) != widened(values) || factor_place(score, of_score, true) != lie)
        continue;
      std::vector<Affine> order;
      for (const Affine& a : *place(f_.result(found->target)).dims)
        if (!a.is_constant()) order.push_back(a);
      for (const RowProduct::Factor& factor : found->factors) {
        std::vector<Affine> row;
        for (const Affine& a : *place(factor.row).dims)
          if (!a.is_constant()) row.push_back(a);
        if (row != order) return false;
      }
      order.emplace_back(domain_.inner());
      found->gradient = f_.operand(score, 1 - of_score);
      const auto gradient = in_order(factor_place(score, 1 - of_score, true), order);
      const auto result = in_order(*place(f_.result(product)).dims, order);
      if (!gradient || !result) return false;
      found->gradient_order = *gradient;
      found->result_order = *result;
      // What is read is the product as it is stored.
      found->result = f_.result(product);
      for (;;) {
        const auto& readers = uses_.readers[found->result.index];
        if (uses_.is_result[found->result.index] || readers.size() != 1 || readers[0].index >= found->target.index)
          break;
        const Op kind = f_.kind(readers[0]);
        if (kind != Op::convert && kind != Op::transpose && kind != Op::reshape) break;
        found->moves.push_back(readers[0]);
        found->result = f_.result(readers[0]);
      }
      return true;
    }
    return false;
  }

  const Function& f_;
  const ScoreFamily& family_;
  const Uses& uses_;
  const Function& body_;
  const AttentionDomain& domain_;
  const std::map<OpId, OpId>& in_body_;
};

// In f32, without axes of extent 1, the others in the given order.
ValueId arranged(Builder& b, ValueId v, const Ints& order) {
  v = b.convert(v, DType::f32);
  const Shape from = b.type(v).shape;
  Ints kept = order;
  std::sort(kept.begin(), kept.end());
  Shape shorter;
  for (std::int64_t axis : kept) shorter.push_back(from[static_cast<std::size_t>(axis)]);
  Ints permutation;
  for (std::int64_t axis : order)
    permutation.push_back(std::lower_bound(kept.begin(), kept.end(), axis) - kept.begin());
  v = b.reshape(v, shorter);
  return std::ranges::is_sorted(permutation) ? v : b.transpose(v, permutation);
}

}  // namespace

std::optional<RowProduct> find_row_product(const Function& f, const ScoreFamily& family, const Uses& uses, OpId target,
                                           const Function& body, const AttentionDomain& domain,
                                           const std::map<OpId, OpId>& in_body) {
  return Finder(f, family, uses, body, domain, in_body).find(target);
}

Function replace_row_sums(const Function& f, const std::vector<RowProduct>& products) {
  Rewriter rewriter(f);
  Builder& b = rewriter.b;
  f.for_each_op([&](OpId op) {
    b.set_location(f.location(op));
    const auto found = std::ranges::find(products, op, &RowProduct::target);
    if (found == products.end()) {
      rewriter.copy(op);
      return;
    }
    ValueId result = rewriter[found->result];
    for (std::size_t i = found->moves.size(); i-- > 0;) {
      const OpId move = found->moves[i];
      const Type& before = f.type(f.operand(move, 0));
      if (f.kind(move) == Op::convert) {
        result = b.convert(result, DType::f32);
      } else if (f.kind(move) == Op::reshape) {
        result = b.reshape(result, before.shape);
      } else {
        const Ints permutation = f.attrs<Op::transpose>(move).permutation;
        Ints back(permutation.size());
        for (std::size_t axis = 0; axis < back.size(); ++axis)
          back[static_cast<std::size_t>(permutation[axis])] = static_cast<std::int64_t>(axis);
        result = b.transpose(result, back);
      }
    }
    const ValueId both =
        b.mul(arranged(b, rewriter[found->gradient], found->gradient_order), arranged(b, result, found->result_order));
    ValueId sum = b.reduce(Op::reduce_sum, both, {static_cast<std::int64_t>(b.type(both).rank()) - 1});
    const Shape rows = b.type(sum).shape;
    for (const RowProduct::Factor& factor : found->factors) {
      const ValueId row = b.reshape(rewriter[factor.row], rows);
      sum = factor.op == Op::div ? b.div(sum, row) : b.mul(sum, row);
    }
    if (found->negative) sum = b.neg(sum);
    rewriter.replace(f.result(op), b.reshape(sum, f.type(f.result(op)).shape));
  });
  return rewriter.finish();
}

}  // namespace burin::passes::fusion
