// Ops that hold functions, over bodies with two results, an integer among them, and an operand that nobody reads.
#include <cmath>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

Body shared(Function f) { return std::make_shared<const Function>(std::move(f)); }

/// (x, y, n) -> (sin(x) * y, n + n); `unused` is one operand more.
Body body_of(const Type& type, bool unused = false) {
  Builder b("body");
  const ValueId x = b.add_arg(type), y = b.add_arg(type), n = b.add_arg(Type{i32, type.shape});
  if (unused) b.add_arg(type);
  return shared(b.finish({b.mul(b.sin(x), y), b.add(n, n)}));
}

const Shape shapes[] = {{3, 5}, {1}, {0}, {}};

std::vector<Arg> args_of(const Type& type, bool unused = false) {
  std::vector<Arg> args = {within(type, -2, 2), within(type, -2, 2), within(Type{i32, type.shape}, -9, 9)};
  if (unused) args.push_back(within(type, -2, 2));
  return args;
}

void add(Entry& entry, Op op, std::vector<Arg> args, std::vector<AttrValue> attributes, bool smooth, std::string_view note = "") {
  OpCase made = make_case(op, std::move(args), std::move(attributes), note);
  made.smooth = smooth;
  entry.cases.push_back(std::move(made));
}

/// One case per float dtype and shape; `before` and `after` are the attributes around the body.
Entry plain_entry(Op op, const std::vector<AttrValue>& before, Refused refused) {
  Entry entry;
  for (DType dtype : {f64, f32, bf16, f16})
    for (const Shape& shape : shapes)
      for (bool unused : {false, true}) {
        std::vector<AttrValue> attributes = before;
        attributes.emplace_back(body_of(Type{dtype, shape}, unused));
        add(entry, op, args_of(Type{dtype, shape}, unused), attributes, dtype == f64);
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
  for (DType dtype : {f64, f32, bf16, f16})
    for (const Shape& shape : shapes) {
      const Type type{dtype, shape};
      Builder rule("rule");
      const ValueId x = rule.add_arg(type), y = rule.add_arg(type), n = rule.add_arg(Type{i32, shape}),
                    tx = rule.add_arg(type), ty = rule.add_arg(type);
      const ValueId sine = rule.sin(x);
      const ValueId tangent = rule.add(rule.mul(rule.mul(rule.cos(x), y), tx), rule.mul(sine, ty));
      const Body jvp = shared(rule.finish({rule.mul(sine, y), rule.add(n, n), tangent}));
      add(entry, Op::custom_jvp, args_of(type), {body_of(type), jvp}, dtype == f64);
    }
  const Type type{f32, {3}};
  entry.refused = {refuse(Op::custom_jvp, {type, type, Type{i32, {3}}}, {body_of(type), body_of(type)},
                          "custom_jvp: jvp has 3 arguments, expected 5: the operands and a tangent for each float operand")};
  return entry;
}

Entry custom_vjp_entry() {
  Entry entry;
  for (DType dtype : {f64, f32, bf16, f16})
    for (const Shape& shape : shapes) {
      const Type type{dtype, shape};
      Builder f("forward");
      const ValueId x = f.add_arg(type), y = f.add_arg(type), n = f.add_arg(Type{i32, shape});
      const ValueId sine = f.sin(x);
      const Body forward = shared(f.finish({f.mul(sine, y), f.add(n, n), x, y, sine}));
      Builder g("backward");
      const ValueId rx = g.add_arg(type), ry = g.add_arg(type), rs = g.add_arg(type), ct = g.add_arg(type);
      const Body backward = shared(g.finish({g.mul(g.mul(ct, ry), g.cos(rx)), g.mul(ct, rs)}));
      add(entry, Op::custom_vjp, args_of(type), {body_of(type), forward, backward}, dtype == f64);
    }
  const Type type{f32, {3}};
  entry.refused = {refuse(Op::custom_vjp, {type, type, Type{i32, {3}}}, {body_of(type), body_of(type), body_of(type)},
                          "custom_vjp: backward has 3 arguments, expected 1: forward's residuals and a cotangent for each "
                          "float result")};
  return entry;
}

Entry barrier_entry() {
  Entry entry;
  for (DType dtype : all_dtypes)
    for (const Shape& shape : shapes)
      add(entry, Op::optimization_barrier,
          {within(Type{dtype, shape}, -2, 2), within(Type{f64, {3, 5}}, -2, 2), within(Type{i32, {}}, -2, 2)}, {},
          dtype == f64 || !is_float(dtype));
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
