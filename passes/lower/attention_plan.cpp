#include "passes/lower/attention_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "passes/constants.h"

namespace burin::passes::lower {
namespace {

constexpr std::int64_t max_head = 512;  // elements of a row of either factor

using Dims = std::vector<Affine>;

std::string described(const Function& body, OpId op) {
  const std::string where = to_string(body.location(op));
  return std::string(name(body.kind(op))) + (where.empty() ? "" : " (" + where + ")");
}

// The places of the domain's values, from the first product's axes on, in both directions along the data flow.
class DomainFinder {
 public:
  DomainFinder(const Function& body, AttentionDomain* domain) : body_(body), d_(*domain) {}

  std::string run() {
    d_ = {};
    d_.level.assign(body_.num_values(), AttentionLevel::free);
    d_.place.resize(body_.num_values());
    d_.reduced.assign(body_.num_values(), false);
    body_.for_each_op([&](OpId op) {
      if (why_.empty()) classify(op);
    });
    if (why_.empty() && d_.scores.empty()) why_ = "it holds no product of two operands";
    if (!why_.empty()) return why_;
    number_axes();
    do {
      changed_ = false;
      body_.for_each_op([&](OpId op) {
        if (why_.empty()) relate(op);
      });
      for (std::size_t i = body_.num_ops(); i-- > 0 && why_.empty();) relate(OpId{i});
    } while (changed_ && why_.empty());
    body_.for_each_op([&](OpId op) {
      const AttentionLevel level = level_of(body_.result(op));
      const bool placed = d_.place[body_.result(op).index].has_value();
      if (why_.empty() && (level == AttentionLevel::domain || level == AttentionLevel::row) && !placed)
        refuse(op, "is not tied to the scores element by element");
    });
    if (why_.empty()) place_products();
    return why_;
  }

 private:
  AttentionLevel level_of(ValueId v) const { return d_.level[v.index]; }
  void refuse(OpId op, const std::string& what) {
    if (why_.empty()) why_ = described(body_, op) + " " + what;
  }

  void classify(OpId op) {
    const Op kind = body_.kind(op);
    const ValueId result = body_.result(op);
    const Type& type = body_.type(result);
    AttentionLevel most = AttentionLevel::free;
    bool same = true, reduced = false;
    for (ValueId operand : body_.operands(op)) {
      const AttentionLevel level = level_of(operand);
      reduced = reduced || d_.reduced[operand.index];
      if (level == AttentionLevel::free) continue;
      same = same && (most == AttentionLevel::free || most == level);
      most = level;
    }
    d_.reduced[result.index] = reduced;
    if (kind == Op::dot_general) return classify_dot(op, most);
    if (family_of(kind) == Family::reduce) {
      if (most != AttentionLevel::domain) return refuse(op, "reduces something else than the scores");
      if (kind != Op::reduce_sum && kind != Op::reduce_max) return refuse(op, "is no sum and no maximum");
      if (type.dtype != DType::f32) return refuse(op, "is not in f32");
      d_.level[result.index] = AttentionLevel::row;
      d_.reduced[result.index] = true;
      d_.targets.push_back(op);
      return;
    }
    if (most == AttentionLevel::free) return;
    if (!same) return refuse(op, "mixes values of different shape");
    d_.level[result.index] = most;
    const Family family = family_of(kind);
    if (most == AttentionLevel::out) {
      if (kind != Op::convert && kind != Op::transpose && kind != Op::reshape) refuse(op, "follows a product");
      return;
    }
    if (family == Family::elementwise || family == Family::compare || kind == Op::transpose || kind == Op::reshape)
      return;
    if (kind != Op::broadcast) return refuse(op, "is neither arithmetic on scores nor a move that keeps all of them");
    if (type.size() != size_) return refuse(op, "spreads one value per row over something else than the scores");
    d_.level[result.index] = AttentionLevel::domain;
  }

