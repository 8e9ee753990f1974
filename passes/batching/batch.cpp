// The driver of vmap: one walk over the ops; what depends on no batched value stays as it is, computed once.
#include "base/check.h"
#include "base/message_ids.h"
#include "passes/batching/batching.h"
#include "passes/batching/rules.h"
#include "passes/passes.h"

namespace burin::passes {
namespace batching {

ValueId repeat(Builder& b, ValueId x, std::int64_t size) {
  const Shape& shape = b.type(x).shape;
  return b.emit<Op::broadcast>({x}, {.shape = prepended(size, Ints(shape.begin(), shape.end())),
                                     .dims = ascending(1, shape.rank())});
}

ValueId BatchContext::with_batch(std::size_t i) { return batched_[i] ? operands_[i] : repeat(b, operands_[i], size); }

void BatchContext::give_copy(std::span<const ValueId> operands) {
  const ValueId first = b.append_copy(source, op, operands);
  for (std::size_t i = 0; i < source.num_results(op); ++i) {
    results.push_back(ValueId{first.index + i});
    result_batched.push_back(true);
  }
}

Ints shifted(const Ints& axes) {
  Ints result;
  for (std::int64_t axis : axes) result.push_back(axis + 1);
  return result;
}

Ints prepended(std::int64_t first, const Ints& values) {
  Ints result = {first};
  result.insert(result.end(), values.begin(), values.end());
  return result;
}

Ints ascending(std::int64_t first, std::size_t n) {
  Ints result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(first + static_cast<std::int64_t>(i));
  return result;
}

Inlined inline_batched(Builder& b, const Function& f, std::span<const ValueId> operands, const std::vector<bool>& batched,
                       std::int64_t size) {
  BURIN_CHECK(operands.size() == f.args().size() && batched.size() == operands.size());
  std::vector<ValueId> values(f.num_values());
  std::vector<bool> is_batched(f.num_values(), false);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values[f.args()[i].index] = operands[i];
    is_batched[f.args()[i].index] = batched[i];
  }
  std::vector<ValueId> mapped;
  std::vector<bool> flags;
  const Location outer = b.current_location();
  f.for_each_op([&](OpId op) {
    mapped.clear();
    flags.clear();
    bool any = false;
    for (ValueId operand : f.operands(op)) {
      mapped.push_back(values[operand.index]);
      flags.push_back(is_batched[operand.index]);
      any |= flags.back();
    }
    b.set_location(f.location(op));
    if (!any) {
      const ValueId first = b.append_copy(f, op, mapped);
      for (std::size_t r = 0; r < f.num_results(op); ++r) values[f.result(op, r).index] = ValueId{first.index + r};
      return;
    }
    BatchContext c(b, f, op, size, mapped, flags);
    with_tag(f.kind(op), [&](auto tag) { batch(tag, c); });
    BURIN_CHECK(c.results.size() == f.num_results(op) && c.result_batched.size() == c.results.size());
    for (std::size_t r = 0; r < c.results.size(); ++r) {
      const ValueId value = f.result(op, r);
      values[value.index] = c.results[r];
      is_batched[value.index] = c.result_batched[r];
      if (const auto name = f.value_name(value); !name.empty()) b.set_value_name(c.results[r], name);
    }
  });
  b.set_location(outer);
  Inlined done;
  for (ValueId result : f.results()) {
    done.results.push_back(values[result.index]);
    done.batched.push_back(is_batched[result.index]);
  }
  return done;
}

Opened open(const Function& f, const std::vector<bool>& batched, std::int64_t size) {
  Opened opened{Builder(f.name() + "_batched"), {}};
  std::vector<ValueId> args;
  for (std::size_t i = 0; i < f.args().size(); ++i) {
    Type type = f.type(f.args()[i]);
    if (batched[i]) {
      if (type.rank() == Shape::max_rank) fail(Msg::result_rank, "vmap", type.rank() + 1, Shape::max_rank);
      Shape shape{size};
      for (std::int64_t extent : type.shape) shape.push_back(extent);
      type.shape = shape;
    }
    args.push_back(opened.b.add_arg(type, f.value_name(f.args()[i])));
  }
  opened.values = inline_batched(opened.b, f, args, batched, size);
  return opened;
}

}  // namespace batching

Batched batch(const ir::Function& f, const std::vector<bool>& batched, std::int64_t size) {
  check_opened_size(f);
  batching::Opened opened = batching::open(f, batched, size);
  return {opened.b.finish(std::move(opened.values.results)), std::move(opened.values.batched)};
}

}  // namespace burin::passes
