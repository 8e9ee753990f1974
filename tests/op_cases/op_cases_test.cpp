// The properties that every entry of the table has to have, one GoogleTest case per op and property.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/error.h"
#include "ir/element_text.h"
#include "ir/eval/eval.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/batching/batching.h"
#include "tests/op_cases/op_cases.h"
#include "tests/support/literals.h"
#include "tests/support/transforms.h"
#include "tests/support/values.h"

namespace burin::ir {
static void PrintTo(Op op, std::ostream* out) { *out << name(op); }
}  // namespace burin::ir

namespace burin::op_cases {
namespace {

class OpCases : public testing::TestWithParam<Op> {
 protected:
  const Entry entry_ = entry(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Ops, OpCases, testing::ValuesIn(all_ops()),
                         [](const auto& info) { return std::string(ir::name(info.param)); });

std::size_t num_floats(const Function& f) {
  std::size_t n = 0;
  for (bool is : test::float_args(f)) n += is;
  return n;
}

/// All float args, and each alone.
std::vector<std::vector<bool>> subsets(const std::vector<bool>& all) {
  std::vector<std::vector<bool>> result;
  std::size_t n = 0;
  for (bool flag : all) n += flag;
  if (n > 0) result.push_back(all);
  for (std::size_t i = 0; n > 1 && i < all.size(); ++i)
    if (all[i]) {
      result.emplace_back(all.size(), false);
      result.back()[i] = true;
    }
  return result;
}

std::string spelled(const std::vector<bool>& flags) {
  std::string text;
  for (bool flag : flags) text += flag ? '1' : '0';
  return text;
}

TEST_P(OpCases, HasAnEntry) {
  EXPECT_FALSE(entry_.cases.empty()) << "no case for " << ir::name(GetParam()) << " in tests/op_cases";
  if (GetParam() != Op::optimization_barrier) {  // takes anything
    EXPECT_FALSE(entry_.refused.empty()) << "no error input for " << ir::name(GetParam());
  }
  std::set<std::string> names;
  for (const OpCase& c : entry_.cases) EXPECT_TRUE(names.insert(c.name).second) << c.name << " occurs twice";
}

/// The operand that gives an entry its dtypes; none for what has no operands.
std::size_t data_operand(Op op) { return op == Op::select ? 1 : 0; }

/// The literals whose dtype and values a case is about: that operand, or else what the op makes.
Literal data_of(Op op, const OpCase& c) {
  const std::vector<Literal> args = c.args(0);
  Literal data = args.empty() ? ir::evaluate(c.function, args)[0] : args[data_operand(op)];
  data.expand();
  return data;
}

/// Bodies for one operand of the dtype, in the order of the op's attributes: the identity, its jvp, its forward and backward.
std::vector<AttrValue> identities(Op op, DType dtype) {
  const Type type{dtype, {}};
  const auto passing_on = [&](int n) {
    Builder b("pass");
    std::vector<ValueId> values;
    for (int i = 0; i < n; ++i) values.push_back(b.add_arg(type));
    return std::make_shared<const Function>(b.finish(values));
  };
  std::vector<AttrValue> attributes;
  for (const AttrInfo& a : info(op).attributes)
    if (a.kind == AttrKind::Str)
      attributes.emplace_back(Str("loop"));
    else if (a.name == "jvp")
      attributes.emplace_back(passing_on(is_float(dtype) ? 2 : 1));
    else
      attributes.emplace_back(passing_on(a.name == "backward" && !is_float(dtype) ? 0 : 1));
  return attributes;
}

/// Whether the type rule takes the op of a case with `dtype` in the place of the dtype that the case is about.
bool takes_with(Op op, const OpCase& c, DType dtype) {
  if (family_of(op) == Family::structure && op != Op::optimization_barrier)
    return takes(op, {Type{dtype, {}}}, identities(op, dtype));
  const Function& f = c.function;
  const OpId id{std::size_t{0}};
  std::vector<Type> types;
  for (ValueId operand : f.operands(id)) types.push_back(f.type(operand));
  const DType own = types.empty() ? f.type(f.result(id)).dtype : types[data_operand(op)].dtype;
  for (Type& type : types)
    if (type.dtype == own) type.dtype = dtype;
  for (DType other : all_dtypes) {  // for an attribute that says another dtype
    std::vector<AttrValue> attributes;
    bool has_dtype = false;
    for (const AttrValue& value : f.attributes(id)) {
      attributes.push_back(value);
      if (std::holds_alternative<DType>(value)) attributes.back() = types.empty() ? dtype : other, has_dtype = true;
      if (const Literal* literal = std::get_if<Literal>(&value)) attributes.back() = Literal(Type{dtype, literal->shape()});
    }
    if (takes(op, types, attributes)) return true;
    if (!has_dtype) return false;
  }
  return false;
}

std::set<std::string> words_of(const Literal& literal) {
  std::set<std::string> words;
  for (std::int64_t i = 0; i < literal.shape().size(); ++i) words.insert(ir::element_text(literal, i));
  return words;
}

/// The extremes that matter to an op: no values go into iota, and hardware flushes the denormals of bf16 in dots.
std::set<std::string> extremes_for(Op op, DType dtype) {
  const Literal all = extremes(dtype);
  std::set<std::string> words;
  for (std::int64_t i = 0; op != Op::iota && i < all.shape().size(); ++i) {
    const bool flushed = op == Op::dot_general && dtype == bf16 && all.at(i) != 0 && std::abs(all.at(i)) < 0x1p-126;
    if (!flushed) words.insert(ir::element_text(all, i));
  }
  return words;
}

// In every dtype that the type rule takes, found by asking it, there are an odd, a size-1 and a size-0 operand (result, where
// there are no operands) and all extremes of the dtype.
TEST_P(OpCases, CoversWhatTheTypeRuleTakes) {
  const Op op = GetParam();
  for (DType dtype : all_dtypes) {
    bool taken = false, odd = false, one = false, empty = false;
    std::set<std::string> missing = extremes_for(op, dtype);
    for (const OpCase& c : entry_.cases) {
      taken = taken || takes_with(op, c, dtype);
      const Literal data = data_of(op, c);
      if (data.dtype() != dtype) continue;
      const auto extents = data.shape().dims();
      const std::int64_t size = data.shape().size();
      odd = odd || (size > 1 && std::any_of(extents.begin(), extents.end(), [](std::int64_t n) { return n % 2 == 1 && n > 1; }));
      one = one || (size == 1 && !extents.empty());
      empty = empty || size == 0;
      for (const std::string& word : words_of(data)) missing.erase(word);
    }
    const std::string what = std::string(ir::name(op)) + " of " + std::string(name(dtype));
    if (!taken) continue;
    EXPECT_TRUE(odd) << what << ": no odd shape";
    EXPECT_TRUE(one) << what << ": no size 1";
    EXPECT_TRUE(empty) << what << ": no size 0";
    EXPECT_EQ(missing, std::set<std::string>{}) << what << ": extremes";
  }
}

TEST_P(OpCases, RefusesWithTheExactMessage) {
  for (const Refused& r : entry_.refused) EXPECT_EQ(test::error_of(r.build), r.message) << r.name;
}

// Relative to 1 + |expected|: half an ulp of the dtype, twice over for what is not exactly rounded, and of f32's sums.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-14;
    case DType::f32: return 1e-6;
    case DType::bf16: return 1.0 / 256;
    case DType::f16: return 1.0 / 1024;
    default: return 0;
  }
}

/// Whether no rounding stands between the definition and the result.
bool is_exact(Op op, DType dtype) {
  if (!is_float(dtype) || family_of(op) == Family::movement) return true;
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_away:
    case Op::stop_gradient:
    case Op::max:
    case Op::min:
    case Op::select:
    case Op::clamp:
    case Op::bitcast:
    case Op::reduce_max:
    case Op::reduce_min:
    case Op::constant:
    case Op::gather:
    case Op::dynamic_slice:
    case Op::dynamic_update_slice:
    case Op::optimization_barrier: return true;
    default: return false;
  }
}

