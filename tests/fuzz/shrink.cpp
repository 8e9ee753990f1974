#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/verifier.h"

namespace burin::fuzz {
namespace {

using namespace ir;

/// How to copy a function: every hook may put something else in an op's place.
struct Edit {
  /// The value of an op's only result, or nothing: copy it.
  std::function<std::optional<ValueId>(Builder&, OpId, const std::vector<ValueId>&)> replace;
  std::function<Type(Type)> type = [](Type t) { return t; };
  std::function<AttrValue(const AttrInfo&, const AttrValue&)> attribute = [](const AttrInfo&, const AttrValue& v) {
    return v;
  };
  std::vector<ValueId> results;  // of the old function
};

// Only what the results need is copied. Throws Error when the edited ops do not fit together.
Function copied(const Function& f, const Edit& edit) {
  std::vector<bool> needed(f.num_values(), false);
  for (ValueId result : edit.results) needed[result.index] = true;
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    const OpId op{i};
    bool any = false;
    for (std::size_t r = 0; r < f.num_results(op); ++r) any = any || needed[f.result(op, r).index];
    if (any)
      for (ValueId operand : f.operands(op)) needed[operand.index] = true;
  }
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args())
    if (needed[arg.index]) map[arg.index] = b.add_arg(edit.type(f.type(arg)), f.value_name(arg));
  f.for_each_op([&](OpId op) {
    bool any = false;
    for (std::size_t r = 0; r < f.num_results(op); ++r) any = any || needed[f.result(op, r).index];
    if (!any) return;
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    if (edit.replace)
      if (const auto value = edit.replace(b, op, operands)) {
        map[f.result(op).index] = *value;
        return;
      }
    std::vector<AttrValue> attributes;
    for (std::size_t a = 0; a < f.attributes(op).size(); ++a)
      attributes.push_back(edit.attribute(info(f.kind(op)).attributes[a], f.attributes(op)[a]));
    const ValueId first = b.append(f.kind(op), operands, std::move(attributes));
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : edit.results) results.push_back(map[result.index]);
  return without_unused(b.finish(std::move(results)));
}

std::vector<ValueId> results_of(const Function& f) { return {f.results().begin(), f.results().end()}; }

Ints extents_of(const Function& f) {
  std::set<std::int64_t> all;
  for (std::size_t i = 0; i < f.num_values(); ++i)
    for (std::int64_t n : f.type(ValueId{i}).shape) all.insert(n);
  return {all.rbegin(), all.rend()};
}

class Shrinker {
 public:
  Shrinker(Function f, const std::function<bool(const Function&)>& fails, double seconds)
      : f_(std::move(f)),
        fails_(fails),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds))) {}

  Function run() {
    accept([&] { return without_unused(f_); });
    for (bool changed = true; changed && !late();) {
      changed = fewer_results();
      changed = opened_bodies() || changed;
      changed = simpler_ops() || changed;
      changed = smaller_extents() || changed;
    }
    return f_;
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() > end_; }

  template <class Make>
  bool accept(Make&& make) {
    if (late()) return false;
    try {
      Function candidate = make();
      if (same_program(candidate, f_) || !verify(candidate).empty() || !fails_(candidate)) return false;
      f_ = std::move(candidate);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  bool fewer_results() {
    bool changed = false;
    for (std::size_t r = 0; r < f_.results().size() && f_.results().size() > 1;) {
      Edit edit;
      edit.results = results_of(f_);
      edit.results.erase(edit.results.begin() + static_cast<std::ptrdiff_t>(r));
      if (accept([&] { return copied(f_, edit); }))
        changed = true;
      else
        ++r;
    }
    // A value in the middle instead of the result that it leads to.
    for (std::size_t r = 0; r < f_.results().size(); ++r) {
      for (std::size_t v = 0; v < f_.num_values() && v < f_.results()[r].index; ++v) {
        if (f_.is_arg(ValueId{v})) continue;
        Edit edit;
        edit.results = results_of(f_);
        edit.results[r] = ValueId{v};
        if (accept([&] { return copied(f_, edit); })) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  // Each structure op in turn replaced by its body.
  bool opened_bodies() {
    bool changed = false;
    for (std::size_t i = 0; i < f_.num_ops() && !late();) {
      const bool opened = accept([&] { return with_opened(OpId{i}); });
      changed = changed || opened;
      if (!opened) ++i;
    }
    return changed;
  }

  Function with_opened(OpId target) {
    const Body* body = nullptr;
    for (const AttrValue& attribute : f_.attributes(target))
      if (!body) body = std::get_if<Body>(&attribute);
    if (!body) return f_;
    Builder b(f_.name());
    std::vector<ValueId> map(f_.num_values()), operands;
    for (ValueId arg : f_.args()) map[arg.index] = b.add_arg(f_.type(arg), f_.value_name(arg));
    f_.for_each_op([&](OpId op) {
      operands.clear();
      for (ValueId operand : f_.operands(op)) operands.push_back(map[operand.index]);
      std::vector<ValueId> results;
      if (op == target) {
        results = b.inline_body(**body, operands);
      } else {
        const ValueId first = b.append_copy(f_, op, operands);
        for (std::size_t r = 0; r < f_.num_results(op); ++r) results.push_back(ValueId{first.index + r});
      }
      for (std::size_t r = 0; r < results.size(); ++r) map[f_.result(op, r).index] = results[r];
    });
    std::vector<ValueId> results;
    for (ValueId result : f_.results()) results.push_back(map[result.index]);
    return b.finish(std::move(results));
  }

  // From the last op to the first: an argument in its place, one of its operands, a constant.
  bool simpler_ops() {
    bool changed = false;
    for (std::size_t i = f_.num_ops(); i-- > 0 && !late();) {
      if (i >= f_.num_ops() || f_.num_results(OpId{i}) != 1) continue;
      const bool is_constant = f_.kind(OpId{i}) == Op::constant;
      const auto replaced = [&](auto&& value) {
        Edit edit;
        edit.results = results_of(f_);
        edit.replace = [&](Builder& b, OpId op, const std::vector<ValueId>& operands) -> std::optional<ValueId> {
          if (op.index != i) return {};
          return value(b, f_.type(f_.result(op)), operands);
        };
        return accept([&] { return copied(f_, edit); });
      };
      bool done = false;
      if (is_constant) {
        if (!f_.attrs<Op::constant>(OpId{i}).value.is_splat())
          done = replaced([&](Builder& b, const Type& type, const auto&) { return std::optional(b.full(type, 1)); });
        changed = changed || done;
        continue;
      }
      const std::string name = "r" + std::to_string(next_name_++);
      done = replaced([&](Builder& b, const Type& type, const auto&) { return std::optional(b.add_arg(type, name)); });
      for (std::size_t k = 0; !done && k < f_.operands(OpId{i}).size(); ++k)
        done = replaced([&](Builder& b, const Type& type, const std::vector<ValueId>& operands) {
          return b.type(operands[k]) == type ? std::optional(operands[k]) : std::nullopt;
        });
      for (double value : {0.0, 1.0})
        if (!done)
          done =
              replaced([&](Builder& b, const Type& type, const auto&) { return std::optional(b.full(type, value)); });
      changed = changed || done;
    }
    return changed;
  }

  // Every axis of one extent becomes shorter, in arguments, attributes and constants alike.
  bool smaller_extents() {
    bool changed = false;
    for (std::int64_t from : extents_of(f_))
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, from / 2, from - 1}) {
        if (to >= from || to < 1 || late()) continue;
        if (accept([&] { return with_extent(from, to); })) {
          changed = true;
          break;
        }
      }
    return changed;
  }

  Function with_extent(std::int64_t from, std::int64_t to) {
    const auto shortened = [&](Shape shape) {
      for (std::size_t axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] == from) shape[axis] = to;
      return shape;
    };
    Edit edit;
    edit.results = results_of(f_);
    edit.type = [&](Type type) { return Type{type.dtype, shortened(type.shape)}; };
    edit.attribute = [&](const AttrInfo& attribute, const AttrValue& value) -> AttrValue {
      if (const Literal* literal = std::get_if<Literal>(&value)) {
        const Shape shape = shortened(literal->shape());
        if (shape == literal->shape()) return value;
        Literal first(Type{literal->dtype(), {}});
        Literal all = *literal;
        all.expand();
        if (is_float(first.dtype()))
          first.set(0, all.at(0));
        else
          first.set_int(0, all.int_at(0));
        return Literal::splat(shape, first);
      }
      const std::string_view name = attribute.name;
      if (name != "shape" && name != "sizes" && name != "slice_sizes" && name != "limit") return value;
      Ints extents = std::get<Ints>(value);
      std::replace(extents.begin(), extents.end(), from, to);
      return extents;
    };
    return copied(f_, edit);
  }

  Function f_;
  const std::function<bool(const Function&)>& fails_;
  std::chrono::steady_clock::time_point end_;
  int next_name_ = 0;
};

}  // namespace