  void classify_dot(OpId op, AttentionLevel most) {
    const auto a = body_.attrs<Op::dot_general>(op);
    const Type& type = body_.type(body_.result(op));
    if (a.lhs_contract.size() != 1) return refuse(op, "contracts several axes");
    if (type.dtype != DType::f32) return refuse(op, "does not give f32");
    for (ValueId operand : body_.operands(op))
      if (const DType dtype = body_.type(operand).dtype; dtype != DType::f32 && !is_half(dtype))
        return refuse(op, "multiplies neither f32 nor 16-bit floats");
    const std::int64_t depth = body_.type(body_.operand(op, 0)).shape[static_cast<std::size_t>(a.lhs_contract[0])];
    if (most == AttentionLevel::free) {
      if (depth < 1 || depth > max_head)
        return refuse(op, fmt::format("contracts {} elements, expected 1 to {}", depth, max_head));
      if (size_ >= 0 && type.size() != size_) return refuse(op, "gives another number of scores");
      size_ = type.size();
      d_.level[body_.result(op).index] = AttentionLevel::domain;
      d_.scores.push_back(op);
      return;
    }
    const bool one = (level_of(body_.operand(op, 0)) == AttentionLevel::domain) !=
                     (level_of(body_.operand(op, 1)) == AttentionLevel::domain);
    if (most != AttentionLevel::domain || !one) return refuse(op, "multiplies no scores, or two of them");
    const std::size_t side = domain_side(body_, d_, op), other = 1 - side;
    if (level_of(body_.operand(op, other)) != AttentionLevel::free)
      return refuse(op, "multiplies scores with what is made of them");
    const Type& factor = body_.type(body_.operand(op, other));
    if (factor.rank() != a.lhs_batch.size() + 2) return refuse(op, "has no or several axes beside the contracted one");
    if (type.size() == 0 || inner_extent(op) > max_head)
      return refuse(op, fmt::format("gives rows of more than {} elements", max_head));
    d_.level[body_.result(op).index] = AttentionLevel::out;
    d_.reduced[body_.result(op).index] = true;
    d_.targets.push_back(op);
  }

  // The extent that the free factor of a product adds.
  std::int64_t inner_extent(OpId op) const {
    const auto a = body_.attrs<Op::dot_general>(op);
    const std::size_t side = domain_side(body_, d_, op);
    const Shape& result = body_.type(body_.result(op)).shape;
    return side == 0 ? result[result.rank() - 1] : result[a.lhs_batch.size()];
  }

  void set_inner(std::int64_t extent) {
    variables_.emplace();
    for (std::int64_t axis : d_.extents) variables_->b.new_var("", axis);
    variables_->b.new_var("", extent);
  }

  void number_axes() {
    const ValueId first = body_.result(d_.scores[0]);
    Dims dims;
    for (std::int64_t extent : body_.type(first).shape) {
      if (extent == 0) return refuse(d_.scores[0], "gives nothing");
      if (extent == 1) {
        dims.emplace_back(0);
        continue;
      }
      dims.emplace_back(VarId{d_.extents.size()});
      d_.extents.push_back(extent);
    }
    set_inner(1);
    set(d_.scores[0], first, std::move(dims));
  }

  void set(OpId op, ValueId v, Dims dims) {
    auto& place = d_.place[v.index];
    if (place) {
      if (*place->dims != dims) refuse(op, "meets the scores at other positions");
      return;
    }
    place = Index::of_dims(body_.type(v).shape, std::move(dims));
    changed_ = true;
  }
  const Dims* place(ValueId v) const { return d_.place[v.index] ? &*d_.place[v.index]->dims : nullptr; }

