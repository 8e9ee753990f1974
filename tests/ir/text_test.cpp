#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/printer.h"

namespace burin::ir {
namespace {

// Every op, in the spelling of the printer.
constexpr std::string_view every_op = R"(func @main(
    %x: f32[3,5],
    %y: f32[3,5],
    %n: i32[3,5],
    %key: u64[4],
    %p: bool[3,5],
    %s: f32[],
    %i: i32[],
    %ids: i64[7,1]) -> (f32[3,5], i32[3,5], f32[2], f32[], f32[], f32[3,5]) {
  %0 = neg %x : f32[3,5]
  %1 = abs %0 : f32[3,5]
  %2 = sign %1 : f32[3,5]
  %3 = floor %2 : f32[3,5]
  %4 = ceil %3 : f32[3,5]
  %5 = trunc %4 : f32[3,5]
  %6 = round_even %5 : f32[3,5]
  %7 = round_away %6 : f32[3,5]
  %8 = sqrt %7 : f32[3,5]
  %9 = rsqrt %8 : f32[3,5]
  %10 = cbrt %9 : f32[3,5]
  %11 = exp %10 : f32[3,5]
  %12 = exp2 %11 : f32[3,5]
  %13 = expm1 %12 : f32[3,5]
  %14 = log %13 : f32[3,5]
  %15 = log2 %14 : f32[3,5]
  %16 = log1p %15 : f32[3,5]
  %17 = tanh %16 : f32[3,5]
  %18 = logistic %17 : f32[3,5]
  %19 = erf %18 : f32[3,5]
  %20 = erfc %19 : f32[3,5]
  %21 = erf_inv %20 : f32[3,5]
  %22 = sin %21 : f32[3,5]
  %23 = cos %22 : f32[3,5]
  %24 = tan %23 : f32[3,5]
  %25 = asin %24 : f32[3,5]
  %26 = acos %25 : f32[3,5]
  %27 = atan %26 : f32[3,5]
  %28 = sinh %27 : f32[3,5]
  %29 = cosh %28 : f32[3,5]
  %30 = asinh %29 : f32[3,5]
  %31 = acosh %30 : f32[3,5]
  %32 = atanh %31 : f32[3,5]
  %33 = is_finite %32 : bool[3,5]
  %34 = bit_not %n : i32[3,5]
  %35 = popcount %34 : i32[3,5]
  %36 = count_leading_zeros %35 : i32[3,5]
  %37 = stop_gradient %32 : f32[3,5]
  %38 = add %x, %37 : f32[3,5]
  %39 = sub %38, %y : f32[3,5]
  %40 = mul %39, %y : f32[3,5]
  %41 = div %40, %y : f32[3,5]
  %42 = rem %41, %y : f32[3,5]
  %43 = max %42, %y : f32[3,5]
  %44 = min %43, %y : f32[3,5]
  %45 = pow %44, %y : f32[3,5]
  %46 = atan2 %45, %y : f32[3,5]
  %47 = bit_and %n, %36 : i32[3,5]
  %48 = bit_or %47, %n : i32[3,5]
  %49 = bit_xor %48, %n : i32[3,5]
  %50 = shift_left %49, %n : i32[3,5]
  %51 = shift_right_logical %50, %n : i32[3,5]
  %52 = shift_right_arithmetic %51, %n : i32[3,5]
  %53 = threefry2x32 %key, %key : u64[4]
  %54 = select %p, %46, %y : f32[3,5]
  %55 = clamp %x, %54, %y : f32[3,5]
  %56 = convert %55 {dtype = bf16} : bf16[3,5]
  %57 = bitcast %56 {dtype = u16} : u16[3,5]
  %58 = eq %x, %y : bool[3,5]
  %59 = ne %58, %p : bool[3,5]
  %60 = lt %x, %y : bool[3,5]
  %61 = le %n, %n : bool[3,5]
  %62 = gt %x, %y : bool[3,5]
  %63 = ge %57, %57 : bool[3,5]
  %64 = reduce_sum %x {axes = [1]} : f32[3]
  %65 = reduce_prod %x {axes = [0, 1]} : f32[]
  %66 = reduce_max %x : f32[3,5]
  %67 = reduce_min %n {axes = [0]} : i32[5]
  %68 = reduce_and %p {axes = [1]} : bool[3]
  %69 = reduce_or %n {axes = [1]} : i32[3]
  %70 = argmax %x {axis = 1, dtype = i32} : i32[3]
  %71 = argmin %x {dtype = u8} : u8[5]
  %72 = reshape %x {shape = [5, 3]} : f32[5,3]
  %73 = transpose %72 {permutation = [1, 0]} : f32[3,5]
  %74 = broadcast %64 {shape = [3, 5], dims = [0]} : f32[3,5]
  %75 = slice %x {start = [0, 1], limit = [3, 5], stride = [1, 2]} : f32[3,2]
  %76 = pad %75, %s {low = [0, -1], high = [1, 0], interior = [0, 2]} : f32[4,3]
  %77 = concatenate %76, %76 {axis = 1} : f32[4,6]
  %78 = reverse %77 {axes = [0]} : f32[4,6]
  %79 = dot_general %x, %y {lhs_contract = [1], rhs_contract = [1], dtype = f64} : f64[3,3]
  %half = constant 0.5 : f32[2,16]
  %80 = constant [[1, -0, 1e-45], [inf, -inf, nan]] : f32[2,3]
  %81 = constant [] : u8[0,4]
  %82 = constant true : bool[]
  %83 = iota {dtype = i32, shape = [3, 5], axis = 1} : i32[3,5]
  %84 = gather %x, %ids {offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 5], mode = clip} : f32[7,5]
  %85 = scatter %x, %ids, %84 {update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combine = max} : f32[3,5]
  %86 = dynamic_slice %85, %i, %i {sizes = [2, 5]} : f32[2,5]
  %87 = dynamic_update_slice %x, %86, %i, %i : f32[3,5]
  %a.0, %a.0_1 = call %s, %i {body = @pair} : f32[], i32[]
  %88 = composite %s {name = "a \"b\" c", body = @square} : f32[]
  %89 = custom_jvp %s {body = @square, jvp = @square_jvp} : f32[]
  %90 = custom_vjp %s {body = @square, forward = @square_forward, backward = @square_backward} : f32[]
  %91 = checkpoint %s {body = @square} : f32[]
  %92, %93 = optimization_barrier %x, %i : f32[3,5], i32[]
  %94 = fusion %91 {kind = "loop", body = @square} : f32[]
  call {body = @nothing}
  optimization_barrier
  %95 = slice %67 {start = [1], limit = [3], stride = [1]} : i32[2]
  %96 = convert %95 {dtype = f32} : f32[2]
  return %87, %52, %96, %94, %90, %92
}

