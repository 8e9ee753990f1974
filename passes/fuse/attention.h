// Finds attention by data flow: scores that are products, a softmax along one of their axes, and what sums over either
// axis.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/function.h"

namespace burin::passes::fusion {

using namespace ir;

/// What became of a softmax over products: "" when its sums are attention kernels now.
struct AttentionNote {
  Location where;
  std::string why_not;
};

/// Scores of fewer positions stay in the caches, and making them once is cheaper than making them in every kernel.
struct AttentionLimits {
  std::int64_t pairs = 256 * 256;  // of a matrix of scores
  std::int64_t length = 64;        // of its shorter side
};

/// Takes and returns a function without calls, with `fusion` ops of kind attention in place of the sums over scores
/// that need not be in memory. Each recomputes the scores that it sums over; other ops remain as they are.
Function take_attentions(const Function& f, std::vector<AttentionNote>* notes = nullptr,
                         const AttentionLimits& limits = {});

}  // namespace burin::passes::fusion
