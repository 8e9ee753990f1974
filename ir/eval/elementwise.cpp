#include <algorithm>
#include <array>

#include "base/check.h"
#include "ir/eval/rules.h"
#include "ir/eval/scalar.h"

namespace burin::ir::eval {

Literals evaluate_elementwise(const Operands& in) {
  constexpr std::size_t most = 3;
  const Type& type = in.result_types[0];
  BURIN_CHECK(in.size() >= 1 && in.size() <= most);
  std::array<DType, most> dtypes{};
  std::array<const std::byte*, most> addresses{};
  std::array<std::size_t, most> steps{};
  for (std::size_t k = 0; k < in.size(); ++k) {
    dtypes[k] = in[k].dtype();
    addresses[k] = in[k].raw().data();
    steps[k] = in[k].is_splat() ? 0 : size_of(dtypes[k]);
  }
  const ElementFunction function = element_function(in.op, std::span(dtypes.data(), in.size()), type.dtype);

  // Splats stay splats: one element stands for all.
  if (type.size() > 1 && std::all_of(in.literals.begin(), in.literals.end(), [](auto& x) { return x.is_splat(); })) {
    Literal element(Type{type.dtype, {}});
    function(addresses.data(), element.mutable_raw().data());
    return {Literal::splat(type.shape, element)};
  }

  Literal result(type);
  std::byte* out = result.mutable_raw().data();
  for (std::int64_t i = 0; i < type.size(); ++i) {
    function(addresses.data(), out);
    for (std::size_t k = 0; k < in.size(); ++k) addresses[k] += steps[k];
    out += size_of(type.dtype);
  }
  return {result};
}

}  // namespace burin::ir::eval
