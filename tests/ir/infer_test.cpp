// Type rules: what each op gives, and word for word what it says when its operands do not fit.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/parser.h"

namespace burin::ir {
namespace {

constexpr std::string_view values =
    "func @main(%a: f32[2,3], %b: f32[3], %c: f32[2,3,4], %d: f64[2,3], %h: bf16[2,3], %g: f16[2,3], %n: i32[2,3], "
    "%u: u8[2,3], %p: bool[2,3], %k: u64[4], %s: f32[], %i: i32[], %j: u8[], %z: f32[0,3], %r8: f32[1,1,1,1,1,1,1,1], "
    "%ids: i64[7,1], %pairs: i32[5,2], %upd: f32[7,3], %big: f32[1000,5], %bids: i32[2,7,1], "
    "%huge: i8[4611686018427387904], %fids: f32[7,1], %none: i32[0,1], %wide: i8[9223372036854775807,1]) { ";

constexpr std::string_view bodies =
    " func @f(%x: f32[], %n: i32[]) { %0 = exp %x return %0, %n }"
    " func @f_jvp(%x: f32[], %n: i32[], %dx: f32[]) { %0 = exp %x return %0, %n, %dx }"
    " func @f_jvp_few(%x: f32[], %n: i32[]) { %0 = exp %x return %0, %n, %x }"
    " func @f_jvp_wrong(%x: f32[], %n: i32[], %dx: f32[]) { %0 = exp %x return %0, %n, %n }"
    " func @f_forward(%x: f32[], %n: i32[]) { %0 = exp %x return %0, %n, %0 }"
    " func @f_forward_few(%x: f32[], %n: i32[]) { return %x }"
    " func @f_forward_args(%x: f32[], %n: f32[]) { return %x, %n }"
    " func @f_backward(%y: f32[], %dy: f32[]) { %0 = mul %y, %dy return %0 }"
    " func @f_backward_args(%dy: f32[]) { return %dy }"
    " func @f_backward_results(%y: f32[], %dy: f32[]) { return %y, %dy }";

std::string gather(std::string_view operands, std::string_view attributes) {
  return "gather " + std::string(operands) + " {" + std::string(attributes) + "}";
}

// The type of `%0 = op`, or the message without its place in the text.
std::string typed(std::string_view op) {
  const std::string text = std::string(values) + "%0 = " + std::string(op) + " return %0 }" + std::string(bodies);
  try {
    return to_string(parse(text).result_types()[0]);
  } catch (const Error& error) {
    const std::string message = error.what();
    const std::string place = "<text>:1:" + std::to_string(values.size() + 6) + ": ";
    return message.starts_with(place) ? message.substr(place.size()) : message;
  }
}

std::string all_results(std::string_view line) {
  const Function f = parse(std::string(values) + std::string(line) + " }" + std::string(bodies));
  std::string text;
  for (const Type& type : f.result_types()) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

TEST(Infer, Elementwise) {
  for (std::string_view op : {"neg", "abs", "sign", "stop_gradient"}) {
    EXPECT_EQ(typed(std::string(op) + " %a"), "f32[2,3]") << op;
    EXPECT_EQ(typed(std::string(op) + " %u"), "u8[2,3]") << op;
  }
  for (std::string_view op : {"add", "mul", "max", "min"}) EXPECT_EQ(typed(std::string(op) + " %p, %p"), "bool[2,3]");
  EXPECT_EQ(typed("exp %h"), "bf16[2,3]");
  EXPECT_EQ(typed("exp %r8"), "f32[1,1,1,1,1,1,1,1]");
  EXPECT_EQ(typed("exp %z"), "f32[0,3]");
  EXPECT_EQ(typed("is_finite %a"), "bool[2,3]");
  EXPECT_EQ(typed("pow %n, %n"), "i32[2,3]");
  EXPECT_EQ(typed("bit_xor %p, %p"), "bool[2,3]");
  EXPECT_EQ(typed("popcount %u"), "u8[2,3]");
  EXPECT_EQ(typed("threefry2x32 %k, %k"), "u64[4]");
  EXPECT_EQ(typed("select %p, %n, %n"), "i32[2,3]");
  EXPECT_EQ(typed("clamp %s, %s, %s"), "f32[]");
  EXPECT_EQ(typed("convert %p {dtype = f16}"), "f16[2,3]");
  EXPECT_EQ(typed("bitcast %a {dtype = u32}"), "u32[2,3]");
  EXPECT_EQ(typed("lt %p, %p"), "bool[2,3]");
}

TEST(Infer, ElementwiseErrors) {
  EXPECT_EQ(typed("add %a"), "add: expected 2 operands, found 1");
  EXPECT_EQ(typed("exp %a, %a"), "exp: expected 1 operand, found 2");
  EXPECT_EQ(typed("add %a, %b"), "add: shapes differ: operand 0 is f32[2,3], operand 1 is f32[3]");
  EXPECT_EQ(typed("clamp %a, %a, %d"), "clamp: dtypes differ: operand 0 is f32[2,3], operand 2 is f64[2,3]");
  EXPECT_EQ(typed("lt %a, %n"), "lt: dtypes differ: operand 0 is f32[2,3], operand 1 is i32[2,3]");
  EXPECT_EQ(typed("exp %n"), "exp: expected floats, found i32[2,3] as operand 0");
  EXPECT_EQ(typed("neg %p"), "neg: expected numbers, found bool[2,3] as operand 0");
  EXPECT_EQ(typed("popcount %p"), "popcount: expected integers, found bool[2,3] as operand 0");
  EXPECT_EQ(typed("bit_and %a, %a"), "bit_and: expected integers or bools, found f32[2,3] as operand 0");
  EXPECT_EQ(typed("threefry2x32 %n, %n"), "threefry2x32: expected u64, found i32[2,3] as operand 0");
  EXPECT_EQ(typed("is_finite %n"), "is_finite: expected floats, found i32[2,3] as operand 0");
  EXPECT_EQ(typed("bitcast %p {dtype = u8}"), "bitcast: expected numbers, found bool[2,3] as operand 0");
  EXPECT_EQ(typed("select %a, %a, %a"), "select: expected a bool condition, found f32[2,3] as operand 0");
  EXPECT_EQ(typed("select %p, %a, %d"), "select: dtypes differ: operand 1 is f32[2,3], operand 2 is f64[2,3]");
  EXPECT_EQ(typed("select %p, %b, %b"), "select: shapes differ: operand 0 is bool[2,3], operand 1 is f32[3]");
  EXPECT_EQ(typed("bitcast %a {dtype = u16}"),
            "bitcast: f32[2,3] has elements of 32 bits, expected a number dtype of that width, found u16");
  EXPECT_EQ(typed("bitcast %u {dtype = bool}"),
            "bitcast: u8[2,3] has elements of 8 bits, expected a number dtype of that width, found bool");
  EXPECT_EQ(typed("convert %huge {dtype = f64}"),
            "convert: the result f64[4611686018427387904] has more bytes than 64 bits can count");
}

TEST(Infer, Reduce) {
  EXPECT_EQ(typed("reduce_sum %c {axes = [0, 2]}"), "f32[3]");
  EXPECT_EQ(typed("reduce_prod %c {axes = [2, 0]}"), "f32[3]");
  EXPECT_EQ(typed("reduce_max %z {axes = [0]}"), "f32[3]");
  EXPECT_EQ(typed("reduce_min %a {axes = [0, 1]}"), "f32[]");
  EXPECT_EQ(typed("reduce_sum %p {axes = [1]}"), "bool[2]");
  EXPECT_EQ(typed("reduce_and %u {axes = [1]}"), "u8[2]");
  EXPECT_EQ(typed("reduce_or %p"), "bool[2,3]");
  EXPECT_EQ(typed("argmax %c {axis = 1, dtype = i8}"), "i8[2,4]");
  EXPECT_EQ(typed("argmin %z {axis = 1, dtype = i64}"), "i64[0]");
  EXPECT_EQ(typed("argmax %big {axis = 0, dtype = i16}"), "i16[5]");
}

TEST(Infer, ReduceErrors) {
  EXPECT_EQ(typed("reduce_sum %a {axes = [2]}"),
            "reduce_sum: axes: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("reduce_sum %b {axes = [-1]}"),
            "reduce_sum: axes: axis -1 is out of range for f32[3], which has 1 axis");
  EXPECT_EQ(typed("reduce_max %s {axes = [0]}"),
            "reduce_max: axes: axis 0 is out of range for f32[], which has 0 axes");
  EXPECT_EQ(typed("reduce_sum %a {axes = [1, 1]}"), "reduce_sum: axes: axis 1 occurs twice");
  EXPECT_EQ(typed("reduce_or %a {axes = [1]}"), "reduce_or: expected integers or bools, found f32[2,3] as operand 0");
  EXPECT_EQ(typed("argmax %a {axis = 2, dtype = i32}"),
            "argmax: axis: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("argmax %a {axis = 1, dtype = f32}"), "argmax: expected an integer dtype for the indices, found f32");
  EXPECT_EQ(typed("argmin %z {axis = 0, dtype = i32}"), "argmin: axis 0 of f32[0,3] is empty, so no index exists");
  EXPECT_EQ(typed("argmin %big {dtype = u8}"),
            "argmin: u8 cannot hold every index of axis 0 of f32[1000,5], whose extent is 1000");
}

TEST(Infer, Movement) {
  EXPECT_EQ(typed("reshape %c {shape = [4, 6]}"), "f32[4,6]");
  EXPECT_EQ(typed("reshape %r8"), "f32[]");
  EXPECT_EQ(typed("reshape %z {shape = [7, 0, 2]}"), "f32[7,0,2]");
  EXPECT_EQ(typed("transpose %c {permutation = [2, 0, 1]}"), "f32[4,2,3]");
  EXPECT_EQ(typed("transpose %s"), "f32[]");
  EXPECT_EQ(typed("broadcast %s {shape = [3, 5]}"), "f32[3,5]");
  EXPECT_EQ(typed("broadcast %b {shape = [0, 3], dims = [1]}"), "f32[0,3]");
  EXPECT_EQ(typed("broadcast %ids {shape = [2, 7, 4], dims = [1, 2]}"), "i64[2,7,4]");
  EXPECT_EQ(typed("slice %c {start = [0, 1, 0], limit = [2, 3, 4], stride = [1, 2, 3]}"), "f32[2,1,2]");
  EXPECT_EQ(typed("slice %a {start = [2, 3], limit = [2, 3], stride = [1, 1]}"), "f32[0,0]");
  EXPECT_EQ(typed("slice %s"), "f32[]");
  EXPECT_EQ(typed("pad %a, %s {low = [1, -1], high = [-2, 0], interior = [0, 3]}"), "f32[1,8]");
  EXPECT_EQ(typed("pad %z, %s {low = [2, 0], high = [0, 0], interior = [9, 0]}"), "f32[2,3]");
  EXPECT_EQ(typed("concatenate %a, %z, %a"), "f32[4,3]");
  EXPECT_EQ(typed("concatenate %c {axis = 2}"), "f32[2,3,4]");
  EXPECT_EQ(typed("reverse %c {axes = [2, 0]}"), "f32[2,3,4]");
}

TEST(Infer, MovementErrors) {
  EXPECT_EQ(typed("reshape %a {shape = [4]}"), "reshape: f32[2,3] has 6 elements, the shape [4] has 4");
  EXPECT_EQ(typed("reshape %a {shape = [6, -1]}"), "reshape: shape: axis 1 has the negative extent -1");
  EXPECT_EQ(typed("reshape %s {shape = [1, 1, 1, 1, 1, 1, 1, 1, 1]}"),
            "reshape: shape has 9 axes, at most 8 are possible");
  EXPECT_EQ(typed("reshape %s {shape = [4294967296, 4294967296]}"),
            "reshape: shape: [4294967296,4294967296] has more elements than 64 bits can count");
  EXPECT_EQ(typed("transpose %a {permutation = [0]}"),
            "transpose: permutation has 1 entry, expected one per axis of f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("transpose %a {permutation = [0, 0]}"), "transpose: permutation: axis 0 occurs twice");
  EXPECT_EQ(typed("broadcast %a {shape = [2, 3], dims = [0]}"),
            "broadcast: dims has 1 entry, expected one per axis of f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("broadcast %a {shape = [2, 3], dims = [0, 2]}"),
            "broadcast: dims: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("broadcast %a {shape = [3, 2], dims = [1, 0]}"),
            "broadcast: dims: expected increasing axes, found [1, 0]");
  EXPECT_EQ(typed("broadcast %b {shape = [3, 5], dims = [1]}"),
            "broadcast: axis 0 of f32[3] is 3, axis 1 of the result f32[3,5] is 5: expected equal extents or 1");
  EXPECT_EQ(typed("slice %a {start = [0, 0], limit = [2, 4], stride = [1, 1]}"),
            "slice: axis 1 of f32[2,3]: expected 0 <= start <= limit <= 3, found start 0 and limit 4");
  EXPECT_EQ(typed("slice %b {start = [2], limit = [1], stride = [1]}"),
            "slice: axis 0 of f32[3]: expected 0 <= start <= limit <= 3, found start 2 and limit 1");
  EXPECT_EQ(typed("slice %b {start = [0], limit = [1], stride = [0]}"),
            "slice: axis 0: expected a stride of at least 1, found 0");
  EXPECT_EQ(typed("slice %b {start = [0], limit = [1]}"),
            "slice: stride has 0 entries, expected one per axis of f32[3], which has 1 axis");
  EXPECT_EQ(typed("pad %b, %a {low = [0], high = [0], interior = [0]}"),
            "pad: value: expected rank 0, found f32[2,3] as operand 1");
  EXPECT_EQ(typed("pad %b, %i {low = [0], high = [0], interior = [0]}"),
            "pad: dtypes differ: operand 0 is f32[3], operand 1 is i32[]");
  EXPECT_EQ(typed("pad %b, %s {low = [0], high = [0], interior = [-1]}"),
            "pad: axis 0: expected interior >= 0, found -1");
  EXPECT_EQ(typed("pad %b, %s {low = [-2], high = [-2], interior = [0]}"),
            "pad: axis 0 of f32[3] would have the extent -1 (low -2, high -2, interior 0)");
  EXPECT_EQ(typed("pad %b, %s {low = [0], high = [0], interior = [9223372036854775807]}"),
            "pad: axis 0 of f32[3] has an extent beyond 64 bits (low 0, high 0, interior 9223372036854775807)");
  EXPECT_EQ(typed("concatenate"), "concatenate: expected at least 1 operand(s), found 0");
  EXPECT_EQ(typed("concatenate %a, %b"), "concatenate: ranks differ: operand 0 is f32[2,3], operand 1 is f32[3]");
  EXPECT_EQ(typed("concatenate %a, %z {axis = 1}"),
            "concatenate: axis 0 differs: operand 0, f32[2,3], has 2, operand 1, f32[0,3], has 0");
  EXPECT_EQ(typed("concatenate %wide, %wide"), "concatenate: axis 0 has an extent beyond 64 bits");
  EXPECT_EQ(typed("reverse %a {axes = [0, 0]}"), "reverse: axes: axis 0 occurs twice");
}

TEST(Infer, DotGeneral) {
  EXPECT_EQ(typed("dot_general %a, %b {lhs_contract = [1], rhs_contract = [0], dtype = f32}"), "f32[2]");
  EXPECT_EQ(typed("dot_general %a, %a {dtype = f64}"), "f64[2,3,2,3]");
  EXPECT_EQ(
      typed(
          "dot_general %c, %c {lhs_batch = [1], rhs_batch = [1], lhs_contract = [0], rhs_contract = [0], dtype = f32}"),
      "f32[3,4,4]");
  EXPECT_EQ(typed("dot_general %c, %c {lhs_batch = [2, 0], rhs_batch = [2, 0], lhs_contract = [1], rhs_contract = [1], "
                  "dtype = f32}"),
            "f32[4,2]");
  EXPECT_EQ(typed("dot_general %z, %z {lhs_contract = [0], rhs_contract = [0], dtype = f32}"), "f32[3,3]");
  const std::string inner = " {lhs_contract = [0, 1], rhs_contract = [0, 1], dtype = ";
  EXPECT_EQ(typed("dot_general %h, %h" + inner + "f32}"), "f32[]");
  EXPECT_EQ(typed("dot_general %h, %h" + inner + "bf16}"), "bf16[]");
  EXPECT_EQ(typed("dot_general %u, %u" + inner + "i16}"), "i16[]");
  EXPECT_EQ(typed("dot_general %u, %u" + inner + "u32}"), "u32[]");
  EXPECT_EQ(typed("dot_general %n, %n" + inner + "i64}"), "i64[]");
  EXPECT_EQ(typed("dot_general %p, %p" + inner + "bool}"), "bool[]");
}

TEST(Infer, DotGeneralErrors) {
  EXPECT_EQ(typed("dot_general %a, %a {lhs_contract = [1], rhs_contract = [0], dtype = f32}"),
            "dot_general: contracting sizes differ: lhs f32[2,3] axis 1 is 3, rhs f32[2,3] axis 0 is 2");
  EXPECT_EQ(typed("dot_general %c, %a {lhs_batch = [1], rhs_batch = [0], dtype = f32}"),
            "dot_general: batch sizes differ: lhs f32[2,3,4] axis 1 is 3, rhs f32[2,3] axis 0 is 2");
  EXPECT_EQ(typed("dot_general %a, %b {lhs_contract = [1], dtype = f32}"),
            "dot_general: contracting axes: 1 axis of lhs f32[2,3], but 0 axes of rhs f32[3]");
  EXPECT_EQ(typed("dot_general %a, %b {lhs_batch = [0, 1], rhs_batch = [0], dtype = f32}"),
            "dot_general: batch axes: 2 axes of lhs f32[2,3], but 1 axis of rhs f32[3]");
  EXPECT_EQ(
      typed(
          "dot_general %a, %a {lhs_batch = [1], rhs_batch = [1], lhs_contract = [0], rhs_contract = [1], dtype = f32}"),
      "dot_general: axis 1 of rhs f32[2,3] is both a batch and a contracting axis");
  EXPECT_EQ(typed("dot_general %a, %b {lhs_contract = [1], rhs_contract = [1], dtype = f32}"),
            "dot_general: rhs_contract: axis 1 is out of range for f32[3], which has 1 axis");
  EXPECT_EQ(typed("dot_general %a, %d {dtype = f64}"),
            "dot_general: dtypes differ: operand 0 is f32[2,3], operand 1 is f64[2,3]");
  const auto refused = [](std::string_view from, std::string_view to) {
    return "dot_general: operands of " + std::string(from) + " cannot give a result of " + std::string(to) +
           ": expected the same dtype or a wider one that has all its values";
  };
  EXPECT_EQ(typed("dot_general %a, %a {dtype = bf16}"), refused("f32", "bf16"));
  EXPECT_EQ(typed("dot_general %h, %h {dtype = f16}"), refused("bf16", "f16"));
  EXPECT_EQ(typed("dot_general %n, %n {dtype = u64}"), refused("i32", "u64"));
  EXPECT_EQ(typed("dot_general %n, %n {dtype = f64}"), refused("i32", "f64"));
  EXPECT_EQ(typed("dot_general %u, %u {dtype = i8}"), refused("u8", "i8"));
  EXPECT_EQ(typed("dot_general %p, %p {dtype = i32}"), refused("bool", "i32"));
  EXPECT_EQ(typed("dot_general %r8, %r8 {dtype = f32}"), "dot_general: the result has 16 axes, at most 8 are possible");
}

TEST(Infer, ConstantAndIota) {
  EXPECT_EQ(typed("constant 0.5 : bf16[2,0]"), "bf16[2,0]");
  EXPECT_EQ(typed("iota {dtype = f16, shape = [3, 5], axis = 1}"), "f16[3,5]");
  EXPECT_EQ(typed("iota {dtype = bool, shape = [3]}"), "iota: expected a number dtype, found bool");
  EXPECT_EQ(typed("iota {dtype = i32}"), "iota: axis: axis 0 is out of range for i32[], which has 0 axes");
  EXPECT_EQ(typed("iota {dtype = i32, shape = [-3]}"), "iota: shape: axis 0 has the negative extent -3");
}

TEST(Infer, Gather) {
  const std::string rows =
      "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, ";
  EXPECT_EQ(typed(gather("%a, %ids", rows + "slice_sizes = [1, 3]")), "f32[7,3]");
  EXPECT_EQ(typed(gather("%a, %ids", rows + "slice_sizes = [1, 0]")), "f32[7,0]");
  EXPECT_EQ(typed(gather("%z, %none", rows + "slice_sizes = [1, 3]")), "f32[0,3]");
  // Windows, the index vector as the last axis, and indices that are vectors without an axis of their own.
  EXPECT_EQ(typed(gather("%c, %pairs",
                         "offset_dims = [0, 2, 3], start_index_map = [2, 0], index_vector_dim = 1, "
                         "slice_sizes = [1, 3, 2]")),
            "f32[1,5,3,2]");
  EXPECT_EQ(typed(gather("%a, %i",
                         "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "
                         "slice_sizes = [2, 1]")),
            "f32[2]");
  EXPECT_EQ(typed(gather("%c, %bids",
                         "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
                         "indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2, "
                         "slice_sizes = [1, 1, 4]")),
            "f32[2,7,4]");
}

TEST(Infer, GatherErrors) {
  const std::string map = "start_index_map = [0], index_vector_dim = 1, ";
  const std::string rows = "offset_dims = [1], collapsed_slice_dims = [0], " + map;
  EXPECT_EQ(typed(gather("%a, %fids", rows + "slice_sizes = [1, 3]")),
            "gather: indices: expected integers, found f32[7,1] as operand 1");
  EXPECT_EQ(typed(gather("%a, %ids", rows + "slice_sizes = [1]")),
            "gather: slice_sizes has 1 entry, expected one per axis of f32[2,3], which has 2 axes");
  EXPECT_EQ(typed(gather("%a, %ids", rows + "slice_sizes = [2, 3]")),
            "gather: slice_sizes: axis 0 is collapsed or batching, expected 1, found 2");
  EXPECT_EQ(typed(gather("%a, %ids", rows + "slice_sizes = [1, 4]")),
            "gather: axis 1: a slice of 4 does not fit f32[2,3]");
  EXPECT_EQ(typed(gather("%z, %ids", rows + "slice_sizes = [1, 3]")),
            "gather: axis 0 of f32[0,3] is empty, so nothing can be read for the result f32[7,3]");
  EXPECT_EQ(typed(gather("%a, %ids", "offset_dims = [2], collapsed_slice_dims = [0], " + map + "slice_sizes = [1, 3]")),
            "gather: offset_dims: axis 2 is out of range for a rank of 2");
  EXPECT_EQ(typed(gather("%a, %ids", "offset_dims = [1, 0], " + map + "slice_sizes = [2, 3]")),
            "gather: offset_dims: expected increasing axes, found [1, 0]");
  EXPECT_EQ(typed(gather("%a, %ids", "offset_dims = [1], " + map + "slice_sizes = [2, 3]")),
            "gather: offset_dims, collapsed_slice_dims and operand_batching_dims name 1 axis together, the operand "
            "f32[2,3] has 2 axes");
  EXPECT_EQ(typed(gather("%a, %ids",
                         "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], "
                         "index_vector_dim = 1, slice_sizes = [1, 3]")),
            "gather: start_index_map names 2 axes, but each index has 1 component: the indices are i64[7,1], "
            "index_vector_dim is 1");
  EXPECT_EQ(typed(gather("%a, %ids",
                         "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [2], "
                         "index_vector_dim = 1, slice_sizes = [1, 3]")),
            "gather: start_index_map: axis 2 is out of range for f32[2,3], which has 2 axes");
  EXPECT_EQ(typed(gather("%a, %ids",
                         "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
                         "index_vector_dim = 3, slice_sizes = [1, 3]")),
            "gather: index_vector_dim is 3, expected 0 to 2 for the indices i64[7,1]");
  const std::string batch = "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], ";
  const std::string sizes = "slice_sizes = [1, 1, 4]";
  EXPECT_EQ(typed(gather("%c, %bids",
                         batch + "indices_batching_dims = [2], start_index_map = [1], index_vector_dim = 2, " + sizes)),
            "gather: indices_batching_dims names axis 2, which is index_vector_dim");
  EXPECT_EQ(typed(gather("%c, %bids", batch + "start_index_map = [1], index_vector_dim = 2, " + sizes)),
            "gather: operand_batching_dims names 1 axis, indices_batching_dims 0");
  EXPECT_EQ(typed(gather("%c, %bids",
                         batch + "indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 2, " + sizes)),
            "gather: batching sizes differ: operand f32[2,3,4] axis 0 is 2, indices i32[2,7,1] axis 1 is 7");
  EXPECT_EQ(typed(gather("%c, %bids",
                         batch + "indices_batching_dims = [0], start_index_map = [0], index_vector_dim = 2, " + sizes)),
            "gather: start_index_map and operand_batching_dims both name axis 0");
  EXPECT_EQ(typed(gather("%r8, %pairs",
                         "offset_dims = [1, 2, 3, 4, 5, 6, 7, 8], start_index_map = [0, 1], "
                         "index_vector_dim = 1, slice_sizes = [1, 1, 1, 1, 1, 1, 1, 1]")),
            "gather: the result has 9 axes, at most 8 are possible");
}

TEST(Infer, Scatter) {
  const std::string rows =
      "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
      "index_vector_dim = 1}";
  EXPECT_EQ(typed("scatter %a, %ids, %upd {" + rows), "f32[2,3]");
  EXPECT_EQ(typed("scatter %z, %ids, %upd {" + rows), "f32[0,3]");
  EXPECT_EQ(
      typed("scatter %c, %bids, %c {update_window_dims = [2], inserted_window_dims = [1], operand_batching_dims = "
            "[0], indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2}"),
      "scatter: axis 1 of the updates f32[2,3,4] is 3, expected 7 as in the indices i32[2,7,1]");
  EXPECT_EQ(typed("scatter %a, %ids, %c {" + rows), "scatter: updates f32[2,3,4]: expected 1 window and 1 index axes");
  EXPECT_EQ(typed("scatter %a, %ids, %a {" + rows),
            "scatter: axis 0 of the updates f32[2,3] is 2, expected 7 as in the indices i64[7,1]");
  EXPECT_EQ(typed("scatter %ids, %ids, %upd {" + rows),
            "scatter: dtypes differ: operand 0 is i64[7,1], operand 2 is f32[7,3]");
  EXPECT_EQ(typed("scatter %fids, %ids, %upd {" + rows),
            "scatter: axis 1 of the updates f32[7,3] is 3, more than axis 1 of the operand f32[7,1], which is 1");
}

TEST(Infer, DynamicSlices) {
  EXPECT_EQ(typed("dynamic_slice %a, %i, %j {sizes = [1, 3]}"), "f32[1,3]");
  EXPECT_EQ(typed("dynamic_slice %s"), "f32[]");
  EXPECT_EQ(typed("dynamic_update_slice %a, %a, %i, %i"), "f32[2,3]");
  EXPECT_EQ(typed("dynamic_update_slice %a, %z, %i, %i"), "f32[2,3]");
  EXPECT_EQ(typed("dynamic_slice"), "dynamic_slice: expected at least 1 operand(s), found 0");
  EXPECT_EQ(typed("dynamic_slice %a, %i {sizes = [1, 3]}"),
            "dynamic_slice: 1 start(s), expected one per axis of f32[2,3], which has 2 axes");
  EXPECT_EQ(typed("dynamic_slice %b, %s {sizes = [1]}"),
            "dynamic_slice: start: expected integers, found f32[] as operand 1");
  EXPECT_EQ(typed("dynamic_slice %b, %n {sizes = [1]}"),
            "dynamic_slice: start: expected rank 0, found i32[2,3] as operand 1");
  EXPECT_EQ(typed("dynamic_slice %b, %i {sizes = [4]}"), "dynamic_slice: axis 0: a slice of 4 does not fit f32[3]");
  EXPECT_EQ(typed("dynamic_update_slice %z, %a, %i, %i"),
            "dynamic_update_slice: axis 0: the update f32[2,3] does not fit f32[0,3]");
  EXPECT_EQ(typed("dynamic_update_slice %a, %b, %i"),
            "dynamic_update_slice: ranks differ: operand 0 is f32[2,3], operand 1 is f32[3]");
}

TEST(Infer, Structure) {
  EXPECT_EQ(all_results("%0, %1 = call %s, %i {body = @f} return %0, %1"), "f32[], i32[]");
  EXPECT_EQ(all_results("%0, %1 = custom_jvp %s, %i {body = @f, jvp = @f_jvp} return %1"), "i32[]");
  EXPECT_EQ(
      all_results("%0, %1 = custom_vjp %s, %i {body = @f, forward = @f_forward, backward = @f_backward} return %0"),
      "f32[]");
  EXPECT_EQ(all_results("%0, %1 = optimization_barrier %z, %p return %0, %1"), "f32[0,3], bool[2,3]");
}

TEST(Infer, StructureErrors) {
  EXPECT_EQ(typed("call %s {body = @f}"), "call: @f takes 2 arguments, found 1 operand");
  EXPECT_EQ(typed("checkpoint %s, %s {body = @f}"), "checkpoint: argument 1 of @f is i32[], the operand is f32[]");
  EXPECT_EQ(typed("composite %s, %i {body = @f}"), "composite: the attribute name is empty");
  EXPECT_EQ(typed("fusion %s, %i {body = @f}"), "fusion: the attribute kind is empty");
  EXPECT_EQ(typed("custom_jvp %s, %i {body = @f, jvp = @f_jvp_few}"),
            "custom_jvp: jvp has 2 arguments, expected 3: the operands and a tangent for each float operand");
  EXPECT_EQ(typed("custom_jvp %s, %i {body = @f, jvp = @f_jvp_wrong}"),
            "custom_jvp: jvp: results[2] is i32[], expected f32[]: body's results and a tangent for each float result");
  EXPECT_EQ(typed("custom_vjp %s, %i {body = @f, forward = @f_forward_few, backward = @f_backward}"),
            "custom_vjp: forward has 1 results, expected 2: body's results, then residuals");
  EXPECT_EQ(typed("custom_vjp %s, %i {body = @f, forward = @f_forward_args, backward = @f_backward}"),
            "custom_vjp: forward: arguments[1] is f32[], expected i32[]: the operands");
  EXPECT_EQ(
      typed("custom_vjp %s, %i {body = @f, forward = @f_forward, backward = @f_backward_args}"),
      "custom_vjp: backward has 1 arguments, expected 2: forward's residuals and a cotangent for each float result");
  EXPECT_EQ(typed("custom_vjp %s, %i {body = @f, forward = @f_forward, backward = @f_backward_results}"),
            "custom_vjp: backward has 2 results, expected 1: a cotangent for each float operand");
}

TEST(Infer, TheBuilderNamesTheLocation) {
  Builder b;
  const ValueId x = b.add_arg(Type{f32, {8, 64}}), y = b.add_arg(Type{f32, {32, 16}});
  b.set_location({"model.cpp", 42, "", "block0/attn"});
  try {
    b.emit<Op::dot_general>({x, y}, {.lhs_contract = {1}, .rhs_contract = {0}, .dtype = f32});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "dot_general: contracting sizes differ: lhs f32[8,64] axis 1 is 64, rhs f32[32,16] axis 0 is 32 "
                 "(model.cpp:42, in block0/attn)");
  }
}

}  // namespace
}  // namespace burin::ir
