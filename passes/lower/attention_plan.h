// What an attention fusion consists of: a domain of scores that lives in tiles only, and what is summed over one of its
// axes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "passes/lower/element.h"

namespace burin::passes::lower {

using namespace ir;

enum class AttentionLevel : std::uint8_t {
  free,    // made of arguments, constants and indices alone
  domain,  // one value per pair of positions: made of a product of two free values
  row,     // a reduction of the domain along one axis, or made of such
  out      // a product that contracts an axis of the domain, or such a product converted or moved
};

/// The values of a body by level, and where each lies in the domain.
struct AttentionDomain {
  std::vector<std::int64_t> extents;  // by axis
  std::vector<OpId> scores;           // dot_generals of two free values
  std::vector<OpId> targets;  // what sums over an axis of the domain: reductions, and products with a free value
  std::vector<AttentionLevel> level;  // by value
  /// By value, its element at a position of the domain: variable number i is axis i, and `inner()` runs along what a
  /// product adds to the domain's axes. Free values have none.
  std::vector<std::optional<Index>> place;
  std::vector<bool> reduced;  // by value: depends on a target

  std::size_t num_axes() const { return extents.size(); }
  VarId inner() const { return VarId{extents.size()}; }
};
/// "" or why the body's values do not fit one domain.
std::string find_domain(const Function& body, AttentionDomain* domain);
/// The axis that a target sums over; nothing when it is no whole axis.
std::optional<std::size_t> summed_axis(const Function& body, const AttentionDomain& domain, OpId target);
/// Which operand of a product is of the domain.
std::size_t domain_side(const Function& body, const AttentionDomain& domain, OpId product);

struct AttentionPlan : AttentionDomain {
  /// A task holds a block of `fixed` and walks over all of `moving`, which every target sums over; other axes are the
  /// grid.
  std::size_t fixed = 0, moving = 0;
  std::vector<std::size_t> moving_side;  // by score: the operand that varies along `moving`
  std::vector<OpId> sums, products;      // the targets, without the maximum
  /// The maximum along `moving` of a softmax: what the other targets sum is made of exponentials below it, and rescaled
  /// as it grows. Invalid: what they sum depends on no other target.
  OpId maximum;
};
/// "" when the body can be lowered, else what stands in the way.
std::string plan_attention(const Function& body, AttentionPlan* plan);

/// What a sum of exponentials times something per row can be multiplied with once it is complete.
struct RowFactor {
  Op op = Op::mul;  // or div
  ValueId value;    // of the domain, but the same all along `moving`
};
/// exp(logits - shift), where the maximum is that of the logits and the shift one value per row, times values that no
/// target reaches, times the factors in their order.
struct Exponentials {
  ValueId exponential;
  std::vector<RowFactor> factors;
  ValueId shift(const Function& body) const {
    return body.operand(body.def(body.operand(body.def(exponential), 0)), 1);
  }
};
/// Nothing when v is not of this form.
std::optional<Exponentials> exponentials(const Function& body, const AttentionPlan& plan, ValueId v);
/// What a target sums.
ValueId summed_value(const Function& body, const AttentionDomain& domain, OpId target);

}  // namespace burin::passes::lower
