#include "ir/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/builder.h"
#include "ir/parser.h"

namespace burin::ir {

/// Reaches into a Function to break it, which no Builder does.
struct FunctionForge {
  static OpRecord& record(Function& f, std::size_t op) { return f.ops_[op]; }
  static std::vector<ValueId>& operands(Function& f) { return f.operands_; }
  static std::vector<AttrValue>& attributes(Function& f) { return f.attrs_; }
  static std::vector<TypeId>& value_types(Function& f) { return f.value_types_; }
  static std::vector<OpId>& defs(Function& f) { return f.defs_; }
  static std::vector<ValueId>& args(Function& f) { return f.args_; }
  static std::vector<ValueId>& results(Function& f) { return f.results_; }
  static void add_name(Function& f, ValueId value, std::uint32_t first, std::uint32_t size) {
    f.value_names_.resize(std::max<std::size_t>(f.value_names_.size(), value.index + std::size_t{1}));
    f.value_names_[value.index] = {first, size};
  }
  static std::string& name_text(Function& f) { return f.name_text_; }
};

namespace {

using Forge = FunctionForge;

// Values: 0 x, 1 y, 2 add, 3 reduce_sum, 4 constant.
Function sample() {
  return parse(R"(func @main(%x: f32[3,5], %y: f32[3,5]) {
    %sum = add %x, %y
    %0 = reduce_sum %sum {axes = [1]}
    %1 = constant [1, 2] : i32[2]
    return %0, %1
  })");
}

template <class Break>
std::string verdict(Break&& break_it) {
  Function f = sample();
  break_it(f);
  return verify(f);
}

ValueId value(std::size_t i) { return ValueId{i}; }

TEST(Verifier, AcceptsWhatTheBuilderMakes) { EXPECT_EQ(verify(sample()), ""); }

TEST(Verifier, V1EverythingNamedExists) {
  EXPECT_EQ(verdict([](Function& f) { Forge::operands(f)[1] = value(9); }),
            "V1: operand 1, value 9, does not exist (@main, op 0, add)");
  EXPECT_EQ(verdict([](Function& f) { Forge::args(f)[1] = value(9); }), "V1: @main: argument 9 does not exist");
  EXPECT_EQ(verdict([](Function& f) { Forge::value_types(f)[2] = TypeId{std::size_t{77}}; }),
            "V1: @main: value 2 has no type");
  EXPECT_EQ(verdict([](Function& f) { Forge::defs(f).pop_back(); }), "V1: @main has 5 values and 4 definitions");
  EXPECT_EQ(verdict([](Function& f) {
              Forge::name_text(f) = "sumz";
              for (std::size_t i = 0; i < 5; ++i) Forge::add_name(f, value(i), 0, 3);
              Forge::add_name(f, value(8), 3, 1);
            }),
            "V1: @main: the name `z` belongs to no value");
  EXPECT_EQ(verdict([](Function& f) { Forge::add_name(f, value(3), 1000, 1); }),
            "V1: @main: the name of value 3 lies outside of its table");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 0).op = static_cast<Op>(num_ops); }),
            "V1: the op does not exist (@main, op 0, kind " + std::to_string(num_ops) + ")");
  const std::string outside = "V1: operands, attributes, results or location lie outside of their tables (@main, op ";
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 0).first_operand = 100; }), outside + "0, add)");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 0).num_operands = 100; }), outside + "0, add)");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 1).first_attr = 100; }), outside + "1, reduce_sum)");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 1).first_result = ValueId{}; }), outside + "1, reduce_sum)");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 1).location = LocationId{}; }), outside + "1, reduce_sum)");
}

TEST(Verifier, V2EachValueIsDefinedOnce) {
  EXPECT_EQ(verdict([](Function& f) { Forge::args(f)[1] = value(0); }), "V2: @main: argument 0 is defined twice");
  EXPECT_EQ(verdict([](Function& f) { Forge::args(f)[1] = value(2); }), "V2: @main: argument 2 is defined twice");
  EXPECT_EQ(verdict([](Function& f) { Forge::args(f).pop_back(); }),
            "V2: @main: value 1 is neither an argument nor a result of an op");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 1).first_result = value(2); }),
            "V2: result 0, value 2, is not defined by this op alone (@main, op 1, reduce_sum)");
}

