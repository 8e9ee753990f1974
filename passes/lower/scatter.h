// What the two ways of lowering a scatter share.
#pragma once
#include <optional>

#include "passes/lower/lower.h"

namespace burin::passes::lower {

/// The op that combines an element with an update; select for those that are set.
Op combining_op(Combine combine);

/// Whole rows along axis 0, found by one index each (an embedding's gradient): a task owns a block of rows, which it builds up in scratch and
/// writes once. Nothing for other scatters, and where so many updates meet so many blocks that looking for each block's own would cost more
/// than it spares.
std::optional<Lowering> lower_scatter_of_rows(const Function& body, OpId scatter, const Target& target, const InPlace& in_place);

}  // namespace burin::passes::lower
