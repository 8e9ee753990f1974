#include <algorithm>
#include <string>

#include <burin/ops.h>

#include "base/counted.h"
#include "base/message_ids.h"
#include "frontend/promote.h"

namespace burin {

using detail::emit;
using detail::OpScope;
using detail::type_text;
using ir::Ints;
using ir::Op;

namespace {

struct Pair {
  Tensor a, b;
  bool weak;
};

Pair same_dtype(const Tensor& a, const Tensor& b) {
  const detail::Promoted both = detail::promote({a.dtype(), a.weak()}, {b.dtype(), b.weak()});
  return {detail::as_dtype(a, both.dtype, both.weak), detail::as_dtype(b, both.dtype, both.weak), both.weak};
}

Ints range(std::size_t begin, std::size_t end) {
  Ints axes;
  for (std::size_t i = begin; i < end; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

Tensor product(const Pair& p, const Ints& a_batch, const Ints& b_batch, const Ints& a_contract, const Ints& b_contract) {
  return emit<Op::dot_general>({p.a, p.b},
                               {.lhs_batch = a_batch,
                                .rhs_batch = b_batch,
                                .lhs_contract = a_contract,
                                .rhs_contract = b_contract,
                                .dtype = p.a.dtype()},
                               p.weak);
}

Tensor matrix_product(const char* name, const Tensor& a, const Tensor& b) {
  const std::size_t ra = a.shape().rank(), rb = b.shape().rank();
  for (const Tensor* t : {&a, &b})
    if (t->shape().rank() == 0)
      fail_at(detail::where_text({}), Msg::product_of_scalar, name, type_text(a), type_text(b));
  const std::size_t a_axis = ra - 1, b_axis = rb == 1 ? 0 : rb - 2;
  if (a.shape()[a_axis] != b.shape()[b_axis])
    fail_at(detail::where_text({}), Msg::matmul_sizes, name, type_text(a), a_axis, a.shape()[a_axis], type_text(b),
                b_axis, b.shape()[b_axis]);
  Pair p = same_dtype(a, b);
  if (rb <= 2) return product(p, {}, {}, range(a_axis, a_axis + 1), range(b_axis, b_axis + 1));
  if (ra == 1) {  // a row for each batch of b
    const std::size_t batch = rb - 2;
    Ints shape;
    for (std::size_t i = 0; i < batch; ++i) shape.push_back(b.shape()[i]);
    shape.push_back(a.shape()[0]);
    p.a = emit<Op::broadcast>({p.a}, {.shape = shape, .dims = range(batch, batch + 1)}, p.weak);
    return product(p, range(0, batch), range(0, batch), range(batch, batch + 1), range(batch, batch + 1));
  }
  // Leading axes broadcast against one another.
  const std::size_t batch = std::max(ra, rb) - 2;
  Shape common;
  for (std::size_t i = 0; i < batch; ++i) {
    const auto extent = [&](const Tensor& t) {
      const std::size_t own = t.shape().rank() - 2;
      return i + own < batch ? 1 : t.shape()[i + own - batch];
    };
    const std::int64_t ea = extent(a), eb = extent(b);
    if (ea != eb && ea != 1 && eb != 1)
      fail_at(detail::where_text({}), Msg::matmul_batch, name, type_text(a), type_text(b), ea, eb);
    common.push_back(ea == 1 ? eb : ea);
  }
  const auto spread = [&](const Tensor& t) {
    Shape shape = common;
    shape.push_back(t.shape()[t.shape().rank() - 2]);
    shape.push_back(t.shape().back());
    return detail::as_shape(t, shape);
  };
  p.a = spread(p.a);
  p.b = spread(p.b);
  return product(p, range(0, batch), range(0, batch), range(batch + 1, batch + 2), range(batch, batch + 1));
}

}  // namespace

Tensor matmul(const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  return scope.done(matrix_product("matmul", a.tensor, b.tensor));
}

Tensor dot(const Operand& a, const Operand& b) {
  OpScope scope(a.where);
  if (a.tensor.shape().rank() == 0 || b.tensor.shape().rank() == 0) return scope.done(a * b);
  if (b.tensor.shape().rank() <= 2) return scope.done(matrix_product("dot", a.tensor, b.tensor));
  const auto last = static_cast<std::int64_t>(a.tensor.shape().rank()) - 1;
  return scope.done(dot_general(a, b, {last}, {static_cast<std::int64_t>(b.tensor.shape().rank()) - 2}));
}

Tensor outer(const Operand& a, const Operand& b) {
  OpScope scope("outer", a.where);
  return scope.done(reshape(a, {-1, 1}) * reshape(b, {1, -1}));
}

Tensor dot_general(const Operand& a, const Operand& b, const IntList& a_contract, const IntList& b_contract,
                   const IntList& a_batch, const IntList& b_batch, std::optional<DType> dtype) {
  OpScope scope(a.where);
  const auto axes = [&](const IntList& given, const Tensor& t) {
    Ints result;
    for (std::int64_t axis : given)
      result.push_back(static_cast<std::int64_t>(detail::normal_axis("dot_general", axis, t.shape().rank(), t)));
    return result;
  };
  const Pair p = same_dtype(a.tensor, b.tensor);
  return scope.done(emit<Op::dot_general>({p.a, p.b},
                                          {.lhs_batch = axes(a_batch, p.a),
                                           .rhs_batch = axes(b_batch, p.b),
                                           .lhs_contract = axes(a_contract, p.a),
                                           .rhs_contract = axes(b_contract, p.b),
                                           .dtype = dtype.value_or(p.a.dtype())},
                                          p.weak));
}

namespace {

[[noreturn]] void bad_equation(std::string_view equation, std::string_view why) {
  fail_at(detail::where_text({}), Msg::einsum_equation, equation, why);
}

bool has(std::string_view labels, char c) { return labels.find(c) != std::string_view::npos; }

// einsum takes one or two operands: more are a chain of calls, whose order is the user's to choose.
void check_operands(std::string_view equation, std::size_t arrow, std::ptrdiff_t given) {
  const std::ptrdiff_t named = 1 + std::count(equation.begin(), equation.begin() + static_cast<std::ptrdiff_t>(arrow), ',');
  if (named > 2) bad_equation(equation, "it names " + counted(named, "operand") + ", at most two are possible: call einsum twice");
  if (named > given) bad_equation(equation, "it names " + counted(named, "operand") + ", found " + std::to_string(given));
}

// Letters of one side, checked against the operand.
std::string labels_of(std::string_view equation, std::string_view part, const Tensor* operand) {
  std::string labels;
  for (char c : part) {
    if (c == ' ') continue;
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) bad_equation(equation, "labels are letters");
    if (has(labels, c)) bad_equation(equation, "a label occurs twice on one side");
    labels += c;
  }
  if (operand && labels.size() != operand->shape().rank()) {
    bad_equation(equation, "`" + labels + "` has " + counted(labels.size(), "label") + ", its operand " + type_text(*operand) +
                               " has " + counted(operand->shape().rank(), "axis", "axes"));
  }
  return labels;
}

// Sums over the labels that are not wanted.
Tensor drop(const Tensor& x, std::string& labels, std::string_view wanted) {
  Ints axes;
  std::string kept;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (has(wanted, labels[i])) kept += labels[i];
    else axes.push_back(static_cast<std::int64_t>(i));
  labels = kept;
  return axes.empty() ? x : sum(x, axes);
}

Tensor order(std::string_view equation, const Tensor& x, std::string_view labels, std::string_view wanted) {
  std::vector<std::int64_t> permutation;
  for (char c : wanted) {
    if (!has(labels, c)) bad_equation(equation, "a label of the result is in no operand");
    permutation.push_back(static_cast<std::int64_t>(labels.find(c)));
  }
  return transpose(x, permutation);
}

}  // namespace

Tensor einsum(std::string_view equation, const Operand& a) {
  OpScope scope("einsum", a.where);
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string_view::npos) bad_equation(equation, "there is no ->");
  check_operands(equation, arrow, 1);
  std::string labels = labels_of(equation, equation.substr(0, arrow), &a.tensor);
  const std::string wanted = labels_of(equation, equation.substr(arrow + 2), nullptr);
  const Tensor summed = drop(a.tensor, labels, wanted);
  return scope.done(order(equation, summed, labels, wanted));
}

Tensor einsum(std::string_view equation, const Operand& a, const Operand& b) {
  OpScope scope("einsum", a.where);
  const std::size_t arrow = equation.find("->"), comma = equation.find(',');
  if (arrow == std::string_view::npos) bad_equation(equation, "there is no ->");
  if (comma == std::string_view::npos || comma > arrow) bad_equation(equation, "two operands need a comma");
  check_operands(equation, arrow, 2);
  std::string la = labels_of(equation, equation.substr(0, comma), &a.tensor);
  std::string lb = labels_of(equation, equation.substr(comma + 1, arrow - comma - 1), &b.tensor);
  const std::string wanted = labels_of(equation, equation.substr(arrow + 2), nullptr);
  const Tensor ta = drop(a.tensor, la, lb + wanted), tb = drop(b.tensor, lb, la + wanted);
  std::string result, free_a, free_b;
  std::vector<std::int64_t> batch_a, batch_b, contract_a, contract_b;
  for (std::size_t i = 0; i < la.size(); ++i) {
    const std::size_t j = lb.find(la[i]);
    if (j == std::string::npos) {
      free_a += la[i];
      continue;
    }
    if (ta.shape()[i] != tb.shape()[j])
      fail_at(detail::where_text({}), Msg::einsum_sizes, equation, la[i], type_text(ta), ta.shape()[i], type_text(tb),
                  tb.shape()[j]);
    const bool batch = has(wanted, la[i]);
    if (batch) result += la[i];
    (batch ? batch_a : contract_a).push_back(static_cast<std::int64_t>(i));
    (batch ? batch_b : contract_b).push_back(static_cast<std::int64_t>(j));
  }
  for (char c : lb)
    if (!has(la, c)) free_b += c;
  result += free_a + free_b;
  const Tensor product = dot_general(ta, tb, contract_a, contract_b, batch_a, batch_b);
  return scope.done(order(equation, product, result, wanted));
}

}  // namespace burin
