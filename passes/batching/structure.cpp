// Ops that hold functions batch them. call and checkpoint stay what they are, composite and fusion are batched through their
// bodies, custom rules are batched with the body whose derivative they are.
#include "base/check.h"
#include "passes/batching/rules.h"

namespace burin::passes::batching {
namespace {

Body finish(Opened& opened) {
  return std::make_shared<const Function>(opened.b.finish(std::move(opened.values.results)));
}

/// Finished with results [from, to) batched where `wanted` says so, repeated where they are not by themselves.
void make_batched(Opened& opened, std::size_t from, const std::vector<bool>& wanted, std::int64_t size) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] && !opened.values.batched[from + i]) {
      opened.values.results[from + i] = repeat(opened.b, opened.values.results[from + i], size);
      opened.values.batched[from + i] = true;
    }
}

bool is_float_value(const Function& f, ValueId value) { return is_float(f.type(value).dtype); }

void batch_body(BatchContext& c, const Body& body) {
  Opened opened = open(*body, c.flags(), c.size);
  c.result_batched = opened.values.batched;
  c.results = c.b.call(c.source.kind(c.op), c.operands(), {finish(opened)});
}

void batch_inlined(BatchContext& c, const Body& body) {
  Inlined done = inline_batched(c.b, *body, c.operands(), c.flags(), c.size);
  c.results = std::move(done.results);
  c.result_batched = std::move(done.batched);
}

}  // namespace

void batch(Tag<Op::call>, BatchContext& c) { batch_body(c, c.attrs<Op::call>().body); }
void batch(Tag<Op::checkpoint>, BatchContext& c) { batch_body(c, c.attrs<Op::checkpoint>().body); }
void batch(Tag<Op::composite>, BatchContext& c) { batch_inlined(c, c.attrs<Op::composite>().body); }
void batch(Tag<Op::fusion>, BatchContext& c) { batch_inlined(c, c.attrs<Op::fusion>().body); }

// A tangent is batched when its primal is. A result is batched when the body, or the rule's result or tangent, makes it so.
void batch(Tag<Op::custom_jvp>, BatchContext& c) {
  const attrs::custom_jvp a = c.attrs<Op::custom_jvp>();
  std::vector<bool> flags = c.flags();
  for (std::size_t i = 0; i < c.num_operands(); ++i)
    if (is_float(c.example_type(i).dtype)) flags.push_back(c.batched(i));
  Opened body = open(*a.body, c.flags(), c.size), rule = open(*a.jvp, flags, c.size);
  const std::size_t n = a.body->results().size();
  std::vector<bool> wanted = body.values.batched, wanted_tangents;
  for (std::size_t i = 0, next = n; i < n; ++i) {
    wanted[i] = wanted[i] || rule.values.batched[i];
    if (is_float_value(*a.body, a.body->results()[i])) wanted[i] = wanted[i] || rule.values.batched[next++];
  }
  for (std::size_t i = 0; i < n; ++i)
    if (is_float_value(*a.body, a.body->results()[i])) wanted_tangents.push_back(wanted[i]);
  make_batched(body, 0, wanted, c.size);
  make_batched(rule, 0, wanted, c.size);
  make_batched(rule, n, wanted_tangents, c.size);
  c.results = c.b.call(Op::custom_jvp, c.operands(), {finish(body), finish(rule)});
  c.result_batched = wanted;
}

// Every result is batched, so that each example has its own cotangent. The cotangent of an operand without a batch, which all
// examples share, is the sum over them.
void batch(Tag<Op::custom_vjp>, BatchContext& c) {
  const attrs::custom_vjp a = c.attrs<Op::custom_vjp>();
  const std::size_t n = a.body->results().size();
  const std::vector<bool> all(n, true);
  Opened body = open(*a.body, c.flags(), c.size), forward = open(*a.forward, c.flags(), c.size);
  make_batched(body, 0, all, c.size);
  make_batched(forward, 0, all, c.size);
  std::vector<bool> flags(forward.values.batched.begin() + static_cast<std::ptrdiff_t>(n), forward.values.batched.end());
  for (ValueId result : a.body->results())
    if (is_float_value(*a.body, result)) flags.push_back(true);
  Opened backward = open(*a.backward, flags, c.size);
  for (std::size_t i = 0, next = 0; i < c.num_operands(); ++i) {
    if (!is_float(c.example_type(i).dtype)) continue;
    ValueId& cotangent = backward.values.results[next];
    if (!backward.values.batched[next]) cotangent = repeat(backward.b, cotangent, c.size);
    if (!c.batched(i)) cotangent = backward.b.reduce(Op::reduce_sum, cotangent, {0});
    ++next;
  }
  c.results = c.b.call(Op::custom_vjp, c.operands(), {finish(body), finish(forward), finish(backward)});
  c.result_batched = all;
}

void batch(Tag<Op::optimization_barrier>, BatchContext& c) {
  c.results = c.b.call(Op::optimization_barrier, c.operands(), {});
  c.result_batched = c.flags();
}

}  // namespace burin::passes::batching