func @pair(%0: f32[], %1: i32[]) -> (f32[], i32[]) {
  return %0, %1
}

func @square(%x: f32[]) -> (f32[]) {
  %0 = mul %x, %x : f32[]
  return %0
}

func @square_jvp(%x: f32[], %dx: f32[]) -> (f32[], f32[]) {
  %y = mul %x, %x : f32[]
  %0 = mul %x, %dx : f32[]
  %1 = add %0, %0 : f32[]
  return %y, %1
}

func @square_forward(%x: f32[]) -> (f32[], f32[]) {
  %0 = mul %x, %x : f32[]
  return %0, %x
}

func @square_backward(%x: f32[], %dy: f32[]) -> (f32[]) {
  %0 = mul %x, %dy : f32[]
  %1 = add %0, %0 : f32[]
  return %1
}

func @nothing() -> () {
  return
}
)";

TEST(Text, EveryOpPrintsAsItWasWritten) {
  const Function f = parse(every_op);
  EXPECT_EQ(print(f), every_op);
  std::set<Op> ops;
  f.for_each_op([&](OpId op) { ops.insert(f.kind(op)); });
  for (int i = 0; i < num_ops; ++i) EXPECT_TRUE(ops.contains(static_cast<Op>(i))) << name(static_cast<Op>(i));
}

