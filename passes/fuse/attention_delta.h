// The sum over keys of a softmax's derivative, from its result: for weights p of values v, the sum of p * (g . v) along
// a row is g . (sum of p * v), and the latter is what attention gives (Dao et al., "FlashAttention", 2022).
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ir/function.h"
#include "passes/fuse/attention_groups.h"
#include "passes/lower/attention_plan.h"

namespace burin::passes::fusion {

/// A reduction that can be made of two values without scores.
struct RowProduct {
  OpId target;
  ValueId gradient, result;  // g, and the product as it is read from memory
  std::vector<OpId> moves;   // from the product to `result`: converts, transposes and reshapes, in order
  // The axes of either that are longer than 1, in the order of the target's with the summed one last.
  Ints gradient_order, result_order;
  struct Factor {
    Op op = Op::mul;  // or div
    ValueId row;
  };
  std::vector<Factor> factors;  // per row, in order
  bool negative = false;
};

/// `body` is all of the family, `in_body` says which op of it is which. Nothing when the target is no such sum.
std::optional<RowProduct> find_row_product(const Function& f, const ScoreFamily& family, const Uses& uses, OpId target,
                                           const Function& body, const lower::AttentionDomain& domain,
                                           const std::map<OpId, OpId>& in_body);
/// f with the targets made so.
Function replace_row_sums(const Function& f, const std::vector<RowProduct>& products);

}  // namespace burin::passes::fusion
