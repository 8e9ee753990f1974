#include <algorithm>

#include "passes/lower/lower.h"

namespace burin::passes::lower {

namespace {

BufferId add_parameter(LoweredKernel& lowered, const Function& body, ValueId value, Space space, Param param) {
  const Type& type = body.type(value);
  const std::string_view name = body.value_name(value);
  lowered.params.push_back(param);
  return lowered.kernel.add_buffer(
      {.name = !name.empty() ? std::string(name) : (param.kind == Param::arg ? "in" : "out") + std::to_string(param.index),
       .dtype = type.dtype, .shape = Shape{type.size()}, .strides = {1}, .space = space});
}

}  // namespace

Parameters add_parameters(LoweredKernel& lowered, const Function& body, const InPlace& in_place) {
  Parameters parameters;
  for (std::uint32_t i = 0; i < body.args().size(); ++i) {
    const bool overwritten = std::find(in_place.begin(), in_place.end(), static_cast<std::int32_t>(i)) != in_place.end();
    parameters.args.push_back(
        add_parameter(lowered, body, body.args()[i], overwritten ? Space::inout : Space::in, {Param::arg, i}));
  }
  for (std::uint32_t i = 0; i < body.results().size(); ++i)
    parameters.results.push_back(i < in_place.size() && in_place[i] >= 0
                                     ? parameters.args[static_cast<std::size_t>(in_place[i])]
                                     : add_parameter(lowered, body, body.results()[i], Space::out, {Param::result, i}));
  return parameters;
}

std::vector<BufferId> add_arguments(LoweredKernel& lowered, const Function& body, ValueId value) {
  std::vector<bool> needed(body.num_values(), false);
  needed[value.index] = true;
  for (std::size_t i = body.num_ops(); i-- > 0;) {
    const OpId op{i};
    bool any = false;
    for (std::size_t r = 0; r < body.num_results(op); ++r) any = any || needed[body.result(op, r).index];
    if (any)
      for (ValueId operand : body.operands(op)) needed[operand.index] = true;
  }
  std::vector<BufferId> buffers;
  for (std::uint32_t i = 0; i < body.args().size(); ++i)
    buffers.push_back(needed[body.args()[i].index]
                          ? add_parameter(lowered, body, body.args()[i], Space::in, {Param::arg, i})
                          : BufferId{});
  return buffers;
}

bool can_overwrite(std::string_view kind, const Function& body, ValueId arg, ValueId result) {
  // Several passes read a row, each maybe after a store; tasks of an attention read what others write.
  if (kind == "rows" || kind == "attention") return false;
  std::vector<bool> follows(body.num_values(), false);
  follows[arg.index] = true;
  bool aligned = true;
  body.for_each_op([&](OpId op) {
    bool any = false;
    for (ValueId operand : body.operands(op)) any = any || follows[operand.index];
    if (!any) return;
    const Family family = family_of(body.kind(op));
    aligned = aligned && (family == Family::elementwise || family == Family::compare) &&
              body.type(body.result(op)).shape == body.type(arg).shape;
    follows[body.result(op).index] = true;
  });
  return aligned && follows[result.index];
}

}  // namespace burin::passes::lower
