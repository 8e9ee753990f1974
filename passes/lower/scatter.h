// What the two ways of lowering a scatter share.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "passes/lower/lower.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {

/// What sums and products build up in, and the other ways of combining.
DType combining_dtype(Combine combine, DType dtype);
/// An element, which is `old`, after an update of it; both in `dtype`.
ScalarId combined(BlockBuilder& b, Combine combine, ScalarId old, ScalarId update, DType dtype);
/// What follows the scatter at one element: `load` reads that, in the dtype it builds up in. `built` is a result that is there already.
void store_results(ElementEmitter& emitter, const Function& body, ValueId scattered, const Index& index, std::span<const BufferId> results, BufferId built,
                   const std::function<ScalarId()>& load);

/// Whole rows along axis 0, found by one index each (an embedding's gradient): a task owns a block of rows, which it builds up in scratch and
/// writes once. Nothing for other scatters, and where so many updates meet so many blocks that looking for each block's own would cost more
/// than it spares.
std::optional<Lowering> lower_scatter_of_rows(const Function& body, OpId scatter, const Target& target, const InPlace& in_place);

}  // namespace burin::passes::lower