TEST(Text, RoundTripsToTheSameProgram) {
  const Function f = parse(every_op), g = parse(print(f));
  EXPECT_TRUE(same_program(f, g));
  Hasher a, b;
  f.hash(a);
  g.hash(b);
  EXPECT_EQ(a.finish(), b.finish());
}

TEST(Text, ResultTypesMayBeLeftOut) {
  std::string bare;
  for (std::size_t i = 0; i < every_op.size(); ++i) {
    // Drops " : type, type" behind ops; constants need theirs, arguments have no blank before the colon.
    const std::size_t end = every_op.find('\n', i);
    if (every_op.substr(i, 3) == " : " && bare.substr(bare.rfind('\n')).find(" constant ") == std::string::npos)
      i = end - 1;
    else
      bare += every_op[i];
  }
  EXPECT_EQ(bare.find(" : f32[3,5]"), std::string::npos);
  EXPECT_TRUE(same_program(parse(bare), parse(every_op)));
}

TEST(Text, DifferentProgramsAreNotTheSame) {
  const auto program = [](std::string_view op) {
    return parse("func @main(%x: f32[2], %y: f32[2]) { %0 = " + std::string(op) + " return %0 }");
  };
  const Function add = program("add %x, %y");
  EXPECT_TRUE(same_program(add, program("add %x, %y : f32[2]")));
  for (std::string_view other : {"sub %x, %y", "add %y, %x", "add %x, %x"}) {
    EXPECT_FALSE(same_program(add, program(other))) << other;
    Hasher a, b;
    add.hash(a);
    program(other).hash(b);
    EXPECT_NE(a.finish(), b.finish()) << other;
  }
}

TEST(Text, NamesAreSanitisedAndUnique) {
  Builder b("f 1");
  const Type type{f32, {}};
  const ValueId x = b.add_arg(type, "layers[0]->w"), y = b.add_arg(type, "x"), z = b.add_arg(type, "x"),
                w = b.add_arg(type, "x_1"), d = b.add_arg(type, "0");
  ValueId sum = b.add(x, y);
  for (ValueId v : {z, w, d}) sum = b.add(sum, v);
  const Function f = b.finish({sum});
  const std::string text = print(f);
  EXPECT_EQ(text,
            "func @f_1(%layers_0___w: f32[], %x: f32[], %x_1: f32[], %x_1_1: f32[], %_0: f32[]) -> (f32[]) {\n"
            "  %0 = add %layers_0___w, %x : f32[]\n"
            "  %1 = add %0, %x_1 : f32[]\n"
            "  %2 = add %1, %x_1_1 : f32[]\n"
            "  %3 = add %2, %_0 : f32[]\n"
            "  return %3\n"
            "}\n");
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, LocationsStandBehindTheOps) {
  Builder b;
  const ValueId x = b.add_arg(Type{f32, {3}}, "x");
  b.set_location({"model.cpp", 42, "rms_norm", "block0/attn"});
  const ValueId y = b.exp(x);
  b.set_location({});
  const Function f = b.finish({b.neg(y)});
  const std::string text = print(f, {.locations = true});
  EXPECT_NE(text.find("exp %x : f32[3]  // model.cpp:42, in rms_norm, in block0/attn\n"), std::string::npos) << text;
  EXPECT_NE(text.find("neg %0 : f32[3]\n"), std::string::npos) << text;
  EXPECT_TRUE(same_program(parse(text), f));
}

TEST(Text, OpsOfAFileCarryItsLines) {
  const Function f = parse("func @main(%x: f32[2]) {\n  %y = exp %x\n  %z = neg %y\n  return %z\n}", "some/dir/x.ir");
  EXPECT_EQ(to_string(f.location(OpId{std::size_t{0}})), "x.ir:2");
  EXPECT_EQ(to_string(f.location(OpId{std::size_t{1}})), "x.ir:3");
}

