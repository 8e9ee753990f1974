#include "ir/op.h"

#include <array>
#include <unordered_map>

namespace burin::ir {
namespace {

#define ATTR(kind, name) AttrInfo{AttrKind::kind, #name},
#define OP(name, family, arity, results, effect, attributes, meaning) \
  constexpr auto attributes_##name = std::to_array<AttrInfo>({attributes AttrInfo{AttrKind::Int, ""}});
#include "ir/ops.def"
#undef OP
#undef ATTR

// The array of each op ends in a sentinel, since C++ has no empty arrays; the span leaves it out.
template <std::size_t n>
constexpr std::span<const AttrInfo> without_sentinel(const std::array<AttrInfo, n>& all) {
  return {all.data(), n - 1};
}

constexpr OpInfo infos[] = {
#define OP(name, family, arity, results, effect, attributes, meaning) \
  {#name, Family::family, arity, results, Effect::effect, without_sentinel(attributes_##name), meaning},
#include "ir/ops.def"
#undef OP
};

}  // namespace

const OpInfo& info(Op op) { return infos[static_cast<int>(op)]; }
std::string_view name(Op op) { return info(op).name; }

std::string_view name(Family family) {
  static constexpr std::string_view names[] = {"elementwise", "compare", "reduce",   "movement",
                                               "contract",    "index",   "structure"};
  return names[static_cast<int>(family)];
}

std::string_view name(IndexMode mode) { return mode == IndexMode::error ? "error" : "clip"; }

std::string_view name(Combine combine) {
  static constexpr std::string_view names[] = {"add", "mul", "min", "max", "set"};
  return names[static_cast<int>(combine)];
}

bool op_from_name(std::string_view text, Op* op) {
  static const auto* const table = [] {
    auto* map = new std::unordered_map<std::string_view, Op>;
    for (int i = 0; i < num_ops; ++i) map->emplace(infos[i].name, static_cast<Op>(i));
    return map;
  }();
  const auto found = table->find(text);
  if (found == table->end()) return false;
  *op = found->second;
  return true;
}

bool is_default(const AttrValue& value) {
  switch (static_cast<AttrKind>(value.index())) {
    case AttrKind::Int: return std::get<Int>(value) == 0;
    case AttrKind::Ints: return std::get<Ints>(value).empty();
    case AttrKind::Str: return std::get<Str>(value).empty();
    case AttrKind::IndexMode: return std::get<IndexMode>(value) == IndexMode::error;
    case AttrKind::Combine: return std::get<Combine>(value) == Combine::add;
    case AttrKind::DType:
    case AttrKind::Literal:
    case AttrKind::Body: return false;
  }
  return false;
}

}  // namespace burin::ir
