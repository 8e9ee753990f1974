// Ops whose operands and attributes follow from their family: elementwise, compare, reduce. Anything that no file knows
// is tried blindly until the type rules take it.
#include <algorithm>

#include "base/error.h"
#include "tests/fuzz/generator.h"

namespace burin::fuzz {
namespace {

// A value for an attribute of an op whose first operand is x; means nothing but often fits.
AttrValue blind_attribute(Generator& g, const AttrInfo& attribute, const Type& x) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  switch (attribute.kind) {
    case AttrKind::Int:
      return rank > 0 ? g.random.below(rank) : Int{0};
    case AttrKind::Ints:
      return attribute.name == "shape" || attribute.name == "sizes" ? Ints(x.shape.begin(), x.shape.end())
                                                                    : g.some_axes(x.rank());
    case AttrKind::DType:
      return static_cast<DType>(g.random.below(num_dtypes));
    case AttrKind::Str:
      return Str("drawn");
    case AttrKind::Literal:
      return draw_constant(g.random, x);
    case AttrKind::IndexMode:
      return g.random.chance(0.9) ? IndexMode::clip : IndexMode::error;
    case AttrKind::Combine:
      return static_cast<Combine>(g.random.below(5));
    case AttrKind::Body:
      break;
  }
  return Body{};
}

std::vector<AttrValue> blind_attributes(Generator& g, Op op, const Type& x) {
  std::vector<AttrValue> attributes;
  for (const AttrInfo& attribute : info(op).attributes) attributes.push_back(blind_attribute(g, attribute, x));
  return attributes;
}

bool has_body(Op op) {
  const auto attributes = info(op).attributes;
  return std::any_of(attributes.begin(), attributes.end(), [](const AttrInfo& a) { return a.kind == AttrKind::Body; });
}

// Operands of one shape and dtype, the dtype found by trial.
bool draw_uniform(Generator& g, Op op) {
  const int arity = info(op).arity;
  ValueId x = g.any();
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::vector<Type> types(static_cast<std::size_t>(arity), g.b.type(x));
    const std::vector<AttrValue> attributes = blind_attributes(g, op, types[0]);
    bool takes = true;
    try {
      infer_types(op, types, attributes);
    } catch (const Error&) {
      takes = false;
    }
    if (takes) {
      std::vector<ValueId> operands{x};
      while (static_cast<int>(operands.size()) < arity)
        operands.push_back(g.random.chance(0.1) ? x : g.of_type(types[0]));
      g.random.shuffle(operands);
      return g.append(op, operands, attributes);
    }
    // Another value, or this one in another dtype.
    x = g.random.chance(0.4)
            ? g.any()
            : g.b.convert(x, g.random.chance(0.5) ? g.dtype() : static_cast<DType>(g.random.below(num_dtypes)));
  }
  return false;
}

bool draw_select(Generator& g) {
  const ValueId x = g.any();
  const Type type = g.b.type(x);
  const ValueId condition = g.of_type({bool_, type.shape});
  return g.append(Op::select, {condition, x, g.of_type(type)}, {});
}

bool draw_blind(Generator& g, Op op) {
  if (has_body(op)) return false;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const int arity = info(op).arity >= 0 ? info(op).arity : static_cast<int>(g.random.between(1, 3));
    std::vector<ValueId> operands;
    for (int i = 0; i < arity; ++i) operands.push_back(g.any());
    const Type x = operands.empty() ? Type{g.dtype(), g.shape()} : g.b.type(operands[0]);
    if (g.append(op, operands, blind_attributes(g, op, x))) return true;
  }
  return false;
}

}  // namespace

bool draw_any(Generator& g, Op op) {
  bool known = true;
  switch (family_of(op)) {
    case Family::elementwise:
      return op == Op::select ? draw_select(g) : draw_uniform(g, op);
    case Family::compare:
      return draw_uniform(g, op);
    case Family::reduce:
      return draw_blind(g, op);
    case Family::movement:
      if (const bool done = draw_movement(g, op, &known); known) return done;
      break;
    case Family::contract:
      if (op == Op::dot_general) return draw_dot(g);
      break;
    case Family::index:
      if (const bool done = draw_index(g, op, &known); known) return done;
      break;
    case Family::structure:
      if (const bool done = draw_structure(g, op, &known); known) return done;
      break;
  }
  return draw_blind(g, op);
}

}  // namespace burin::fuzz
