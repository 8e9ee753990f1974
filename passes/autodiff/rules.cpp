#include "passes/autodiff/rules.h"

#include "base/message_ids.h"

namespace burin::passes::autodiff {

void JvpContext::not_differentiable(std::string_view why) const {
  fail_at(to_string(source.location(op)), Msg::not_differentiable, name(source.kind(op)), why);
}

void TransposeContext::not_linear() const {
  fail_at(to_string(source.location(op)), Msg::not_linear, name(source.kind(op)));
}

}  // namespace burin::passes::autodiff
