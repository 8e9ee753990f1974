#include "passes/fuse/saved.h"

#include <algorithm>

#include "passes/fuse/clusters.h"
#include "passes/lower/nest.h"

namespace burin::passes::fusion {

using namespace ir;

namespace {

bool keeps_elements(Op op) {
  return family_of(op) == Family::elementwise || family_of(op) == Family::compare || op == Op::reshape || op == Op::transpose;
}

struct Facts {
  ValueId product;         // what the value is made from, element by element, with nothing else as large; invalid when not so
  bool expensive = false;  // since the product
  std::int64_t largest = 0;  // elements of the largest array that its expression reads
  std::size_t anchor = 0;    // one more than the latest anchor that it depends on
};

class Search {
 public:
  Search(const Function& f, const std::vector<bool>& stored) : f_(f), stored_(stored), facts_(f.num_values()), read_(f.num_values()) {}

  std::vector<ValueId> run() {
    for (ValueId arg : f_.args()) facts_[arg.index].largest = f_.type(arg).size();
    f_.for_each_op([&](OpId op) {
      for (std::size_t r = 0; r < f_.num_results(op); ++r) facts_[f_.result(op, r).index] = facts(op, f_.result(op, r));
    });
    std::vector<bool> in_memory = stored_;
    for (ValueId result : f_.results()) in_memory[result.index] = true;
    f_.for_each_op([&](OpId op) {
      if (f_.kind(op) == Op::reshape || f_.kind(op) == Op::transpose) {
        const ValueId v = f_.result(op);
        in_memory[v.index] = in_memory[v.index] || in_memory[f_.operand(op, 0).index];
      }
    });
    f_.for_each_op([&](OpId op) {
      if (f_.num_results(op) == 0) return;
      for (ValueId operand : f_.operands(op)) {
        const ValueId product = facts_[operand.index].product;
        if (product.valid() && facts_[f_.result(op).index].product != product && !in_memory[operand.index]) read(product, operand, op);
      }
    });
    std::vector<ValueId> saved;
    f_.for_each_op([&](OpId op) {
      if (f_.kind(op) != Op::dot_general) return;
      const Read& read = read_[f_.result(op).index];
      if (read.later && read.value.valid() && facts_[read.value.index].expensive && f_.type(read.value).bytes() <= f_.type(f_.result(op)).bytes())
        saved.push_back(read.value);
    });
    return saved;
  }

 private:
  /// What is read of a product by ops that do not follow it element by element and is not in memory anyhow.
  struct Read {
    ValueId value;      // invalid: nothing
    bool later = true;  // one value, read where a later anchor has to come first
  };

  Facts facts(OpId op, ValueId v) const {
    const Op kind = f_.kind(op);
    const auto operands = f_.operands(op);
    Facts now;
    for (ValueId operand : operands) {
      now.largest = std::max(now.largest, facts_[operand.index].largest);
      now.anchor = std::max(now.anchor, facts_[operand.index].anchor);
    }
    if (kind == Op::constant && !f_.attrs<Op::constant>(op).value.stores_one_element()) now.largest = f_.type(v).size();
    if (is_anchor(kind)) {
      now.largest = f_.type(v).size();
      now.anchor = op.index + 1;
      if (kind == Op::dot_general) now.product = v;
      return now;
    }
    if (!keeps_elements(kind)) return now;
    ValueId product;
    bool expensive = lower::is_expensive(kind);
    for (ValueId operand : operands)
      if (facts_[operand.index].product.valid()) product = facts_[operand.index].product;
    if (!product.valid() || f_.type(v).size() != f_.type(product).size()) return now;
    for (ValueId operand : operands) {
      const Facts& from = facts_[operand.index];
      if (from.product != product && from.largest >= f_.type(v).size()) return now;
      expensive = expensive || (from.product == product && from.expensive);
    }
    now.product = product;
    now.expensive = expensive;
    return now;
  }

  void read(ValueId product, ValueId v, OpId reader) {
    Read& read = read_[product.index];
    std::size_t anchor = 0;
    for (ValueId operand : f_.operands(reader))
      if (operand != v) anchor = std::max(anchor, facts_[operand.index].anchor);
    read.later = read.later && (!read.value.valid() || read.value == v) && !is_anchor(f_.kind(reader)) && anchor > f_.def(product).index + 1;
    read.value = v;
  }

  const Function& f_;
  const std::vector<bool>& stored_;
  std::vector<Facts> facts_;
  std::vector<Read> read_;
};

}  // namespace

std::vector<ValueId> saved_values(const Function& f, const std::vector<bool>& stored) { return Search(f, stored).run(); }

}  // namespace burin::passes::fusion