TEST(Verifier, V3OperandsAreDefinedBeforeTheirUse) {
  EXPECT_EQ(verdict([](Function& f) { Forge::operands(f)[0] = value(2); }),
            "V3: operand 0, value 2, is not defined before its use (@main, op 0, add)");
  EXPECT_EQ(verdict([](Function& f) { Forge::operands(f)[0] = value(3); }),
            "V3: operand 0, value 3, is not defined before its use (@main, op 0, add)");
}

TEST(Verifier, V4TheNumberOfOperandsIsTheOps) {
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 0).num_operands = 1; }),
            "V4: expected 2 operands, found 1 (@main, op 0, add)");
}

TEST(Verifier, V5AttributesAreThere) {
  EXPECT_EQ(verdict([](Function& f) { Forge::attributes(f)[0] = Int{1}; }),
            "V5: the attribute `axes` has another kind or no value (@main, op 1, reduce_sum)");
  EXPECT_EQ(verdict([](Function& f) { Forge::attributes(f)[1] = Literal{}; }),
            "V5: the attribute `value` has another kind or no value (@main, op 2, constant)");
  Function f = parse(
      "func @main(%x: f32[2]) { %0 = call %x {body = @id} %1 = convert %0 {dtype = f64} return %1 } "
      "func @id(%x: f32[2]) { return %x }");
  Forge::attributes(f)[1] = static_cast<DType>(num_dtypes);
  EXPECT_EQ(verify(f), "V5: the attribute `dtype` has another kind or no value (@main, op 1, convert)");
  Forge::attributes(f)[0] = Body{};
  EXPECT_EQ(verify(f), "V5: the attribute `body` has another kind or no value (@main, op 0, call)");
}

TEST(Verifier, V6TypesAreThoseOfTheRules) {
  EXPECT_EQ(verdict([](Function& f) { Forge::attributes(f)[0] = Ints{0}; }),
            "V6: result 0 is f32[3], expected f32[5] (@main, op 1, reduce_sum)");
  EXPECT_EQ(verdict([](Function& f) { Forge::attributes(f)[0] = Ints{2}; }),
            "V6: reduce_sum: axes: axis 2 is out of range for f32[3,5], which has 2 axes (@main, op 1, reduce_sum)");
  EXPECT_EQ(verdict([](Function& f) { Forge::record(f, 2).num_results = 0; }),
            "V6: expected 1 result, found 0 (@main, op 2, constant)");
}

TEST(Verifier, V7ResultsExist) {
  EXPECT_EQ(verdict([](Function& f) { Forge::results(f)[1] = value(5); }), "V7: @main: result 5 does not exist");
}

TEST(Verifier, V8BodiesAreValid) {
  Function body = parse("func @inner(%x: f32[2]) { %0 = exp %x %1 = neg %0 return %1 }");
  Forge::operands(body)[0] = value(2);
  Builder b;
  const ValueId x = b.add_arg(Type{f32, {2}});
  const Function f = b.finish({b.emit<Op::call>({x}, {.body = std::make_shared<const Function>(std::move(body))})});
  EXPECT_EQ(verify(f),
            "V8: a body is broken: V3: operand 0, value 2, is not defined before its use (@inner, op 0, exp)");
}

TEST(Verifier, CheckValidAbortsNamingThePass) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Function f = sample();
  check_valid(f, "nothing");
  Forge::results(f)[1] = value(5);
  EXPECT_DEATH(check_valid(f, "simplify"), "after simplify: V7: @main: result 5 does not exist");
}

TEST(Verifier, ALongChainTakesNoStack) {
  Builder b;
  ValueId x = b.add_arg(Type{f32, {4}});
  for (int i = 0; i < 100000; ++i) x = b.exp(x);
  EXPECT_EQ(verify(b.finish({x})), "");
}

}  // namespace
}  // namespace burin::ir