TEST(Text, EqualBodiesPrintOnce) {
  const auto body = [](std::string_view name) {
    return std::make_shared<const Function>(
        parse("func @" + std::string(name) + "(%x: f32[]) { %0 = exp %x return %0 }"));
  };
  Builder b;
  ValueId x = b.add_arg(Type{f32, {}});
  for (std::string_view name : {"first", "second", "main"}) x = b.emit<Op::call>({x}, {.body = body(name)});
  const std::string text = print(b.finish({x}));
  EXPECT_EQ(text,
            "func @main(%0: f32[]) -> (f32[]) {\n"
            "  %1 = call %0 {body = @first} : f32[]\n"
            "  %2 = call %1 {body = @first} : f32[]\n"
            "  %3 = call %2 {body = @first} : f32[]\n"
            "  return %3\n"
            "}\n\n"
            "func @first(%x: f32[]) -> (f32[]) {\n"
            "  %0 = exp %x : f32[]\n"
            "  return %0\n"
            "}\n");
}

TEST(Text, DifferentBodiesOfOneNameGetTheirOwn) {
  const auto body = [](std::string_view op) {
    return std::make_shared<const Function>(
        parse("func @main(%x: f32[]) { %0 = " + std::string(op) + " %x return %0 }"));
  };
  Builder b;
  ValueId x = b.add_arg(Type{f32, {}});
  for (std::string_view op : {"exp", "log", "exp"}) x = b.emit<Op::call>({x}, {.body = body(op)});
  const Function f = b.finish({x});
  const std::string text = print(f);
  EXPECT_NE(text.find("func @main_1("), std::string::npos) << text;
  EXPECT_NE(text.find("func @main_2("), std::string::npos) << text;
  EXPECT_EQ(text.find("func @main_3("), std::string::npos) << text;
  EXPECT_TRUE(same_program(parse(text), f));
}

TEST(Text, BodiesThatShareBodiesCostNoExponentialTime) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    text += "func @f" + std::to_string(i) + "(%x: f32[]) { %0 = call %x {body = @f" + std::to_string(i + 1) +
            "} %1 = call %0 {body = @f" + std::to_string(i + 1) + "} return %1 }\n";
  text += "func @f150(%x: f32[]) { %0 = exp %x return %0 }\n";
  const Function f = parse(text);
  EXPECT_TRUE(same_program(parse(print(f)), f));
}

TEST(Text, LongConstantsAreAbbreviatedUnlessAskedFor) {
  Builder b;
  Literal literal(Type{f32, {3, 5}});
  for (int i = 0; i < 15; ++i) literal.set(i, i / 2.0);
  const Function f = b.finish({b.constant(literal)});
  EXPECT_NE(print(f, {.max_elements = 14}).find("%0 = constant dense<0, 0.5, 1, ...> : f32[3,5]"), std::string::npos);
  EXPECT_TRUE(same_program(parse(print(f, {.max_elements = 15})), f));
  EXPECT_TRUE(same_program(parse(print(f, {.max_elements = -1})), f));
}

TEST(Text, ConstantsOfEveryDtypeRoundTrip) {
  for (int i = 0; i < num_dtypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5}, Shape{2, 0, 3}}) {
      Literal literal(Type{dtype, shape});
      for (std::int64_t k = 0; k < shape.size(); ++k) literal.set(k, static_cast<double>((k * 7) % 5) / 3);
      Builder b;
      const Function f = b.finish({b.constant(literal), b.constant(Literal::splat(shape, Literal::scalar(dtype, 1)))});
      EXPECT_TRUE(same_program(parse(print(f)), f)) << print(f);
    }
  }
}

TEST(Text, AHundredThousandOpsPrintAndParseQuickly) {
  Builder b;
  ValueId x = b.add_arg(Type{f32, {4}}, "x");
  for (int i = 0; i < 100000; ++i) x = i % 2 ? b.exp(x) : b.add(x, x);
  const Function f = b.finish({x});
  const std::clock_t start = std::clock();  // of this process: other load does not count
  const Function g = parse(print(f));
  EXPECT_TRUE(same_program(f, g));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 10.0) << "quadratic?";  // 0.3 s in a dev build; sanitisers take longer
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace burin::ir