  static Affine flat(const Shape& shape, const Dims& dims) {
    Affine offset;
    std::int64_t stride = 1;
    for (std::size_t i = shape.rank(); i-- > 0;) {
      offset = offset + dims[i] * stride;
      stride *= shape[i];
    }
    return offset;
  }
  std::optional<Dims> reshaped(const Shape& from, const Dims& dims, const Shape& to) const {
    Affine rest = flat(from, dims);
    Dims result(to.rank());
    for (std::size_t i = to.rank(); i-- > 0;) {
      const auto parts = variables_->space.divide(rest, to[i]);
      if (!parts) return std::nullopt;
      rest = parts->first;
      result[i] = parts->second;
      if (to[i] == 1) result[i] = Affine(0);
    }
    return result;
  }

  // What an op says of the places of its operands and its result, once one of them is known.
  void relate(OpId op) {
    const ValueId result = body_.result(op);
    const AttentionLevel level = level_of(result);
    if (level == AttentionLevel::free || level == AttentionLevel::out) return;
    const Op kind = body_.kind(op);
    if (kind == Op::dot_general) return;
    const ValueId x = body_.operand(op, 0);
    const Shape &from = body_.type(x).shape, &to = body_.type(result).shape;
    if (family_of(kind) == Family::reduce) {
      if (const Dims* dims = place(x)) {
        Dims rest;
        const Ints axes = std::get<Ints>(body_.attributes(op)[0]);
        for (std::size_t i = 0; i < dims->size(); ++i)
          if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end())
            rest.push_back((*dims)[i]);
        set(op, result, std::move(rest));
      }
      return;
    }
    if (kind == Op::transpose) {
      const Ints permutation = body_.attrs<Op::transpose>(op).permutation;
      if (const Dims* dims = place(x)) {
        Dims moved;
        for (std::int64_t axis : permutation) moved.push_back((*dims)[static_cast<std::size_t>(axis)]);
        set(op, result, std::move(moved));
      } else if (const Dims* dims = place(result)) {
        Dims moved(dims->size());
        for (std::size_t i = 0; i < moved.size(); ++i) moved[static_cast<std::size_t>(permutation[i])] = (*dims)[i];
        set(op, x, std::move(moved));
      }
      return;
    }
    if (kind == Op::reshape) {
      const bool forward = place(x) != nullptr;
      const Dims* dims = forward ? place(x) : place(result);
      if (dims == nullptr) return;
      auto other = forward ? reshaped(from, *dims, to) : reshaped(to, *dims, from);
      if (!other) return refuse(op, "cuts an axis of the scores where no index can follow");
      return set(op, forward ? result : x, std::move(*other));
    }
    if (kind == Op::broadcast) {
      const Dims* dims = place(result);
      if (dims == nullptr) return;
      const Ints axes = body_.attrs<Op::broadcast>(op).dims;
      Dims source;
      for (std::size_t i = 0; i < axes.size(); ++i)
        source.push_back(from[i] == 1 ? Affine(0) : (*dims)[static_cast<std::size_t>(axes[i])]);
      return set(op, x, std::move(source));
    }
    const Dims* known = place(result);
    for (ValueId operand : body_.operands(op))
      if (known == nullptr && level_of(operand) != AttentionLevel::free) known = place(operand);
    if (known == nullptr) return;
    const Dims dims = *known;
    for (ValueId operand : body_.operands(op))
      if (level_of(operand) != AttentionLevel::free) set(op, operand, dims);
    set(op, result, dims);
  }

