// The loop lowering: every result element on its own, the innermost loop in vectors.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "passes/lower/lower.h"
#include "passes/lower/nest.h"

namespace burin::passes::lower {
namespace {

LoweredKernel emit_loop(const Function& body, const Target& target, const Nest& nest) {
  LoweredKernel done;
  Kernel& kernel = done.kernel;
  kernel.name = body.name();
  std::vector<BufferId> args;
  const auto add = [&](ValueId value, Space space, Param param, const std::string& fallback) {
    const Type& type = body.type(value);
    const std::string_view given = body.value_name(value);
    done.params.push_back(param);
    return kernel.add_buffer({.name = given.empty() ? fallback : std::string(given), .dtype = type.dtype,
                              .shape = Shape{type.size()}, .strides = {1}, .space = space});
  };
  for (std::uint32_t i = 0; i < body.args().size(); ++i)
    args.push_back(add(body.args()[i], Space::in, {Param::arg, i}, "in" + std::to_string(i)));
  std::vector<BufferId> outs;
  for (std::uint32_t i = 0; i < body.results().size(); ++i)
    outs.push_back(add(body.results()[i], Space::out, {Param::result, i}, "out" + std::to_string(i)));

  BlockBuilder b(kernel);
  IndexSpace space;
  ElementEmitter emitter(body, b, space, args);
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

Lowering lower_loop(const Function& body, const Target& target) {
  BURIN_CHECK(!body.results().empty());
  const std::int64_t size = body.type(body.results()[0]).size();
  for (ValueId result : body.results()) BURIN_CHECK(body.type(result).size() == size, "results of different sizes in one loop");
  Nest nest({size});
  for (;;) {
    try {
      return {{emit_loop(body, target, nest)}, {}};
    } catch (const NeedSplit& need) {
      BURIN_CHECK(need.loop < nest.extents.size());
      nest.split(need.loop, need.factor);
    }
  }
}

}  // namespace burin::passes::lower
