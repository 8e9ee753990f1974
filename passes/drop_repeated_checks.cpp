// Which indices have been checked is known by what they are computed from: two gathers over the same ids report the same
// mistakes, wherever fusion has put copies of them.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ir/rewriter.h"
#include "passes/passes.h"

namespace burin::passes {
namespace {

using namespace ir;

// What a value is computed from, across fusions.
struct Origin {
  Hash128 value;     // equal for equal values
  Hash128 elements;  // equal also when the same elements stand in another order or more than once
};

bool is_checked(Op op) { return op == Op::gather || op == Op::scatter; }

bool has_checks(const Function& body) {
  return any_op(body, [&](OpId op) { return is_checked(body.kind(op)); });
}

bool keeps_all_elements(Op op, const Type& result) {
  return op == Op::reshape || op == Op::transpose || op == Op::reverse || (op == Op::broadcast && result.size() > 0);
}

std::vector<Origin> origins(const Function& f, std::span<const Origin> args) {
  std::vector<Origin> all(f.num_values());
  for (std::size_t i = 0; i < f.args().size(); ++i) all[f.args()[i].index] = args[i];
  f.for_each_op([&](OpId op) {
    Hasher hasher;
    hasher.add(f.kind(op));
    hasher.add(f.operands(op).size());
    for (ValueId operand : f.operands(op)) {
      hasher.add(all[operand.index].value.low);
      hasher.add(all[operand.index].value.high);
    }
    for (const AttrValue& value : f.attributes(op)) hash_attribute(hasher, value);
    for (std::size_t r = 0; r < f.num_results(op); ++r) {
      hasher.add(r);
      const ValueId result = f.result(op, r);
      const Hash128 value = hasher.finish();
      all[result.index] = {value, keeps_all_elements(f.kind(op), f.type(result)) ? all[f.operand(op, 0).index].elements : value};
    }
  });
  return all;
}

/// By value: every element is computed whenever the function runs. Kernels compute only what is asked for.
std::vector<bool> wholly_computed(const Function& f) {
  std::vector<bool> whole(f.num_values(), false);
  for (ValueId result : f.results()) whole[result.index] = true;
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    const OpId op{i};
    const Op kind = f.kind(op);
    const Family family = family_of(kind);
    const bool asks_for_all = family == Family::elementwise || family == Family::compare || family == Family::reduce ||
                              kind == Op::dot_general || keeps_all_elements(kind, f.type(f.result(op)));
    if (!asks_for_all || f.num_results(op) != 1 || !whole[f.result(op).index] || f.type(f.result(op)).size() == 0) continue;
    for (ValueId operand : f.operands(op)) whole[operand.index] = true;
  }
  return whole;
}

class Checks {
 public:
  explicit Checks(const Function& f) {
    for (std::size_t i = 0; i < f.args().size(); ++i) {
      Hasher hasher;
      hasher.add(std::string_view("argument"));
      hasher.add(i);
      const Hash128 value = hasher.finish();
      args_.push_back({value, value});
    }
  }

  Function run(const Function& f) { return rewrite(f, args_, true); }

 private:
  // The largest start that is in range, and the indices' origin; nothing when an index has several components.
  struct Check {
    Hash128 elements;
    std::int64_t last = -1;
    bool known = false;
  };
  static Check check_of(const Function& f, OpId op, const std::vector<Origin>& from) {
    const Shape& operand = f.type(f.operand(op, 0)).shape;
    const Hash128 elements = from[f.operand(op, 1).index].elements;
    if (f.kind(op) == Op::gather) {
      const auto a = f.attrs<Op::gather>(op);
      if (a.mode != IndexMode::error || a.start_index_map.size() != 1) return {};
      const auto axis = static_cast<std::size_t>(a.start_index_map[0]);
      return {elements, operand[axis] - a.slice_sizes[axis], true};
    }
    // Of a scatter only windows of one element along the axis: no slice size is written down.
    const auto a = f.attrs<Op::scatter>(op);
    if (a.mode != IndexMode::error || a.scatter_dims_to_operand_dims.size() != 1 ||
        std::find(a.inserted_window_dims.begin(), a.inserted_window_dims.end(), a.scatter_dims_to_operand_dims[0]) ==
            a.inserted_window_dims.end())
      return {};
    return {elements, operand[static_cast<std::size_t>(a.scatter_dims_to_operand_dims[0])] - 1, true};
  }

  bool is_repeated(const Check& check) const {
    const auto found = checked_.find(check.elements);
    return check.known && found != checked_.end() && found->second <= check.last;
  }
  void note(const Check& check) {
    checked_[check.elements] = check.last;
  }

  Function rewrite(const Function& f, std::span<const Origin> args, bool fusions) {
    const std::vector<Origin> from = origins(f, args);
    const std::vector<bool> whole = wholly_computed(f);
    Rewriter rewriter(f);
    f.for_each_op([&](OpId op) {
      rewriter.b.set_location(f.location(op));
      const Op kind = f.kind(op);
      if (kind == Op::fusion && fusions) return rewrite_fusion(f, op, from, rewriter);
      if (!is_checked(kind)) {
        rewriter.copy(op);
        return;
      }
      const Check check = check_of(f, op, from);
      if (is_repeated(check)) {
        if (kind == Op::gather) {
          auto a = f.attrs<Op::gather>(op);
          a.mode = IndexMode::clip;
          rewriter.replace_results(op, rewriter.b.emit<Op::gather>(rewriter.operands(op), a));
        } else {
          auto a = f.attrs<Op::scatter>(op);
          a.mode = IndexMode::clip;
          rewriter.replace_results(op, rewriter.b.emit<Op::scatter>(rewriter.operands(op), a));
        }
        return;
      }
      // A gather without elements reads no index.
      if (check.known && kind == Op::gather && whole[f.result(op).index] && f.type(f.result(op)).size() > 0) note(check);
      rewriter.copy(op);
    });
    return rewriter.finish();
  }

  void rewrite_fusion(const Function& f, OpId op, const std::vector<Origin>& from, Rewriter& rewriter) {
    const auto a = f.attrs<Op::fusion>(op);
    if (!has_checks(*a.body)) {
      rewriter.copy(op);
      return;
    }
    std::vector<Origin> operands;
    for (ValueId operand : f.operands(op)) operands.push_back(from[operand.index]);
    auto body = std::make_shared<const Function>(rewrite(*a.body, operands, false));
    rewriter.replace_results(op, rewriter.b.call(Op::fusion, rewriter.operands(op), {a.kind, std::move(body)})[0]);
  }

  std::vector<Origin> args_;
  std::unordered_map<Hash128, std::int64_t> checked_;  // the largest index that may have passed, by elements
};

}  // namespace

Function drop_repeated_checks(const Function& f) {
  const auto checks = [&](OpId op) { return is_checked(f.kind(op)) || (f.kind(op) == Op::fusion && has_checks(*f.attrs<Op::fusion>(op).body)); };
  return any_op(f, checks) ? Checks(f).run(f) : f;
}

}  // namespace burin::passes
