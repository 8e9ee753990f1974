// Local rewrites that keep every value bit for bit (reassociation and the like are not among them). A rule sees one op whose
// operands are simplified already and may give another value instead.
#pragma once
#include <optional>
#include <span>

#include "ir/builder.h"

namespace burin::passes::rewrite {

using namespace ir;

/// What a rule may look at: the function built so far and one op that is about to be appended.
struct Site {
  Builder& b;
  Op op;
  std::span<const ValueId> operands;
  std::span<const AttrValue> attributes;
  std::span<const Type> results;

  const Function& f() const { return b.function(); }
  const Type& type(std::size_t i) const { return b.type(operands[i]); }
  /// The op that defines operand i when it is of kind `kind`; invalid otherwise.
  OpId def(std::size_t i, Op kind) const {
    const OpId op_id = f().def(operands[i]);
    return op_id.valid() && f().kind(op_id) == kind ? op_id : OpId{};
  }
  template <Op kind>
  attrs_of<kind> attrs() const {
    attrs_of<kind> result;
    [[maybe_unused]] std::size_t i = 0;
    visit_attrs(result, [&]<class T>(std::string_view, T& field) { field = std::get<T>(attributes[i++]); });
    return result;
  }
};

using Rewrite = std::optional<ValueId>;

/// The value of a splat or rank-0 constant seen through broadcasts and reshapes.
std::optional<Literal> splat_of(const Function& f, ValueId v);
bool is_splat_of(const Function& f, ValueId v, double value);

Rewrite arithmetic(const Site& s);  // x * 1, x - 0, --x, pow(x, 2), select of a constant, converts that undo each other
Rewrite movement(const Site& s);    // compositions and identities of reshape, transpose, broadcast, slice, ...
Rewrite index(const Site& s);       // a scatter of one update per row becomes a comparison with the index

}  // namespace burin::passes::rewrite