TEST_P(OpCases, EvaluatesToWhatTheDefinitionGives) {
  for (const OpCase& c : entry_.cases) {
    const std::vector<Literal> args = c.args(0), results = ir::evaluate(c.function, args);
    ASSERT_EQ(results.size(), c.function.results().size()) << c.name;
    ASSERT_TRUE(c.expected) << c.name << " has no expected result";
    const Reals expected = c.expected(args);
    std::span<const Real> rest = expected;
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Type type = c.function.type(c.function.results()[r]);
      ASSERT_EQ(results[r].type(), type) << c.name;
      ASSERT_GE(rest.size(), static_cast<std::size_t>(type.size())) << c.name;
      const Literal wanted = from_reals(type, rest.first(static_cast<std::size_t>(type.size())));
      rest = rest.subspan(static_cast<std::size_t>(type.size()));
      EXPECT_EQ(is_exact(GetParam(), type.dtype) ? test::difference(results[r], wanted)
                                                 : test::difference(results[r], wanted, tolerance(type.dtype)), "")
          << c.name << ", result " << r;
    }
    EXPECT_TRUE(rest.empty()) << c.name;
  }
}

TEST_P(OpCases, SurvivesTextAndTheVerifier) {
  for (const OpCase& c : entry_.cases) {
    ASSERT_EQ(ir::verify(c.function), "") << c.name;
    const std::string text = ir::print(c.function, {.max_elements = -1});
    try {
      EXPECT_TRUE(ir::same_program(ir::parse(text), c.function)) << c.name << "\n" << text;
    } catch (const Error& error) {
      ADD_FAILURE() << c.name << ": " << error.what() << "\n" << text;
    }
  }
}