Function shrink(Function f, const std::function<bool(const Function&)>& fails, double seconds) {
  return Shrinker(std::move(f), fails, seconds).run();
}

Function without_unused(const Function& f) {
  std::vector<bool> needed(f.num_values(), false);
  for (ValueId result : f.results()) needed[result.index] = true;
  for (std::size_t i = f.num_ops(); i-- > 0;) {
    bool any = info(f.kind(OpId{i})).effect == Effect::ordered;
    for (std::size_t r = 0; r < f.num_results(OpId{i}); ++r) any = any || needed[f.result(OpId{i}, r).index];
    if (any)
      for (ValueId operand : f.operands(OpId{i})) needed[operand.index] = true;
  }
  Builder b(f.name());
  std::vector<ValueId> map(f.num_values()), operands;
  for (ValueId arg : f.args())
    if (needed[arg.index]) map[arg.index] = b.add_arg(f.type(arg), f.value_name(arg));
  f.for_each_op([&](OpId op) {
    bool any = info(f.kind(op)).effect == Effect::ordered;
    for (std::size_t r = 0; r < f.num_results(op); ++r) any = any || needed[f.result(op, r).index];
    if (!any) return;
    operands.clear();
    for (ValueId operand : f.operands(op)) operands.push_back(map[operand.index]);
    const ValueId first = b.append_copy(f, op, operands);
    for (std::size_t r = 0; r < f.num_results(op); ++r) map[f.result(op, r).index] = ValueId{first.index + r};
  });
  std::vector<ValueId> results;
  for (ValueId result : f.results()) results.push_back(map[result.index]);
  return b.finish(std::move(results));
}

}  // namespace burin::fuzz
