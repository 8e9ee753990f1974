// The kernels of one attention: which sums over its scores share a walk over them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/function.h"
#include "passes/fuse/attention.h"

namespace burin::passes::fusion {

using namespace ir;

/// Scores with what is made of them, in one function.
struct ScoreFamily {
  std::vector<OpId> targets;  // what sums over scores: reductions, and products with other values; in program order
  std::vector<OpId> maxima;   // those of them that are maxima
  std::set<ValueId> domain;   // one value per score
  std::set<ValueId> rows;     // one value per row, made of reductions
  std::string why_not;        // "" unless its scores are needed in memory
};

/// One kernel: a body that computes `results` from `args`.
struct AttentionGroup {
  std::vector<ValueId> args, results;
  std::set<OpId> ops;
  /// `in_body`: for each op its copy.
  Function body(const std::string& name, const Function& f, std::map<OpId, OpId>* in_body = nullptr) const;
};

/// By value: the ops that read it, and whether it is a result of the function.
struct Uses {
  explicit Uses(const Function& f);
  std::vector<std::vector<OpId>> readers;
  std::vector<bool> is_result;
};

struct RowProduct;

/// "" and the groups, when every target of the family can be computed so; else why not. `products`: sums in a walk
/// of their own that can do without scores.
std::string form_groups(const Function& f, const ScoreFamily& family, const Uses& uses, const AttentionLimits& limits,
                        std::vector<AttentionGroup>* groups, std::vector<RowProduct>* products);

}  // namespace burin::passes::fusion
