// Ops that hold functions, over bodies with two results, an integer among them, and an operand that nobody reads.
#include <cmath>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

Body shared(Function f) { return std::make_shared<const Function>(std::move(f)); }

/// sin(x) * y, or of integers and bools x * y.
ValueId wave(Builder& b, ValueId x, ValueId y, const Type& type) { return b.mul(is_float(type.dtype) ? b.sin(x) : x, y); }

/// (x, y, n) -> (wave(x, y), n + n); `unused` is one operand more.
Body body_of(const Type& type, bool unused = false) {
  Builder b("body");
  const ValueId x = b.add_arg(type), y = b.add_arg(type), n = b.add_arg(Type{i32, type.shape});
  if (unused) b.add_arg(type);
  return shared(b.finish({wave(b, x, y, type), b.add(n, n)}));
}

Reals value_of_body(const std::vector<Literal>& args) {
  Reals results;
  const DType dtype = args[0].dtype();
  for (std::int64_t i = 0; i < args[0].shape().size(); ++i) {
    const Real x = element(args[0], i);
    results.push_back(product(is_float(dtype) ? rounded(std::sin(x), dtype) : x, element(args[1], i), dtype));
  }
  for (const Real n : elements(args[2])) results.push_back(sum(n, n, i32));
  return results;
}

const Shape shapes[] = {{3, 5}, {1}, {0}, {}};

/// The types of the cases of an entry and how their operands are filled.
struct Fill {
  Type type;
  bool extreme = false;
};
std::vector<Fill> fills() {
  std::vector<Fill> result;
  for (DType dtype : all_dtypes) {
    for (const Shape& shape : shapes) result.push_back({Type{dtype, shape}});
    result.push_back({Type{dtype, {3, 5}}, true});
  }
  return result;
}

std::vector<Arg> args_of(const Fill& fill, bool unused = false) {
  const auto data = [&](Int first) { return fill.extreme ? repeated_extremes(fill.type, first) : within(fill.type, -2, 2); };
  const Type counts{i32, fill.type.shape};
  std::vector<Arg> args = {data(0), data(4), fill.extreme ? repeated_extremes(counts) : within(counts, -9, 9)};
  if (unused) args.push_back(data(0));
  return args;
}

void add(Entry& entry, Op op, const Fill& fill, std::vector<AttrValue> attributes, bool unused = false) {
  OpCase made = make_case(op, args_of(fill, unused), std::move(attributes), fill.extreme ? "extremes" : "");
  made.expected = value_of_body;
  made.smooth = fill.type.dtype == f64 && !fill.extreme;
  entry.cases.push_back(std::move(made));
}

/// `before` are the attributes in front of the body.
Entry plain_entry(Op op, const std::vector<AttrValue>& before, Refused refused) {
  Entry entry;
  for (const Fill& fill : fills())
    for (bool unused : {false, true}) {
      std::vector<AttrValue> attributes = before;
      attributes.emplace_back(body_of(fill.type, unused));
      add(entry, op, fill, attributes, unused);
    }
  entry.refused = {std::move(refused)};
  return entry;
}

Refused too_few(Op op, const std::vector<AttrValue>& before) {
  std::vector<AttrValue> attributes = before;
  const Type type{f32, {3}};
  attributes.emplace_back(body_of(type));
  return refuse(op, {type, type}, attributes, std::string(ir::name(op)) + ": @body takes 3 arguments, found 2 operands");
}

Entry custom_jvp_entry() {
  Entry entry;
  for (const Fill& fill : fills()) {
    const Type& type = fill.type;
    Builder rule("rule");
    const ValueId x = rule.add_arg(type), y = rule.add_arg(type), n = rule.add_arg(Type{i32, type.shape});
    std::vector<ValueId> tangents, results;
    for (int i = 0; is_float(type.dtype) && i < 2; ++i) tangents.push_back(rule.add_arg(type));
    results = {wave(rule, x, y, type), rule.add(n, n)};
    if (!tangents.empty()) {
      const ValueId by_x = rule.mul(rule.mul(rule.cos(x), y), tangents[0]), by_y = rule.mul(rule.sin(x), tangents[1]);
      results.push_back(rule.add(by_x, by_y));
    }
    add(entry, Op::custom_jvp, fill, {body_of(type), shared(rule.finish(results))});
  }
  const Type type{f32, {3}};
  entry.refused = {refuse(Op::custom_jvp, {type, type, Type{i32, {3}}}, {body_of(type), body_of(type)},
                          "custom_jvp: jvp has 3 arguments, expected 5: the operands and a tangent for each float operand")};
  return entry;
}

Entry custom_vjp_entry() {
  Entry entry;
  for (const Fill& fill : fills()) {
    const Type& type = fill.type;
    Builder f("forward"), g("backward");
    const ValueId x = f.add_arg(type), y = f.add_arg(type), n = f.add_arg(Type{i32, type.shape});
    std::vector<ValueId> saved = {wave(f, x, y, type), f.add(n, n)}, cotangents;
    if (is_float(type.dtype)) {
      saved.insert(saved.end(), {x, y, f.sin(x)});
      const ValueId rx = g.add_arg(type), ry = g.add_arg(type), rs = g.add_arg(type), ct = g.add_arg(type);
      cotangents = {g.mul(g.mul(ct, ry), g.cos(rx)), g.mul(ct, rs)};
    }
    add(entry, Op::custom_vjp, fill, {body_of(type), shared(f.finish(saved)), shared(g.finish(cotangents))});
  }
  const Type type{f32, {3}};
  entry.refused = {refuse(Op::custom_vjp, {type, type, Type{i32, {3}}}, {body_of(type), body_of(type), body_of(type)},
                          "custom_vjp: backward has 3 arguments, expected 1: forward's residuals and a cotangent for each "
                          "float result")};
  return entry;
}

Entry barrier_entry() {
  Entry entry;
  for (const Fill& fill : fills()) {
    const Arg first = fill.extreme ? repeated_extremes(fill.type) : within(fill.type, -2, 2);
    OpCase made = make_case(Op::optimization_barrier, {first, within(Type{f64, {3, 5}}, -2, 2), within(Type{i32, {}}, -2, 2)},
                            {}, fill.extreme ? "extremes" : "");
    made.expected = [](const std::vector<Literal>& args) {
      Reals all;
      for (const Literal& arg : args)
        for (const Real x : elements(arg)) all.push_back(x);
      return all;
    };
    made.smooth = !fill.extreme && (fill.type.dtype == f64 || !is_float(fill.type.dtype));
    entry.cases.push_back(std::move(made));
  }
  return entry;
}

}  // namespace

Entry structure_entry(Op op) {
  switch (op) {
    case Op::call: return plain_entry(op, {}, too_few(op, {}));
    case Op::composite: return plain_entry(op, {Str("wave")}, too_few(op, {Str("wave")}));
    case Op::checkpoint: return plain_entry(op, {}, too_few(op, {}));
    case Op::fusion: return plain_entry(op, {Str("loop")}, too_few(op, {Str("loop")}));
    case Op::custom_jvp: return custom_jvp_entry();
    case Op::custom_vjp: return custom_vjp_entry();
    case Op::optimization_barrier: return barrier_entry();
    default: return {};
  }
}

}  // namespace burin::op_cases
