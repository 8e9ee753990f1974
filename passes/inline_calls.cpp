#include <algorithm>
#include <unordered_map>

#include "base/message_ids.h"
#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

const Body* body_of(const Function& f, OpId op) {
  switch (f.kind(op)) {
    case Op::call:
    case Op::composite:
    case Op::custom_jvp:
    case Op::custom_vjp:
    case Op::checkpoint:
    case Op::fusion:
      for (const AttrValue& value : f.attributes(op))
        if (const Body* body = std::get_if<Body>(&value)) return body;
      return nullptr;
    default: return nullptr;
  }
}

constexpr std::size_t max_opened_ops = std::size_t{1} << 20;

// How many ops each body comes to once opened; a body that many ops share is counted once.
class OpenedSizes {
 public:
  std::size_t of(const Function& f) {
    if (const auto known = known_.find(&f); known != known_.end()) return known->second;
    std::size_t ops = 0, opened = 0;
    f.for_each_op([&](OpId op) {
      std::size_t most = 0;  // of the functions of a custom rule only one is opened
      for (const AttrValue& value : f.attributes(op))
        if (const Body* body = std::get_if<Body>(&value)) most = std::max(most, of(**body));
      opened += most;
      ops += most == 0 ? 1 : 0;
      if (opened > max_opened_ops) fail(Msg::calls_too_large, f.name(), max_opened_ops);
    });
    known_.emplace(&f, ops + opened);
    return ops + opened;
  }

 private:
  std::unordered_map<const Function*, std::size_t> known_;
};

// Bodies nest as deeply as the user's calls do, not as deeply as chains of ops.
std::vector<ValueId> append_all(Builder& b, const Function& f, const std::vector<ValueId>& args) {
  std::vector<ValueId> map(f.num_values()), operands;
  for (std::size_t i = 0; i < args.size(); ++i) map[f.args()[i].index] = args[i];
  f.for_each_op([&](OpId op) {
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    if (const Body* body = body_of(f, op)) {
      const std::vector<ValueId> results = append_all(b, **body, std::vector<ValueId>(operands));
      for (std::size_t r = 0; r < results.size(); ++r) map[f.result(op, r).index] = results[r];
      return;
    }
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return results;
}

}  // namespace

void check_opened_size(const Function& f) { OpenedSizes().of(f); }

Function inline_calls(const Function& f) {
  check_opened_size(f);
  if (!any_op(f, [&](OpId op) { return body_of(f, op) != nullptr; })) return f;
  Builder b(f.name());
  std::vector<ValueId> args;
  for (ValueId arg : f.args()) args.push_back(b.add_arg(f.type(arg), f.value_name(arg)));
  return b.finish(append_all(b, f, args));
}

}  // namespace burin::passes
