// Ops, their families and their attributes, all generated from ops.def.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/literal.h"
#include "ir/type.h"

namespace burin::ir {

class Function;

enum class Op : std::uint16_t {
#define OP(name, family, arity, results, effect, attributes, meaning) name,
#include "ir/ops.def"
#undef OP
};
inline constexpr int num_ops = 0
#define OP(name, family, arity, results, effect, attributes, meaning) +1
#include "ir/ops.def"
#undef OP
    ;

enum class Family : std::uint8_t { elementwise, compare, reduce, movement, contract, index, structure };
enum class Effect : std::uint8_t { none, ordered };

/// What happens to an index out of range: `error` reports it and the call throws, `clip` clamps it (scatter: drops the update).
enum class IndexMode : std::uint8_t { error, clip };
/// How scatter combines an update into an element; `set` overwrites, the last update in row-major order wins.
enum class Combine : std::uint8_t { add, mul, min, max, set };

// The kinds of attribute. In C++ they are the types of the fields in namespace attrs.
using Int = std::int64_t;
using Ints = std::vector<std::int64_t>;
using Str = std::string;
using Body = std::shared_ptr<const Function>;
enum class AttrKind : std::uint8_t { Int, Ints, DType, Str, Literal, Body, IndexMode, Combine };
/// Alternatives stand in the order of AttrKind.
using AttrValue = std::variant<Int, Ints, DType, Str, Literal, Body, IndexMode, Combine>;

struct AttrInfo {
  AttrKind kind;
  std::string_view name;
};

struct OpInfo {
  std::string_view name;
  Family family;
  int arity;    // -1: any number of operands
  int results;  // -1: as the body returns (optimization_barrier: as many as operands)
  Effect effect;
  std::span<const AttrInfo> attributes;
  std::string_view meaning;
};

const OpInfo& info(Op op);
std::string_view name(Op op);
std::string_view name(Family family);
std::string_view name(IndexMode mode);
std::string_view name(Combine combine);
/// The op of that name in `*op`; false when there is none.
bool op_from_name(std::string_view text, Op* op);

constexpr Family family_of(Op op) {
  constexpr Family families[] = {
#define OP(name, family, arity, results, effect, attributes, meaning) Family::family,
#include "ir/ops.def"
#undef OP
  };
  return families[static_cast<int>(op)];
}

/// The type on which rules are overloaded: `Types infer(Tag<Op::slice>, ...)`.
template <Op op>
struct Tag {
  static constexpr Op value = op;
};

/// One struct of attributes per op, fields in the order of ops.def: attrs::slice{.start = ..., .limit = ..., .stride = ...}.
namespace attrs {
#define ATTR(kind, name) kind name{};
#define OP(name, family, arity, results, effect, attributes, meaning) \
  struct name {                                                       \
    attributes                                                        \
  };
#include "ir/ops.def"
#undef OP
#undef ATTR
}  // namespace attrs

template <Op op>
struct AttrsOf;
#define OP(name, family, arity, results, effect, attributes, meaning) \
  template <>                                                         \
  struct AttrsOf<Op::name> {                                          \
    using type = attrs::name;                                         \
  };
#include "ir/ops.def"
#undef OP
template <Op op>
using attrs_of = typename AttrsOf<op>::type;

/// Calls f(name, field) for each attribute in order.
#define ATTR(kind, field) f(std::string_view(#field), a.field);
#define OP(name, family, arity, results, effect, attributes, meaning)                \
  template <class F>                                                                 \
  void visit_attrs([[maybe_unused]] attrs::name& a, [[maybe_unused]] F&& f) {        \
    attributes                                                                       \
  }                                                                                  \
  template <class F>                                                                 \
  void visit_attrs([[maybe_unused]] const attrs::name& a, [[maybe_unused]] F&& f) { \
    attributes                                                                       \
  }
#include "ir/ops.def"
#undef OP
#undef ATTR

/// Calls f(Tag<op>{}) for the run-time op.
template <class F>
decltype(auto) with_tag(Op op, F&& f) {
  switch (op) {
#define OP(name, family, arity, results, effect, attributes, meaning) \
  case Op::name: return f(Tag<Op::name>{});
#include "ir/ops.def"
#undef OP
  }
  __builtin_unreachable();
}

/// True for the value that the text leaves out: 0, "", [], the first enumerator; never for dtype, literal or body.
bool is_default(const AttrValue& value);

}  // namespace burin::ir
