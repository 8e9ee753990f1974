#include "tests/conformance/cases.h"

namespace burin::conformance {
namespace {

std::string elementwise(const std::string& type, const std::string& op, int arity, const std::string& attributes = "") {
  std::string arguments, operands;
  for (int i = 0; i < arity; ++i) {
    const std::string separator = i > 0 ? ", " : "", name = "%x" + std::to_string(i);
    arguments += separator + name + ": " + type;
    operands += separator + name;
  }
  return "func @main(" + arguments + ") {\n  %y = " + op + " " + operands + attributes + "\n  return %y\n}\n";
}
std::string main_of(const std::string& arguments, const std::string& ops, const std::string& results) {
  return "func @main(" + arguments + ") {\n" + ops + "\n  return " + results + "\n}\n";
}

// jax-ml/jax#2777: y = (y + y) * 0.5, again and again, is x.
std::string doubled_and_halved(int times) {
  std::string ops = "  %half = constant 0.5 : f32[]\n", last = "%x";
  for (int i = 0; i < times; ++i) {
    const std::string n = std::to_string(i);
    ops += "  %a" + n + " = add " + last + ", " + last + "\n  %y" + n + " = mul %a" + n + ", %half\n";
    last = "%y" + n;
  }
  return main_of("%x: f32[]", ops, last);
}

const std::string row_gather =
    "{collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]";
const std::string count_300 = "  %c = iota {dtype = i32, shape = [300], axis = 0}\n";

std::vector<Case> all_cases() {
  std::vector<Case> all = {
      // ---- integer division (ml-explore/mlx#4346, and the edges as in XLA)
      {"SignedDivisionTruncates",
       elementwise("i8[8]", "div", 2),
       {"-7 7 -7 7 -1 1 -5 5", "2 2 -2 -2 3 -3 3 -3"},
       {"-3 3 3 -3 0 0 -1 -1"}},
      {"SignedRemainderHasTheSignOfTheDividend",
       elementwise("i64[8]", "rem", 2),
       {"-7 7 -7 7 -1 1 -5 5", "2 2 -2 -2 3 -3 3 -3"},
       {"-1 1 -1 1 -1 1 -2 2"}},
      {"DivisionOfNarrowExtremes", elementwise("i8[2]", "div", 2), {"120 120", "-27 -128"}, {"-4 0"}},
      {"DivisionByZeroIsMinusOne", elementwise("i32[3]", "div", 2), {"5 -5 0", "0 0 0"}, {"-1 -1 -1"}},
      {"UnsignedDivisionByZeroIsAllOnes", elementwise("u16[2]", "div", 2), {"5 0", "0 0"}, {"65535 65535"}},
      {"RemainderByZeroIsTheDividend", elementwise("i16[3]", "rem", 2), {"5 -5 0", "0 0 0"}, {"5 -5 0"}},
      {"SmallestByMinusOneWraps8", elementwise("i8[1]", "div", 2), {"-128", "-1"}, {"-128"}},
      {"SmallestByMinusOneWraps32", elementwise("i32[1]", "div", 2), {"-2147483648", "-1"}, {"-2147483648"}},
      {"SmallestByMinusOneWraps64",
       elementwise("i64[1]", "div", 2),
       {"-9223372036854775808", "-1"},
       {"-9223372036854775808"}},
      {"SmallestRemMinusOneIsZero", elementwise("i64[1]", "rem", 2), {"-9223372036854775808", "-1"}, {"0"}},
      // ---- shifts
      {"ShiftLeftByTheWidthOrMoreIsZero",
       elementwise("i32[4]", "shift_left", 2),
       {"1 1 1 -1", "31 32 33 -1"},
       {"-2147483648 0 0 0"}},
      {"LogicalShiftRightByTheWidthOrMoreIsZero",
       elementwise("u8[3]", "shift_right_logical", 2),
       {"255 255 255", "7 8 255"},
       {"1 0 0"}},
      {"ArithmeticShiftRightByTheWidthOrMoreIsTheSign",
       elementwise("i16[4]", "shift_right_arithmetic", 2),
       {"-2 -2 2 -32768", "1 16 16 -1"},
       {"-1 -1 0 -1"}},
      // ---- conversions
      {"FloatToIntSaturatesAndNanIsZero",
       elementwise("f32[7]", "convert", 1, " {dtype = i32}"),
       {"nan inf -inf 3e9 -3e9 -1.9 1.9"},
       {"0 2147483647 -2147483648 2147483647 -2147483648 -1 1"}},
      {"FloatToUnsignedSaturates",
       elementwise("f64[5]", "convert", 1, " {dtype = u8}"),
       {"nan -1 255.9 256 -inf"},
       {"0 0 255 255 0"}},
      {"FloatToInt64Saturates",
       elementwise("f32[4]", "convert", 1, " {dtype = i64}"),
       {"0x1p63 -0x1p63 0x1p62 nan"},
       {"9223372036854775807 -9223372036854775808 4611686018427387904 0"}},
      {"FloatToUnsigned64Saturates",
       elementwise("f64[4]", "convert", 1, " {dtype = u64}"),
       {"0x1p63 0x1p64 -1 nan"},
       {"9223372036854775808 18446744073709551615 0 0"}},
      {"Int64ToF32RoundsOnce",
       elementwise("i64[2]", "convert", 1, " {dtype = f32}"),
       {"0x4000004000000001 16777217"},
       {"0x1.000002p62 16777216"}},
      {"Int64ToBf16RoundsOnce",
       elementwise("i64[2]", "convert", 1, " {dtype = bf16}"),
       {"0x4040000000000001 257"},
       {"0x1.02p62 256"}},
      {"F64ToBf16RoundsOnce",
       elementwise("f64[2]", "convert", 1, " {dtype = bf16}"),
       {"0x1.0100000001p0 0x1.01p0"},
       {"0x1.02p0 1"}},
      {"AnyNonzeroIsTrue",
       elementwise("f32[5]", "convert", 1, " {dtype = bool}"),
       {"0 -0 0x1p-149 nan -inf"},
       {"0 0 1 1 1"}},
      // dotnet/runtime#130583
      {"RoundingNanToBf16KeepsItANan",
       main_of("%b: u32[5]",
               "  %x = bitcast %b {dtype = f32}\n  %h = convert %x {dtype = bf16}\n  %p = ne %h, %h\n"
               "  %u = bitcast %h {dtype = u16}",
               "%p, %u"),
       {"0x7f800001 0xff800001 0x7fff8c22 0x7fffffff 0x7f800000"},
       {"1 1 1 1 0", "0x7fc0 0xffc0 0x7fc0 0x7fc0 0x7f80"}},
      // openxla/xla#41605
      {"ARoundTripThroughBf16Rounds",
       main_of("%x: f32[1]", "  %h = convert %x {dtype = bf16}\n  %y = convert %h {dtype = f32}", "%y"),
       {"1.01"},
       {"1.0078125"}},
      // ---- inverse pairs keep their overflow (openxla/xla#42732); functions of run-time values and of constants
      {"LogOfExpOverflows", main_of("%x: f32[1]", "  %e = exp %x\n  %y = log %e", "%y"), {"89"}, {"inf"}},
      {"LogOfExpOfAConstantOverflows",
       main_of("", "  %x = constant 89 : f32[1]\n  %e = exp %x\n  %y = log %e", "%y"),
       {},
       {"inf"}},
      {"SqrtOfASquareOverflows", main_of("%x: f32[1]", "  %s = mul %x, %x\n  %y = sqrt %s", "%y"), {"1e20"}, {"inf"}},
      {"ProductOfExpsIsNotExpOfTheSum",
       main_of("%a: f32[1], %b: f32[1]", "  %x = exp %a\n  %y = exp %b\n  %z = mul %x, %y", "%z"),
       {"100", "-200"},
       {"nan"}},
      // openxla/xla#14478
      {"SqrtOfMinusZeroSquaredIsPlusZero",
       main_of("%x: f32[1]", "  %s = sqrt %x\n  %p = mul %s, %s\n  %one = constant 1 : f32[1]\n  %y = div %one, %p",
               "%y"),
       {"-0"},
       {"inf"}},
      // jax-ml/jax#11510
      {"ComparisonsOfWrappedIntegers",
       main_of("%x: i32[2,4]",
               "  %i = argmax %x {axis = 1, dtype = i32}\n  %four = constant 4 : i32[2]\n  %one = constant 1 : i32[2]\n"
               "  %d = sub %four, %i\n  %m = sub %d, %one\n  %big = constant 2147483647 : i32[2]\n  %y = gt %m, %big",
               "%m, %y"),
       {"1*8"},
       {"3 3", "0 0"}},
      {"IntegerOverflowWraps",
       main_of("%x: i32[2]", "  %one = constant 1 : i32[2]\n  %y = add %x, %one\n  %p = gt %y, %x", "%y, %p"),
       {"2147483647 7"},
       {"-2147483648 8", "0 1"}},
      {"DenormalsAreKept",
       elementwise("f32[3]", "mul", 2),
       {"0x1p-126 0x1p-149 0x1p-140", "0.5 1 4"},
       {"0x1p-127 0x1p-149 0x1p-138"}},
      // ---- zeros and NaN
      {"MaxAndMinPropagateNanAndOrderZeros",
       main_of("%x: f32[5], %y: f32[5]", "  %a = max %x, %y\n  %b = min %x, %y", "%a, %b"),
       {"nan 1 -0 0 -inf", "1 nan 0 -0 nan"},
       {"nan nan 0 0 nan", "nan nan -0 -0 nan"}},
      {"SignKeepsZeroAndNan", elementwise("f32[4]", "sign", 1), {"-0 0 nan -7"}, {"-0 0 nan -1"}},
      {"TiesRoundToEvenOrAway",
       main_of("%x: f32[4]", "  %a = round_even %x\n  %b = round_away %x", "%a, %b"),
       {"-2.5 -0.5 0.5 1.5"},
       {"-2 -0 0 2", "-3 -1 1 2"}},
      {"BoolsAddAsOr", elementwise("bool[4]", "add", 2), {"0 0 1 1", "0 1 0 1"}, {"0 1 1 1"}},
      // jax-ml/jax#3193
      {"ArgmaxOfNothingButNan",
       main_of("%x: f32[100]", "  %a = argmax %x {axis = 0, dtype = i32}\n  %b = argmin %x {axis = 0, dtype = i32}",
               "%a, %b"),
       {"nan*100"},
       {"0", "0"}},
      {"ArgmaxOfNanFirst",
       main_of("%x: f32[100]", "  %a = argmax %x {axis = 0, dtype = i32}\n  %b = argmin %x {axis = 0, dtype = i32}",
               "%a, %b"),
       {"nan*50 0*50"},
       {"0", "0"}},
      {"ArgmaxOfNanLast",
       main_of("%x: f32[100]", "  %a = argmax %x {axis = 0, dtype = i32}\n  %b = argmin %x {axis = 0, dtype = i32}",
               "%a, %b"),
       {"0*50 nan*50"},
       {"50", "50"}},
      {"ArgmaxOfTiesIsTheFirst",
       main_of("%x: f32[7]", "  %a = argmax %x {axis = 0, dtype = i32}\n  %b = argmin %x {axis = 0, dtype = i32}",
               "%a, %b"),
       {"0 2 -1 2 -1 2 0"},
       {"1", "2"}},
      // tensorflow/tensorflow#119990
      {"MaxOfAFewWithNan",
       main_of("%x: f32[5]", "  %a = reduce_max %x {axes = [0]}\n  %b = reduce_min %x {axes = [0]}", "%a, %b"),
       {"7 nan -2.5 11 .25"},
       {"nan", "nan"}},
      {"MaxOf4096WithNan",
       main_of("%x: f32[4096]", "  %a = reduce_max %x {axes = [0]}\n  %b = reduce_min %x {axes = [0]}", "%a, %b"),
       {"1*2048 nan 3*2047"},
       {"nan", "nan"}},
      {"MaxOf100000WithNan",
       main_of("%x: f32[100000]", "  %a = reduce_max %x {axes = [0]}", "%a"),
       {"1*50000 nan 3*49999"},
       {"nan"}},
      {"MaxOverEitherAxisWithNan",
       main_of(
           "%x: f32[33,128]",
           "  %a = reduce_max %x {axes = [0]}\n  %b = reduce_max %x {axes = [1]}\n  %c = reduce_max %x {axes = [0, 1]}",
           "%a, %b, %c"),
       {"1*300 nan 2*3923"},
       {"2*44 nan 2*83", "1 1 nan 2*30", "nan"}},
      // ---- empty reductions and empty arrays (pytorch/pytorch#91322)
      {"ReductionsOfNothing",
       main_of("%x: f32[2,0]",
               "  %a = reduce_sum %x {axes = [1]}\n  %b = reduce_prod %x {axes = [1]}\n  %c = reduce_max %x {axes = "
               "[1]}\n  %d = reduce_min %x {axes = [1]}",
               "%a, %b, %c, %d"),
       {""},
       {"0 0", "1 1", "-inf -inf", "inf inf"}},
      {"IntegerReductionsOfNothing",
       main_of("%x: i8[0]",
               "  %a = reduce_max %x {axes = [0]}\n  %b = reduce_min %x {axes = [0]}\n  %c = reduce_and %x {axes = "
               "[0]}\n  %d = reduce_or %x {axes = [0]}",
               "%a, %b, %c, %d"),
       {""},
       {"-128", "127", "-1", "0"}},
      {"SoftmaxOfNothing",
       main_of("%x: f32[4,0,0]",
               "  %m = reduce_max %x {axes = [2]}\n  %mb = broadcast %m {shape = [4, 0, 0], dims = [0, 1]}\n  %s = sub "
               "%x, %mb\n  %e = exp %s\n"
               "  %t = reduce_sum %e {axes = [2]}\n  %tb = broadcast %t {shape = [4, 0, 0], dims = [0, 1]}\n  %y = div "
               "%e, %tb",
               "%y"),
       {""},
       {""}},
      {"DotOverAnEmptyAxisIsZero",
       main_of("%x: f32[2,0], %y: f32[0,3]",
               "  %z = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = f32}", "%z"),
       {"", ""},
       {"0 0 0 0 0 0"}},
      // pytorch/pytorch#11752: log(sum) must not drown in a large maximum
      {"LogSoftmaxOfHugeLogits",
       main_of("%x: f32[2]",
               "  %m = reduce_max %x {axes = [0]}\n  %mb = broadcast %m {shape = [2]}\n  %s = sub %x, %mb\n  %e = exp "
               "%s\n  %t = reduce_sum %e {axes = [0]}\n"
               "  %l = log %t\n  %lb = broadcast %l {shape = [2]}\n  %y = sub %lb, %s",
               "%y"),
       {"1e8 1e8"},
       {"0.69314718 0.69314718"},
       2},
      // ---- gather, scatter, dynamic slices
      // openxla/xla#48717: unsigned indices are unsigned
      {"UnsignedIndexOfAGather",
       main_of("%i: u8[1]", count_300 + "  %y = gather %c, %i " + row_gather + "}", "%y"),
       {"200"},
       {"200"}},
      {"UnsignedConstantIndexOfAGather",
       main_of("", count_300 + "  %i = constant [200] : u8[1]\n  %y = gather %c, %i " + row_gather + ", mode = clip}",
               "%y"),
       {},
       {"200"}},
      {"UnsignedIndexOfADynamicSlice",
       main_of("%i: u8[]", count_300 + "  %y = dynamic_slice %c, %i {sizes = [1]}", "%y"),
       {"200"},
       {"200"}},
      {"UnsignedConstantIndexOfADynamicSlice",
       main_of("", count_300 + "  %i = constant 200 : u8[]\n  %y = dynamic_slice %c, %i {sizes = [1]}", "%y"),
       {},
       {"200"}},
      // jax-ml/jax#7595
      {"GatherClips",
       main_of("%x: f32[3], %i: i32[2]", "  %y = gather %x, %i " + row_gather + ", mode = clip}", "%y"),
       {"1 2 3", "5 -1"},
       {"3 1"}},
      {"GatherReports",
       main_of("%x: f32[3], %i: i32[1]", "  %y = gather %x, %i " + row_gather + "}", "%y"),
       {"1 2 3", "5"},
       {},
       0,
       "gather: index 5 is out of range for axis 0 of f32[3]: expected 0 to 2 (<text>:2)"},
      // jax-ml/jax#35896: indices keep their 64 bits
      {"WideIndexClips",
       main_of("%x: i32[3], %i: i64[2]", "  %y = gather %x, %i " + row_gather + ", mode = clip}", "%y"),
       {"5 7 9", "1099511627777 4294967297"},
       {"9 9"}},
      {"WideIndexReports",
       main_of("%x: i32[3], %i: i64[1]", "  %y = gather %x, %i " + row_gather + "}", "%y"),
       {"5 7 9", "4294967297"},
       {},
       0,
       "gather: index 4294967297 is out of range for axis 0 of i32[3]: expected 0 to 2 (<text>:2)"},
      {"WideIota",
       main_of(
           "",
           "  %i = iota {dtype = i64, shape = [4], axis = 0}\n  %c = constant 2147483646 : i64[4]\n  %y = add %i, %c",
           "%y"),
       {},
       {"2147483646 2147483647 2147483648 2147483649"}},
      {"WideSum",
       main_of("%x: i64[2]", "  %y = reduce_sum %x {axes = [0]}", "%y"),
       {"1099511627776 1"},
       {"1099511627777"}},
      // openxla/stablehlo#1541
      {"GatherWindowsAreMovedInside",
       main_of("%x: i32[3], %i: i32[2]",
               "  %y = gather %x, %i {offset_dims = [1], start_index_map = [0], index_vector_dim = 1, slice_sizes = "
               "[2], mode = clip}",
               "%y"),
       {"10 20 30", "-100 5"},
       {"10 20 20 30"}},
      // pytorch/pytorch#1631
      {"ScatterAddsRepeatedIndices",
       main_of("%x: f32[5,2], %i: i32[4], %u: f32[4,2]",
               "  %y = scatter %x, %i, %u {update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combine = add, mode = clip}",
               "%y"),
       {"0*10", "3 1 3 3", "1 1 2 2 3 3 4 4"},
       {"0 0 2 2 0 0 8 8 0 0"}},
      {"ScatterDropsWindowsPartlyOutside",
       main_of("%x: f32[3], %i: i32[3], %u: f32[3,2]",
               "  %y = scatter %x, %i, %u {update_window_dims = [1], scatter_dims_to_operand_dims = [0], "
               "index_vector_dim = 1, combine = add, mode = clip}",
               "%y"),
       {"0 0 0", "-1 1 2", "1 2 10 20 100 200"},
       {"0 10 20"}},
      {"ScatterOfHalvesSumsInF32",
       main_of("%x: bf16[1], %i: i32[1000], %u: bf16[1000]",
               "  %y = scatter %x, %i, %u {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
               "index_vector_dim = 1, combine = add, mode = clip}",
               "%y"),
       {"0", "0*1000", "1*1000"},
       {"1000"}},
      {"DynamicUpdateSliceIsMovedInside",
       main_of("%x: i32[4], %u: i32[2], %i: i32[]", "  %y = dynamic_update_slice %x, %u, %i", "%y"),
       {"1 2 3 4", "8 9", "100"},
       {"1 2 8 9"}},
      // ---- movement
      // ROCm/AMDMIGraphX#1496
      {"TwoSlicesReshapedAndTransposed",
       main_of("%x: f32[1,2,8]",
               "  %a = slice %x {start = [0, 0, 0], limit = [1, 2, 4], stride = [1, 1, 1]}\n  %b = slice %x {start = "
               "[0, 0, 4], limit = [1, 2, 8], stride = [1, 1, 1]}\n"
               "  %c = reshape %a {shape = [1, 2, 2, 2]}\n  %d = reshape %b {shape = [1, 2, 2, 2]}\n"
               "  %e = transpose %c {permutation = [0, 2, 1, 3]}\n  %f = transpose %d {permutation = [0, 2, 1, 3]}",
               "%e, %f"),
       {"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"},
       {"0 1 8 9 2 3 10 11", "4 5 12 13 6 7 14 15"}},
      // pytorch/pytorch#189895
      {"PadOfAReduction",
       main_of("%x: f32[1,16384]",
               "  %s = reduce_sum %x {axes = [1]}\n  %z = constant 0 : f32[]\n  %y = pad %s, %z {low = [1], high = "
               "[0], interior = [0]}",
               "%y"),
       {"1*16384"},
       {"0 16384"}},
      {"ConcatenateWithAReduction",
       main_of("%x: f32[1,16384]",
               "  %s = reduce_sum %x {axes = [1]}\n  %z = constant [0] : f32[1]\n  %y = concatenate %z, %s {axis = 0}",
               "%y"),
       {"1*16384"},
       {"0 16384"}},
      // openxla/xla#48715
      {"CropThenPad",
       main_of("%x: i32[2]",
               "  %z = constant 0 : i32[]\n  %a = pad %x, %z {low = [-1], high = [0], interior = [0]}\n  %y = pad %a, "
               "%z {low = [1], high = [0], interior = [0]}",
               "%y"),
       {"669 -763"},
       {"0 -763"}},
      {"CropAndPadInOne",
       main_of("%x: i32[6]", "  %z = constant 0 : i32[]\n  %y = pad %x, %z {low = [-5], high = [1], interior = [0]}",
               "%y"),
       {"0 1 2 3 4 5"},
       {"5 0"}},
      // ---- dots
      // pytorch/pytorch#83863
      {"DotOf1024HalvesSumsInF32",
       main_of("%x: bf16[1,1024], %y: bf16[1024,1]",
               "  %z = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = bf16}", "%z"),
       {"1*1024", "1*1024"},
       {"1024"}},
      {"DotOf1000HalvesSumsInF32",
       main_of("%x: bf16[1,1000], %y: bf16[1000,1]",
               "  %z = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = bf16}", "%z"),
       {"1*1000", "1*1000"},
       {"1000"}},
      {"SumOf1000HalvesIsInF32",
       main_of("%x: bf16[1000]", "  %y = reduce_sum %x {axes = [0]}", "%y"),
       {"1*1000"},
       {"1000"}},
      // jax-ml/jax#39336
      {"ScaleAppliesToDotAndBias",
       main_of("%x: f32[1,2], %y: f32[2,1]",
               "  %d = dot_general %x, %y {lhs_contract = [1], rhs_contract = [0], dtype = f32}\n  %five = constant 5 "
               ": f32[1,1]\n  %s = add %d, %five\n  %half = constant 0.5 : f32[1,1]\n  %z = mul %half, %s",
               "%z"),
       {"1 2", "3 4"},
       {"8"}},
      // ml-explore/mlx#2835: two queries over five keys; the last query sees every key
      {"CausalMaskIsAlignedAtTheBottomRight",
       main_of(
           "%s: f32[2,5], %v: f32[5,1]",
           "  %q = iota {dtype = i32, shape = [2, 5], axis = 0}\n  %k = iota {dtype = i32, shape = [2, 5], axis = 1}\n "
           " %three = constant 3 : i32[2,5]\n"
           "  %last = add %q, %three\n  %seen = le %k, %last\n  %hidden = constant -inf : f32[2,5]\n  %l = select "
           "%seen, %s, %hidden\n"
           "  %m = reduce_max %l {axes = [1]}\n  %mb = broadcast %m {shape = [2, 5], dims = [0]}\n  %c = sub %l, %mb\n "
           " %e = exp %c\n"
           "  %t = reduce_sum %e {axes = [1]}\n  %tb = broadcast %t {shape = [2, 5], dims = [0]}\n  %p = div %e, %tb\n"
           "  %y = dot_general %p, %v {lhs_contract = [1], rhs_contract = [0], dtype = f32}",
           "%y"),
       {"0*10", "0 1 2 3 4"},
       {"1.5 2"},
       2},
      // ---- random bits (jax-ml/jax#13341)
      {"ThreefryKnownAnswers",
       elementwise("u64[3]", "threefry2x32", 2),
       {"0 0xffffffffffffffff 0x13198a2e03707344", "0 0xffffffffffffffff 0x243f6a8885a308d3"},
       {"0x6b20015999ba4efe 0x1cb996fcbb002be7 0xc4923a9c483df7a0"}},
      // ---- long chains
      {"FortyDoublingsAndHalvings", doubled_and_halved(40), {"1.2345"}, {"1.2345"}},
      {"FourHundredDoublingsAndHalvings", doubled_and_halved(400), {"1.2345"}, {"1.2345"}},
  };
  // jax-ml/jax#40849: each of two nested dynamic slices clamps its own start
  for (const auto& [i, j] : {std::pair{9, 0}, std::pair{3, 5}, std::pair{6, 0}})
    all.push_back({"NestedDynamicSlicesClampEach_" + std::to_string(i) + "_" + std::to_string(j),
                   main_of("%i: i32[], %j: i32[]",
                           "  %c = iota {dtype = i32, shape = [10], axis = 0}\n  %a = dynamic_slice %c, %i {sizes = "
                           "[4]}\n  %y = dynamic_slice %a, %j {sizes = [1]}",
                           "%y"),
                   {std::to_string(i), std::to_string(j)},
                   {"6"}});
  return all;
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = all_cases();
  return all;
}

}  // namespace burin::conformance