TEST_P(OpCases, FirstDerivativesAgreeWithDifferences) {
  for (const OpCase& c : entry_.cases) {
    if (!c.smooth) continue;
    for (const std::vector<bool>& active : subsets(test::float_args(c.function))) {
      EXPECT_EQ(test::check_vjp_by_differences(c.function, c.args(0), active), "") << c.name << " in " << spelled(active);
      if (GetParam() == Op::custom_vjp) continue;  // has no jvp
      EXPECT_EQ(test::check_jvp(c.function, c.args(0), active), "") << c.name << " in " << spelled(active);
      EXPECT_EQ(test::check_vjp(c.function, c.args(0), active), "") << c.name << " in " << spelled(active);
    }
  }
}

TEST_P(OpCases, SecondDerivativesAgreeWithDifferences) {
  for (const OpCase& c : entry_.cases)
    if (c.smooth && num_floats(c.function) > 0) {
      EXPECT_EQ(test::check_second_order(c.function, c.args(0), test::float_args(c.function)), "") << c.name;
    }
}

// In every dtype the derivative has the types it must have and is refused only where the entry says so.
TEST_P(OpCases, DifferentiatesInEveryFloatDtype) {
  for (const OpCase& c : entry_.cases) {
    if (num_floats(c.function) == 0) continue;
    const std::vector<bool> active = test::float_args(c.function);
    if (!entry_.no_derivative.empty()) {
      EXPECT_EQ(test::error_of([&] { passes::jvp(c.function, active); }),
                std::string(ir::name(GetParam())) + ": not differentiable: " + entry_.no_derivative);
      continue;
    }
    if (GetParam() == Op::scatter && !c.smooth) {
      const auto combine = c.function.attrs<Op::scatter>(OpId{std::size_t{0}}).combine;
      if (combine != Combine::add && combine != Combine::set) continue;  // refused, with a message of its own
    }
    const Function g = test::gradient(c.function, active);
    std::vector<Literal> operands = c.args(0);
    for (std::size_t i = operands.size(); i < g.args().size(); ++i)
      operands.push_back(test::spread(g.type(g.args()[i]), -1, 1, i));
    const std::vector<Literal> found = ir::evaluate(g, operands), results = ir::evaluate(c.function, c.args(0));
    for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(test::difference(found[r], results[r]), "") << c.name;
    for (std::size_t i = 0, next = results.size(); i < active.size(); ++i)
      if (active[i]) {
        EXPECT_EQ(found[next++].type(), c.function.type(c.function.args()[i])) << c.name;
      }
  }
}

TEST_P(OpCases, BatchesLikeALoop) {
  for (const OpCase& c : entry_.cases) {
    const std::vector<std::vector<Literal>> examples = {c.args(0), c.args(1), c.args(2)};
    for (const std::vector<bool>& batched : subsets(std::vector<bool>(c.function.args().size(), true))) {
      EXPECT_EQ(test::check_batch(c.function, examples, batched), "") << c.name << " in " << spelled(batched);
      EXPECT_EQ(test::check_batch(c.function, std::span(examples).first(1), batched), "") << c.name << ", a batch of one";
    }
  }
}

TEST_P(OpCases, BatchesNothing) {
  for (const OpCase& c : entry_.cases) {
    const std::vector<bool> all(c.function.args().size(), true);
    const passes::Batched batched = passes::batch(c.function, all, 0);
    std::vector<Literal> args;
    for (ValueId arg : batched.function.args()) args.emplace_back(batched.function.type(arg));
    const std::vector<Literal> results = ir::evaluate(batched.function, args);
    for (std::size_t r = 0; r < results.size(); ++r)
      if (batched.result_batched[r]) {
        EXPECT_EQ(results[r].shape().size(), 0) << c.name;
      }
  }
}

TEST_P(OpCases, BatchesTwice) {
  for (const OpCase& c : entry_.cases) {
    if (!c.smooth) continue;
    const std::vector<std::vector<Literal>> examples = {c.args(0), c.args(1), c.args(2)};
    for (const std::vector<bool>& batched : subsets(std::vector<bool>(c.function.args().size(), true)))
      EXPECT_EQ(test::check_batch_twice(c.function, examples, batched), "") << c.name << " in " << spelled(batched);
  }
}

TEST_P(OpCases, BatchedGradientsAgree) {
  for (const OpCase& c : entry_.cases) {
    if (!c.smooth || num_floats(c.function) == 0) continue;
    const std::vector<std::vector<Literal>> examples = {c.args(0), c.args(1), c.args(2)};
    for (const std::vector<bool>& batched : subsets(std::vector<bool>(c.function.args().size(), true)))
      EXPECT_EQ(test::check_batched_gradient(c.function, examples, batched, test::float_args(c.function)), "")
          << c.name << " in " << spelled(batched);
  }
}

}  // namespace
}  // namespace burin::op_cases
