#include "base/check.h"
#include "base/counted.h"
#include "base/message_ids.h"
#include "ir/function.h"
#include "ir/shape/checks.h"

namespace burin::ir::shape {
namespace {

// The argument (or result) types that a body must have, as one message for both counts and types.
void check_signature(const Operands& in, std::string_view attribute, std::string_view what, const Types& found,
                     const Types& expected, std::string_view meaning) {
  if (found.size() != expected.size())
    in.fail(Msg::body_signature_count, name(in.op), attribute, found.size(), what, expected.size(), meaning);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected[i])
      in.fail(Msg::body_signature_type, name(in.op), attribute, what, i, to_string(found[i]), to_string(expected[i]),
              meaning);
}

void append_floats(Types& to, std::span<const Type> from) {
  for (const Type& type : from)
    if (is_float(type.dtype)) to.push_back(type);
}

}  // namespace

Types infer_body(const Operands& in, const Body& body) {
  BURIN_CHECK(body != nullptr, "structure op without a body");
  if (body->args().size() != in.size())
    in.fail(Msg::body_operand_count, name(in.op), body->name(), counted(body->args().size(), "argument", "arguments"),
            counted(in.size(), "operand", "operands"));
  for (std::size_t i = 0; i < in.size(); ++i)
    if (const Type& arg = body->type(body->args()[i]); arg != in[i])
      in.fail(Msg::body_operand_type, name(in.op), i, body->name(), to_string(arg), to_string(in[i]));
  return body->result_types();
}

Types infer(Tag<Op::call>, const Operands& in, const attrs::call& a) { return infer_body(in, a.body); }
Types infer(Tag<Op::checkpoint>, const Operands& in, const attrs::checkpoint& a) { return infer_body(in, a.body); }

Types infer(Tag<Op::composite>, const Operands& in, const attrs::composite& a) {
  if (a.name.empty()) in.fail(Msg::missing_name, name(in.op), "name");
  return infer_body(in, a.body);
}

Types infer(Tag<Op::fusion>, const Operands& in, const attrs::fusion& a) {
  if (a.kind.empty()) in.fail(Msg::missing_name, name(in.op), "kind");
  return infer_body(in, a.body);
}

// jvp: (operands, a tangent per float operand) -> (results, a tangent per float result).
Types infer(Tag<Op::custom_jvp>, const Operands& in, const attrs::custom_jvp& a) {
  const Types results = infer_body(in, a.body);
  BURIN_CHECK(a.jvp != nullptr, "custom_jvp without a rule");
  Types args(in.types.begin(), in.types.end()), outs = results;
  append_floats(args, in.types);
  append_floats(outs, results);
  check_signature(in, "jvp", "arguments", a.jvp->arg_types(), args,
                  "the operands and a tangent for each float operand");
  check_signature(in, "jvp", "results", a.jvp->result_types(), outs,
                  "body's results and a tangent for each float result");
  return results;
}

// forward: operands -> (results, residuals); backward: (residuals, a cotangent per float result) -> a cotangent per
// float operand.
Types infer(Tag<Op::custom_vjp>, const Operands& in, const attrs::custom_vjp& a) {
  const Types results = infer_body(in, a.body);
  BURIN_CHECK(a.forward != nullptr && a.backward != nullptr, "custom_vjp without a rule");
  const Types operands(in.types.begin(), in.types.end());
  check_signature(in, "forward", "arguments", a.forward->arg_types(), operands, "the operands");
  Types primal = a.forward->result_types();
  Types residuals;
  if (primal.size() > results.size()) {
    residuals.assign(primal.begin() + static_cast<std::ptrdiff_t>(results.size()), primal.end());
    primal.resize(results.size());
  }
  check_signature(in, "forward", "results", primal, results, "body's results, then residuals");
  Types args = std::move(residuals), outs;
  append_floats(args, results);
  append_floats(outs, operands);
  check_signature(in, "backward", "arguments", a.backward->arg_types(), args,
                  "forward's residuals and a cotangent for each float result");
  check_signature(in, "backward", "results", a.backward->result_types(), outs, "a cotangent for each float operand");
  return results;
}

Types infer(Tag<Op::optimization_barrier>, const Operands& in, const attrs::optimization_barrier&) {
  return {in.types.begin(), in.types.end()};
}

}  // namespace burin::ir::shape
