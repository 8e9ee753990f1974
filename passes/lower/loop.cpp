// The loop lowering: every result element on its own, the innermost loop in vectors.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "passes/lower/lower.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

LoweredKernel emit_loop(const Function& body, const Target& target, const InPlace& in_place, const Nest& nest) {
  LoweredKernel done;
  Kernel& kernel = done.kernel;
  kernel.name = body.name();
  const Parameters parameters = add_parameters(done, body, in_place);
  const std::vector<BufferId>& outs = parameters.results;

  BlockBuilder b(kernel);
  IndexSpace space;
  ElementEmitter emitter(body, b, space, parameters.args);
  const std::int64_t lanes = std::min<std::int64_t>(native_lanes(target), 16);
  std::vector<std::size_t> numbers(nest.extents.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  if (nest.size() > 0)
    open_nest(b, space, nest, numbers, true, task_grain, lanes, [&](const NestVars& vars) {
      const Affine flat = vars.flat();
      for (std::size_t i = 0; i < outs.size(); ++i) {
        const Shape& shape = body.type(body.results()[i]).shape;
        const Index at = Index::of_flat(shape, flat);
        emitter.store(outs[i], at, emitter.emit(body.results()[i], at));
      }
    });
  kernel.cost = element_cost(body, target) * static_cast<double>(nest.size());
  return done;
}

}  // namespace

Lowering lower_loop(const Function& body, const Target& target, const InPlace& in_place) {
  BURIN_CHECK(!body.results().empty());
  const std::int64_t size = body.type(body.results()[0]).size();
  for (ValueId result : body.results()) BURIN_CHECK(body.type(result).size() == size, "results of different sizes in one loop");
  Nest nest({size});
  for (;;) {
    try {
      return {{emit_loop(body, target, in_place, nest)}, {}};
    } catch (const NeedSplit& need) {
      BURIN_CHECK(need.loop < nest.extents.size());
      nest.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