  // Products lie where their part of the domain does, with one more axis.
  void place_products() {
    body_.for_each_op([&](OpId op) {
      const ValueId v = body_.result(op);
      if (level_of(v) != AttentionLevel::out || !why_.empty()) return;
      const Shape& shape = body_.type(v).shape;
      const VarId inner = d_.inner();
      const Op kind = body_.kind(op);
      if (kind == Op::dot_general) {
        const auto a = body_.attrs<Op::dot_general>(op);
        const std::size_t side = domain_side(body_, d_, op);
        const Ints &batch = side == 0 ? a.lhs_batch : a.rhs_batch,
                   &contract = side == 0 ? a.lhs_contract : a.rhs_contract;
        const Dims& dims = *place(body_.operand(op, side));
        Dims result, free;
        for (std::int64_t axis : batch) result.push_back(dims[static_cast<std::size_t>(axis)]);
        for (std::size_t axis = 0; axis < dims.size(); ++axis) {
          const auto is = [&](const Ints& list) {
            return std::find(list.begin(), list.end(), static_cast<std::int64_t>(axis)) != list.end();
          };
          if (!is(batch) && !is(contract)) free.push_back(dims[axis]);
        }
        if (side == 1) result.emplace_back(inner);
        result.insert(result.end(), free.begin(), free.end());
        if (side == 0) result.emplace_back(inner);
        d_.place[v.index] = Index::of_dims(shape, std::move(result));
        inner_of_[v.index] = inner_extent(op);
        return;
      }
      const ValueId x = body_.operand(op, 0);
      const Index& from = *d_.place[x.index];
      inner_of_[v.index] = inner_of_[x.index];
      set_inner(inner_of_[v.index]);
      if (kind == Op::convert) {
        d_.place[v.index] = from;
      } else if (kind == Op::reshape) {
        if (!from.dims) {
          d_.place[v.index] = Index::of_flat(shape, *from.flat);
        } else if (auto dims = reshaped(from.shape, *from.dims, shape)) {
          d_.place[v.index] = Index::of_dims(shape, std::move(*dims));
        } else {
          d_.place[v.index] = Index::of_flat(shape, flat(from.shape, *from.dims));
        }
      } else {
        if (!from.dims) return refuse(op, "turns axes that a reshape has joined");
        Dims moved;
        for (std::int64_t axis : body_.attrs<Op::transpose>(op).permutation)
          moved.push_back((*from.dims)[static_cast<std::size_t>(axis)]);
        d_.place[v.index] = Index::of_dims(shape, std::move(moved));
      }
    });
  }

  const Function& body_;
  AttentionDomain& d_;
  struct Variables {
    Kernel kernel;
    BlockBuilder b{kernel};
    IndexSpace space{b};
  };
  std::optional<Variables> variables_;  // the axes and, behind them, the inner one, whose extent differs among products
  std::string why_;
  std::int64_t size_ = -1;
  bool changed_ = false;
  std::map<std::uint32_t, std::int64_t> inner_of_;
};

std::optional<std::size_t> bare(const Affine& a) {
  if (a.constant != 0 || a.terms.size() != 1 || a.terms[0].second != 1) return std::nullopt;
  return a.terms[0].first.index;
}

// The axes that an operand of a score varies along.
std::vector<bool> axes_of_operand(const Function& body, const AttentionDomain& d, OpId score, std::size_t side,
                                  bool free_only) {
  const auto a = body.attrs<Op::dot_general>(score);
  const Dims& dims = *d.place[body.result(score).index]->dims;
  const std::size_t batch = a.lhs_batch.size(), lhs_free = body.type(body.operand(score, 0)).rank() - batch - 1;
  std::vector<bool> axes(d.extents.size(), false);
  for (std::size_t i = free_only ? batch : 0; i < dims.size(); ++i) {
    const bool mine = i < batch || (i < batch + lhs_free) == (side == 0);
    if (!mine) continue;
    for (const auto& [var, coefficient] : dims[i].terms) axes[var.index] = true;
  }
  return axes;
}

}  // namespace

std::size_t domain_side(const Function& body, const AttentionDomain& domain, OpId product) {
  return domain.level[body.operand(product, 0).index] == AttentionLevel::domain ? 0 : 1;
}

std::string find_domain(const Function& body, AttentionDomain* domain) { return DomainFinder(body, domain).run(); }

