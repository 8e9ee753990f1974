#include <unordered_map>

#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {

using namespace ir;

Function eliminate_common(const Function& f) {
  Rewriter rewriter(f);
  std::unordered_map<Hash128, OpId> seen;  // in the function being built
  f.for_each_op([&](OpId op) {
    // A barrier stands for a moment: two of them are two moments.
    const bool mergeable = info(f.kind(op)).effect == Effect::none && f.kind(op) != Op::optimization_barrier;
    Hash128 key;
    if (mergeable) {
      Hasher hasher;
      hasher.add(f.kind(op));
      hasher.add(f.operands(op).size());
      for (ValueId operand : rewriter.operands(op)) hasher.add(operand.index);
      for (const AttrValue& value : f.attributes(op)) hash_attribute(hasher, value);
      key = hasher.finish();
      if (const auto found = seen.find(key); found != seen.end()) {
        rewriter.replace_results(op, rewriter.b.function().result(found->second));
        return;
      }
    }
    const ValueId first = rewriter.copy(op);
    if (mergeable) seen.emplace(key, rewriter.b.function().def(first));
  });
  return rewriter.finish();
}

}  // namespace burin::passes
