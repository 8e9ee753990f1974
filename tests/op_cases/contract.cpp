// dot_general, every case given a second time as an index expression: "bik,bjk->bij".
#include <cmath>
#include <map>

#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"

namespace burin::op_cases {
namespace {

struct Product {
  std::string_view expression;
  Shape lhs, rhs;
  attrs::dot_general dims;
};

/// The sum over all values of all letters, in the dtype of the result.
Reals einsum(std::string_view expression, DType dtype, const std::vector<Literal>& args) {
  const std::string_view lhs = expression.substr(0, expression.find(',')),
                         rhs = expression.substr(lhs.size() + 1, expression.find('-') - lhs.size() - 1),
                         out = expression.substr(expression.find('>') + 1);
  std::map<char, std::size_t> letters;
  Shape extents, result;
  const auto learn = [&](std::string_view names, const Shape& shape) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (letters.emplace(names[i], extents.rank()).second) extents.push_back(shape[i]);
  };
  learn(lhs, args[0].shape());
  learn(rhs, args[1].shape());
  for (char c : out) result.push_back(extents[letters[c]]);
  Reals sums(static_cast<std::size_t>(result.size()), 0);
  for_each_index(extents, [&](const Ints& at) {
    const auto pick = [&](std::string_view names) {
      Ints index;
      for (char c : names) index.push_back(at[letters[c]]);
      return index;
    };
    const Real x = element(args[0], position(args[0].shape(), pick(lhs)));
    const Real y = element(args[1], position(args[1].shape(), pick(rhs)));
    Real& total = sums[static_cast<std::size_t>(position(result, pick(out)))];
    total = sum(total, product(x, y, dtype), dtype);
  });
  return sums;
}

const Product products[] = {
    {"ik,kj->ij", {3, 5}, {5, 4}, {.lhs_contract = {1}, .rhs_contract = {0}}},
    {"ik,jk->ij", {3, 5}, {4, 5}, {.lhs_contract = {1}, .rhs_contract = {1}}},
    {"ki,kj->ij", {5, 3}, {5, 4}, {.lhs_contract = {0}, .rhs_contract = {0}}},
    {"ki,jk->ij", {5, 3}, {4, 5}, {.lhs_contract = {0}, .rhs_contract = {1}}},
    {"bik,bkj->bij", {2, 3, 5}, {2, 5, 4}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}}},
    {"ibk,jkb->bij", {3, 2, 5}, {4, 5, 2}, {.lhs_batch = {1}, .rhs_batch = {2}, .lhs_contract = {2}, .rhs_contract = {1}}},
    {"abik,bkaj->abij", {2, 3, 2, 2}, {3, 2, 2, 4},
     {.lhs_batch = {0, 1}, .rhs_batch = {2, 0}, .lhs_contract = {3}, .rhs_contract = {1}}},
    {"ikl,lkj->ij", {3, 2, 4}, {4, 2, 5}, {.lhs_contract = {1, 2}, .rhs_contract = {1, 0}}},
    {"bti,io->bto", {2, 3, 4}, {4, 5}, {.lhs_contract = {2}, .rhs_contract = {0}}},
    {"k,k->", {5}, {5}, {.lhs_contract = {0}, .rhs_contract = {0}}},
    {"i,j->ij", {3}, {5}, {}},
    {"b,b->b", {3}, {3}, {.lhs_batch = {0}, .rhs_batch = {0}}},
    {"ik,k->i", {3, 5}, {5}, {.lhs_contract = {1}, .rhs_contract = {0}}},
    {",->", {}, {}, {}},
    {",i->i", {}, {3}, {}},
    {"ik,kj->ij", {1, 1}, {1, 1}, {.lhs_contract = {1}, .rhs_contract = {0}}},
    {"ik,kj->ij", {3, 0}, {0, 4}, {.lhs_contract = {1}, .rhs_contract = {0}}},
    {"ik,kj->ij", {0, 5}, {5, 4}, {.lhs_contract = {1}, .rhs_contract = {0}}},
    {"bik,bkj->bij", {0, 3, 5}, {0, 5, 4}, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}}},
};

}  // namespace

Entry contract_entry(Op op) {
  if (op != Op::dot_general) return {};
  Entry entry;
  for (DType from : all_dtypes)
    for (DType to : all_dtypes)
      for (const Product& p : products) {
        attrs::dot_general dims = p.dims;
        dims.dtype = to;
        const Type lhs{from, p.lhs}, rhs{from, p.rhs};
        if (!takes(op, {lhs, rhs}, {dims.lhs_batch, dims.rhs_batch, dims.lhs_contract, dims.rhs_contract, dims.dtype}))
          break;
        if (from != to && &p != &products[0] && &p != &products[5]) continue;
        OpCase made = make_case<Op::dot_general>({within(lhs, -3, 3), within(rhs, -3, 3)}, dims,
                                                 std::string(p.expression) + " as " + std::string(name(to)));
        made.expected = [e = p.expression, to](const std::vector<Literal>& args) { return einsum(e, to, args); };
        made.smooth = from == f64;
        entry.cases.push_back(std::move(made));
      }
  for (DType dtype : all_dtypes) {
    Literal each = extremes(dtype);
    if (dtype == bf16)  // hardware flushes denormals in dots of bf16
      for (std::int64_t i = 0; i < each.shape().size(); ++i)
        if (std::fabs(each.at(i)) < 0x1p-126) each.set(i, std::copysign(0, each.at(i)));
    const auto add = [&](std::string_view expression, attrs::dot_general dims) {
      dims.dtype = dtype;
      OpCase made = make_case<Op::dot_general>({exactly(each), exactly(each)}, dims, "extremes, " + std::string(expression));
      made.expected = [=](const std::vector<Literal>& args) { return einsum(expression, dtype, args); };
      entry.cases.push_back(std::move(made));
    };
    add("i,j->ij", {});
    add("k,k->", {.lhs_contract = {0}, .rhs_contract = {0}});
  }
  entry.refused = {
      refuse<Op::dot_general>({Type{f32, {3, 5}}, Type{f32, {4, 6}}}, {.lhs_contract = {1}, .rhs_contract = {0}, .dtype = f32},
                              "dot_general: contracting sizes differ: lhs f32[3,5] axis 1 is 5, rhs f32[4,6] axis 0 is 4"),
      refuse<Op::dot_general>({Type{f32, {3, 5}}, Type{f32, {5}}}, {.lhs_contract = {1}, .dtype = f32},
                              "dot_general: contracting axes: 1 axis of lhs f32[3,5], but 0 axes of rhs f32[5]"),
      refuse<Op::dot_general>({Type{f32, {3}}, Type{f32, {3}}}, {.dtype = bf16},
                              "dot_general: operands of f32 cannot give a result of bf16: expected the same dtype or a wider "
                              "one that has all its values")};
  return entry;
}

}  // namespace burin::op_cases