std::optional<std::size_t> summed_axis(const Function& body, const AttentionDomain& d, OpId target) {
  if (body.kind(target) == Op::dot_general) {
    const auto a = body.attrs<Op::dot_general>(target);
    const std::size_t side = domain_side(body, d, target);
    const std::int64_t axis = side == 0 ? a.lhs_contract[0] : a.rhs_contract[0];
    return bare((*d.place[body.operand(target, side).index]->dims)[static_cast<std::size_t>(axis)]);
  }
  const Ints axes = std::get<Ints>(body.attributes(target)[0]);
  if (axes.size() != 1) return std::nullopt;
  return bare((*d.place[body.operand(target, 0).index]->dims)[static_cast<std::size_t>(axes[0])]);
}

namespace {

// One value per row, spread: the same all along the moving axis.
bool is_per_row(const Function& body, const AttentionPlan& plan, ValueId v) {
  if (plan.level[v.index] == AttentionLevel::row) return true;
  if (body.is_arg(v)) return false;
  const OpId op = body.def(v);
  switch (body.kind(op)) {
    case Op::constant:
      return true;
    case Op::broadcast:
    case Op::reshape:
    case Op::transpose:
      return is_per_row(body, plan, body.operand(op, 0));
    default:
      break;
  }
  if (family_of(body.kind(op)) != Family::elementwise && family_of(body.kind(op)) != Family::compare) return false;
  return std::ranges::all_of(body.operands(op), [&](ValueId x) { return is_per_row(body, plan, x); });
}

// exp(logits - shift), where the maximum is that of the logits and the shift one value per row.
bool is_exponential(const Function& body, const AttentionPlan& plan, ValueId v) {
  if (!plan.maximum.valid() || body.kind(body.def(v)) != Op::exp) return false;
  const ValueId below = body.operand(body.def(v), 0);
  if (body.is_arg(below) || body.kind(body.def(below)) != Op::sub) return false;
  return body.operand(body.def(below), 0) == body.operand(plan.maximum, 0) &&
         is_per_row(body, plan, body.operand(body.def(below), 1));
}

}  // namespace

std::string plan_attention(const Function& body, AttentionPlan* plan) {
  *plan = {};
  AttentionPlan& p = *plan;
  if (std::string why = find_domain(body, &p); !why.empty()) return why;
  if (p.targets.empty()) return "nothing sums over its scores";
  std::optional<std::size_t> moving;
  for (OpId target : p.targets) {
    const auto axis = summed_axis(body, p, target);
    if (!axis) return described(body, target) + " does not sum over one whole axis of the scores";
    if (moving && *moving != *axis)
      return described(body, target) + " sums over another axis than what stands before it";
    moving = axis;
  }
  p.moving = *moving;
  // The other axis of the tiles: the longest that the moving factor of the first score does not have.
  std::vector<bool> can_be_fixed(p.extents.size(), true);
  for (OpId score : p.scores) {
    const auto lhs = axes_of_operand(body, p, score, 0, false), rhs = axes_of_operand(body, p, score, 1, false);
    if (lhs[p.moving] == rhs[p.moving])
      return described(body, score) + " has the summed axis in both factors, or in none";
    p.moving_side.push_back(lhs[p.moving] ? 0 : 1);
    const auto& moves = lhs[p.moving] ? lhs : rhs;
    const auto& stays = lhs[p.moving] ? rhs : lhs;
    for (std::size_t axis = 0; axis < p.extents.size(); ++axis)
      can_be_fixed[axis] = can_be_fixed[axis] && stays[axis] && !moves[axis];
  }
  for (OpId target : p.targets) {
    if (body.kind(target) != Op::dot_general) continue;
    const std::size_t side = domain_side(body, p, target);
    const auto a = body.attrs<Op::dot_general>(target);
    for (std::int64_t axis : side == 0 ? a.lhs_batch : a.rhs_batch)
      for (const auto& [var, c] :
           (*p.place[body.operand(target, side).index]->dims)[static_cast<std::size_t>(axis)].terms)
        can_be_fixed[var.index] = false;
  }
  std::optional<std::size_t> fixed;
  for (std::size_t axis = 0; axis < p.extents.size(); ++axis)
    if (can_be_fixed[axis] && (!fixed || p.extents[axis] >= p.extents[*fixed])) fixed = axis;
  if (!fixed) return "its factors have no axis each that the other one has not";
  p.fixed = *fixed;
  for (OpId target : p.targets) {
    if (body.kind(target) == Op::reduce_max) {
      if (p.maximum.valid()) return "it holds two maxima";
      p.maximum = target;
    } else {
      (body.kind(target) == Op::dot_general ? p.products : p.sums).push_back(target);
    }
  }
  const auto summed = [&](OpId target) { return summed_value(body, p, target); };
  if (p.maximum.valid() && p.reduced[summed(p.maximum).index])
    return described(body, p.maximum) + " is the maximum of what another sum reaches";
  bool rescaled = false;
  for (OpId target : p.targets) {
    if (target == p.maximum) continue;
    if (!p.reduced[summed(target).index]) continue;
    rescaled = true;
    if (!p.maximum.valid()) return described(body, target) + " needs another sum to be complete";
    if (!exponentials(body, p, summed(target)))
      return described(body, target) + " sums something else than exponentials below the maximum";
  }
  if (p.maximum.valid())
    for (OpId target : p.targets)
      if (target != p.maximum && !p.reduced[summed(target).index] && rescaled)
        return described(body, target) + " is no sum of exponentials below the maximum";
  if (p.maximum.valid() && !rescaled && p.targets.size() > 1) return "what it sums is not made of its maximum";
  for (ValueId result : body.results())
    if (p.level[result.index] != AttentionLevel::row && p.level[result.index] != AttentionLevel::out)
      return "a result is not summed over the scores";
  return "";
}

