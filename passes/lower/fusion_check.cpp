// Every condition under which a lowering would stop at a body, found before it begins and said with the place of the op.
#include "passes/lower/fusion_check.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/message_ids.h"
#include "passes/lower/attention_plan.h"
#include "passes/lower/rows_plan.h"

namespace burin::passes::lower {
namespace {

// What ElementEmitter can compute one element of.
bool has_elements(Op op) {
  switch (op) {
    case Op::argmax:
    case Op::argmin:
    case Op::scatter:
      return false;
    default:
      return family_of(op) != Family::structure;
  }
}

class BodyCheck {
 public:
  BodyCheck(const Function& f, OpId fusion)
      : where_(to_string(f.location(fusion))), a_(f.attrs<Op::fusion>(fusion)), body_(*a_.body) {}

  void run() const {
    const bool known = a_.kind == "loop" || a_.kind == "rows" || a_.kind == "matmul" || a_.kind == "scatter" || a_.kind == "attention";
    if (!known) fail_at(where_, Msg::fusion_kind, a_.kind);
    if (body_.results().empty()) refuse("it returns nothing");
    check_ops();
    if (a_.kind == "loop") check_sizes();
    if (a_.kind == "rows") check_rows();
    if (a_.kind == "matmul") check_anchor(Op::dot_general);
    if (a_.kind == "attention") check_attention();
    if (a_.kind == "scatter") check_anchor(Op::scatter);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail_at(where_, Msg::fusion_body, body_.name(), a_.kind, why);
  }
  [[noreturn]] void refuse(OpId op, const std::string& why) const {
    fail_at(to_string(body_.location(op)), Msg::fusion_body, body_.name(), a_.kind, why);
  }

  void check_ops() const {
    body_.for_each_op([&](OpId op) {
      const Op kind = body_.kind(op);
      if (kind == Op::constant) {
        const Literal value = body_.attrs<Op::constant>(op).value;
        if (!value.stores_one_element())
          refuse(op, fmt::format("it holds a constant {}, which must be an operand", to_string(value.type())));
      }
      const bool anchor = kind == Op::scatter && a_.kind == "scatter";
      if (!anchor && !has_elements(kind)) refuse(op, fmt::format("it holds {}", name(kind)));
    });
  }

  void check_sizes() const {
    const Type& first = body_.type(body_.results()[0]);
    for (ValueId result : body_.results())
      if (const Type& type = body_.type(result); type.size() != first.size())
        refuse(fmt::format("its results have different numbers of elements: {} and {}", to_string(first), to_string(type)));
  }

  void check_rows() const {
    RowsPlan plan;
    if (!plan_rows(body_, &plan)) refuse("it has no reductions that run along the rows of one domain");
  }

  void check_attention() const {
    AttentionPlan plan;
    if (const std::string why = plan_attention(body_, &plan); !why.empty()) refuse(why);
  }

  void check_anchor(Op kind) const {
    std::size_t count = 0;
    body_.for_each_op([&](OpId op) {
      if (body_.kind(op) != Op::dot_general && body_.kind(op) != Op::scatter) return;
      if (body_.kind(op) != kind) refuse(op, fmt::format("it holds {}", name(body_.kind(op))));
      if (++count > 1) refuse(op, fmt::format("it holds more than one {}", name(kind)));
      if (kind == Op::dot_general && !is_float(body_.type(body_.result(op)).dtype))
        refuse(op, fmt::format("its dot_general gives {}, not floats", to_string(body_.type(body_.result(op)))));
    });
    if (count == 0) refuse(fmt::format("it holds no {}", name(kind)));
    if (!epilogue_is_aligned(body_))
      refuse(fmt::format("its results do not follow the {} element by element", name(kind)));
  }

  std::string where_;
  attrs_of<Op::fusion> a_;
  const Function& body_;
};

// A value's way from the anchor as the list of its moves, and the extents that it is made of in the order of memory: axes of
// the anchor, or parts of one.
struct Way {
  std::vector<Ints> moves;
  Ints parts;
};

// The parts of each axis of `shape`, outermost first; nothing when an axis ends within a part that it cannot split off: its index
// would have to be divided at run time, and nobody could tell that two places to store to differ.
std::optional<std::vector<Ints>> parts_by_axis(Ints parts, const Shape& shape) {
  std::vector<Ints> result(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0;)
    for (std::int64_t left = shape[axis]; left != 1;) {
      if (parts.empty() || left == 0) return {};
      std::int64_t& part = parts.back();
      if (left % part == 0) {
        result[axis].insert(result[axis].begin(), part);
        left /= part;
        parts.pop_back();
      } else if (part % left == 0) {
        result[axis].insert(result[axis].begin(), left);
        part /= left;
        left = 1;
      } else {
        return {};
      }
    }
  return result;
}

}  // namespace

// Positions of all values made of the anchor agree: elementwise ops meet values moved the same way.
bool epilogue_is_aligned(const Function& body) {
  std::vector<std::optional<Way>> way(body.num_values());
  bool good = true;
  OpId anchor;
  body.for_each_op([&](OpId op) {
    const ValueId v = body.result(op);
    const Op kind = body.kind(op);
    const Shape& shape = body.type(v).shape;
    if (kind == Op::dot_general || kind == Op::scatter) {
      anchor = op;
      for (ValueId operand : body.operands(op)) good = good && !way[operand.index];
      way[v.index].emplace();
      for (std::int64_t extent : shape)
        if (extent != 1) way[v.index]->parts.push_back(extent);
      return;
    }
    std::optional<Way> mine;
    for (ValueId operand : body.operands(op)) {
      const auto& w = way[operand.index];
      if (!w) continue;
      if (mine && mine->moves != w->moves) good = false;
      mine = w;
    }
    if (!mine) return;
    const Family family = family_of(kind);
    if (kind == Op::transpose) {
      good = good && body.kind(anchor) != Op::scatter;  // its lowering goes over the result in the order of memory
      const Ints permutation = body.attrs<Op::transpose>(op).permutation;
      mine->moves.push_back(permutation);
      const auto by_axis = parts_by_axis(mine->parts, body.type(body.operand(op, 0)).shape);
      good = good && by_axis.has_value();
      mine->parts.clear();
      for (std::int64_t axis : permutation)
        if (by_axis)
          for (std::int64_t part : (*by_axis)[static_cast<std::size_t>(axis)]) mine->parts.push_back(part);
    } else if (kind == Op::reshape) {
      mine->moves.emplace_back(shape.begin(), shape.end());  // no permutation: one has a 0, the shape of what has elements none
    } else if (family != Family::elementwise && family != Family::compare) {
      good = false;
    }
    way[v.index] = mine;
  });
  for (ValueId result : body.results()) good = good && way[result.index].has_value();
  return good;
}

void check_fusions(const Function& fused) {
  fused.for_each_op([&](OpId op) {
    const Op kind = fused.kind(op);
    if (kind == Op::fusion) return BodyCheck(fused, op).run();
    if (kind != Op::constant && kind != Op::optimization_barrier)
      fail_at(to_string(fused.location(op)), Msg::not_fused, name(kind));
  });
}

}  // namespace burin::passes::lower