namespace {

// `last`: nothing but moves is made of v before it is summed.
std::optional<Exponentials> exponentials_in(const Function& body, const AttentionPlan& plan, ValueId v, bool last) {
  if (body.is_arg(v)) return std::nullopt;
  const OpId op = body.def(v);
  const auto with = [&](ValueId linear, ValueId other, Op how) -> std::optional<Exponentials> {
    auto found = exponentials_in(body, plan, linear, false);
    if (!found || !plan.reduced[other.index]) return found;
    if (!is_per_row(body, plan, other)) return std::nullopt;
    found->factors.push_back({how, other});
    return found;
  };
  switch (body.kind(op)) {
    case Op::exp:
      if (is_exponential(body, plan, v)) return Exponentials{v, {}};
      return std::nullopt;
    case Op::neg:
      return exponentials_in(body, plan, body.operand(op, 0), false);
    case Op::stop_gradient:
    case Op::reshape:
    case Op::transpose:
      return exponentials_in(body, plan, body.operand(op, 0), last);
    case Op::convert:
      // Before they are divided by their sum they may be smaller than f16 holds: only a product does without the
      // rounding.
      if (!is_float(body.type(v).dtype) || (body.type(v).dtype == DType::f16 && !last)) return std::nullopt;
      return exponentials_in(body, plan, body.operand(op, 0), false);
    case Op::mul:
      if (auto found = with(body.operand(op, 0), body.operand(op, 1), Op::mul)) return found;
      return with(body.operand(op, 1), body.operand(op, 0), Op::mul);
    case Op::div:
      return with(body.operand(op, 0), body.operand(op, 1), Op::div);
    case Op::select:
      if (plan.reduced[body.operand(op, 0).index]) return std::nullopt;
      if (is_constant(body, body.operand(op, 2), 0)) return exponentials_in(body, plan, body.operand(op, 1), false);
      if (is_constant(body, body.operand(op, 1), 0)) return exponentials_in(body, plan, body.operand(op, 2), false);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Exponentials> exponentials(const Function& body, const AttentionPlan& plan, ValueId v) {
  return exponentials_in(body, plan, v, true);
}

ValueId summed_value(const Function& body, const AttentionDomain& domain, OpId target) {
  return body.operand(target, body.kind(target) == Op::dot_general ? domain_side(body, domain, target) : 0);
}

}  // namespace burin::passes::lower
